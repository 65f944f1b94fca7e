// What this core's multiply-add units give right now, in GFLOP/s: the yardstick printed
// beside every time, since the clock of a shared machine drifts. Twelve independent
// chains of the widest vector hide the latency.
#include <chrono>
#include <cstdio>

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kChains = 12, kSteps = 2000000;
typedef float Vector __attribute__((vector_size(4 * kLanes)));

int main() {
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + float(i);
  Vector a = Vector{} + 0.999f, b = Vector{} + 0.0007f;
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * a + b;
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    double rate = 2.0 * kLanes * kChains * kSteps / time.count() * 1e-9;
    best = rate > best ? rate : best;
  }
  float keep = 0;
  for (const Vector& v : sums) keep += v[0];
  std::printf("%.1f\n", keep > 1e30f ? 0 : best);
}
