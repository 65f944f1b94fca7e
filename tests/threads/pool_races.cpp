// The fork-join pool under ThreadSanitizer: thousands of regions of random size on pools
// of random width, in which every chunk writes memory that the caller reads after the
// region and other chunks write in the next one. All of it is plain memory, so the
// sanitizer reports each write that the pool does not order before what follows.
// The pool is compiled as it is; below it lie threads of the C++ library instead of bare
// clones, which the sanitizer does not see. Some of them fail to start.
#include "runtime_stub/platform.h"
#include "runtime_stub/pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t kMostThreads = 6, kMostChunks = 40;
constexpr int kPools = 60, kRegions = 400;

std::mt19937 random_numbers(1);

uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_numbers() % end); }

long futex(const uint32_t* word, int what, uint32_t value) {
  return syscall(SYS_futex, word, what, value, nullptr, nullptr, 0);
}

struct Region {
  std::vector<uint64_t> values;  // one per chunk
  std::vector<uint64_t> scratch; // one per thread
  uint64_t number = 0;
};

void task(void* context, uint32_t chunk, uint32_t thread) {
  Region& region = *static_cast<Region*>(context);
  region.scratch[thread] = region.number * chunk;
  region.values[chunk] += region.scratch[thread];
}

// What the values must be is computed by the caller alone.
bool run_pool(uint32_t threads) {
  Region region;
  region.values.assign(kMostChunks, 0);
  region.scratch.assign(threads, 0);
  std::vector<uint64_t> expected(kMostChunks, 0);
  const size_t bytes =
      (svod_pool_bytes(threads) + SVOD_ALIGN - 1) / SVOD_ALIGN * SVOD_ALIGN;
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(SVOD_ALIGN, bytes), &std::free);
  SvodPool* pool = svod_pool_make(memory.get(), threads);
  for (int i = 0; i < kRegions; ++i) {
    const uint32_t chunks = below(kMostChunks + 1);
    region.number = random_numbers();
    svod_pool_run(pool, chunks, task, &region);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk)
      expected[chunk] += region.number * chunk;
    if (region.values != expected) return false;
    // Now and then long enough for the workers to fall asleep.
    if (below(50) == 0) usleep(300);
  }
  svod_pool_end(pool);
  return true;
}

} // namespace

int32_t svod_thread_start(void (*entry)(void*), void* argument, void*, uint64_t,
                          uint32_t* alive) {
  if (below(8) == 0) return -1;
  __atomic_store_n(alive, 1u, __ATOMIC_RELEASE);
  std::thread([=] {
    entry(argument);
    __atomic_store_n(alive, 0u, __ATOMIC_RELEASE);
    futex(alive, FUTEX_WAKE, 1);
  }).detach();
  return 0;
}

void svod_thread_join(const uint32_t* alive) {
  while (const uint32_t word = __atomic_load_n(alive, __ATOMIC_ACQUIRE))
    futex(alive, FUTEX_WAIT, word);
}

void svod_futex_wait(const uint32_t* word, uint32_t expected) {
  futex(word, FUTEX_WAIT_PRIVATE, expected);
}

void svod_futex_wake(const uint32_t* word, uint32_t waiters) {
  futex(word, FUTEX_WAKE_PRIVATE, waiters);
}

int main() {
  for (int i = 0; i < kPools; ++i) {
    const uint32_t threads = 1 + below(kMostThreads);
    if (run_pool(threads)) continue;
    std::printf("pool %d of %u threads: a chunk was lost or done twice\n", i, threads);
    return 1;
  }
  std::printf("%d pools, %d regions each\n", kPools, kRegions);
}
