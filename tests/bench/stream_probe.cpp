// How fast this core reads memory that no cache holds, in GB/s: the roof of kernels that
// meet each weight once. One stream, and four side by side as a kernel reads panels.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr size_t kBytes = size_t{256} << 20;
typedef float Vector __attribute__((vector_size(64)));
constexpr size_t kVectors = kBytes / sizeof(Vector);

template <size_t kStreams> static Vector read_all(const Vector* data) {
  constexpr size_t kUnroll = 4 / kStreams, kEach = kVectors / kStreams;
  Vector sums[4] = {};
  for (size_t i = 0; i < kEach; i += kUnroll)
#pragma GCC unroll 4
    for (size_t s = 0; s < 4; ++s) sums[s] += data[s / kUnroll * kEach + i + s % kUnroll];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

int main() {
  auto* data = static_cast<Vector*>(std::aligned_alloc(4096, kBytes));
  if (data == nullptr) return 1;
  std::memset(data, 0, kBytes);
  double best = 0;
  float keep = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    keep += (repeat % 2 == 0 ? read_all<1> : read_all<4>)(data)[0];
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    double rate = double(kBytes) / time.count() * 1e-9;
    best = rate > best ? rate : best;
  }
  std::printf("%.1f\n", keep != 0 ? 0 : best);
}
