// What a parallel region costs beside its work. Each thread has one chunk of about ten
// microseconds; printed is how many nanoseconds longer a region takes than one chunk, the
// least mean of several rounds. Linked with the stub's own pool. `pool_probe THREADS`.
#include "runtime_stub/platform.h"
#include "runtime_stub/pool.h"

#include <cstdio>
#include <cstdlib>

// A chain of additions, nothing that threads could share.
static void add_up(void* context, uint32_t chunk, uint32_t) {
  double sum = chunk;
  for (int i = 0; i < 12000; ++i) {
    sum += 1.0;
    __asm__ volatile("" : "+x"(sum));
  }
  static_cast<double*>(context)[8 * chunk] = sum;
}

template <class F> static uint64_t least_mean(F region) {
  constexpr uint32_t kRegions = 2000;
  uint64_t least = ~uint64_t{0};
  for (int round = 0; round < 20; ++round) {
    const uint64_t start = svod_now();
    for (uint32_t i = 0; i < kRegions; ++i) region();
    const uint64_t mean = (svod_now() - start) / kRegions;
    least = mean < least ? mean : least;
  }
  return least;
}

int main(int argc, char** argv) {
  const auto threads = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 2);
  constexpr uint32_t kMostThreads = 64;
  static double sums[8 * kMostThreads];
  if (threads == 0 || threads > kMostThreads) return 1;
  void* memory = std::aligned_alloc(64, (svod_pool_bytes(threads) + 63) / 64 * 64);
  SvodPool* pool = svod_pool_make(memory, threads);
  const uint64_t alone = least_mean([&] { add_up(sums, 0, 0); });
  const uint64_t region = least_mean([&] { svod_pool_run(pool, threads, add_up, sums); });
  svod_pool_end(pool);
  std::printf("%lld\n", static_cast<long long>(region) - static_cast<long long>(alone));
}
