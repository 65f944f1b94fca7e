// The fork-join pool of packed executables on Linux. A region is published by writing its
// task and then the number of chunks left; whoever takes that number one down owns a
// chunk, and only then reads the task, which cannot change while a chunk is owned. So a
// thread that is late, or never runs because its core is busy, claims nothing and nobody
// waits for it: the caller alone could do the whole region. Idle workers spin for about
// the time between two kernels and then sleep.
#include "runtime_stub/pool.h"
#include "runtime_stub/platform.h"

namespace {

constexpr uint64_t kStackBytes = 512 << 10;
constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kSpins = 4000; // some tens of microseconds

struct Worker {
  SvodPool* pool;
  uint32_t index;
  uint32_t alive;
};

} // namespace

// Words that different threads write live in different cache lines.
struct SvodPool {
  alignas(64) uint32_t left; // chunks of this region nobody has taken
  alignas(64) uint32_t done; // chunks of this region that are complete
  alignas(64) uint32_t sleepers;
  uint32_t wakes; // changes whenever sleepers have to look again
  uint32_t caller_sleeps;
  uint32_t quit;
  alignas(64) SvodTask task; // of this region, as the two below
  void* context;
  uint32_t chunks;
  uint32_t threads;
  uint32_t started; // workers that exist, or that could not be made
  uint8_t* stacks;
  Worker workers[kMostThreads];
};

namespace {

void relax() {
#if defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#else
  __asm__ volatile("" ::: "memory");
#endif
}

uint32_t load(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

uint32_t add(uint32_t* word, uint32_t value) {
  return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
}

// Takes chunks until none is left. Whoever completes the last one wakes a sleeping
// caller.
void work(SvodPool* pool, uint32_t thread) {
  uint32_t left = load(&pool->left);
  while (left != 0) {
    if (!__atomic_compare_exchange_n(&pool->left, &left, left - 1, true, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
      continue;
    }
    uint32_t chunks = pool->chunks;
    pool->task(pool->context, chunks - left, thread);
    if (add(&pool->done, 1) + 1 == chunks && load(&pool->caller_sleeps) != 0) {
      svod_futex_wake(&pool->done, 1);
    }
    left = load(&pool->left);
  }
}

void sleep(SvodPool* pool) {
  uint32_t wakes = load(&pool->wakes);
  add(&pool->sleepers, 1);
  if (load(&pool->left) == 0 && load(&pool->quit) == 0) {
    svod_futex_wait(&pool->wakes, wakes);
  }
  add(&pool->sleepers, ~0u);
}

void run_worker(void* argument) {
  const Worker& worker = *static_cast<Worker*>(argument);
  SvodPool* pool = worker.pool;
  while (load(&pool->quit) == 0) {
    work(pool, worker.index);
    uint32_t spins = 0;
    while (load(&pool->left) == 0 && load(&pool->quit) == 0 && spins < kSpins) {
      relax();
      spins++;
    }
    if (spins == kSpins) sleep(pool);
  }
}

void start_workers(SvodPool* pool) {
  for (; pool->started + 1 < pool->threads; pool->started++) {
    uint32_t index = pool->started + 1;
    Worker& worker = pool->workers[index];
    worker = {pool, index, 0};
    uint8_t* stack = pool->stacks + static_cast<size_t>((index - 1) * kStackBytes);
    if (svod_thread_start(run_worker, &worker, stack, kStackBytes, &worker.alive) != 0) {
      pool->threads = index; // the others do its work
      return;
    }
  }
}

void wake_sleepers(SvodPool* pool, uint32_t most) {
  if (load(&pool->sleepers) == 0) return;
  add(&pool->wakes, 1);
  svod_futex_wake(&pool->wakes, most);
}

void wait_for_chunks(SvodPool* pool, uint32_t chunks) {
  for (uint32_t spins = 0; load(&pool->done) != chunks; spins++) {
    relax();
    if (spins < kSpins) continue;
    __atomic_store_n(&pool->caller_sleeps, 1u, __ATOMIC_SEQ_CST);
    uint32_t done = load(&pool->done);
    if (done != chunks) svod_futex_wait(&pool->done, done);
    __atomic_store_n(&pool->caller_sleeps, 0u, __ATOMIC_SEQ_CST);
  }
}

} // namespace

uint64_t svod_pool_bytes(uint32_t threads) {
  uint64_t workers = threads < kMostThreads ? threads : kMostThreads;
  return sizeof(SvodPool) + workers * kStackBytes;
}

SvodPool* svod_pool_make(void* memory, uint32_t threads) {
  SvodPool* pool = static_cast<SvodPool*>(memory);
  __builtin_memset(pool, 0, sizeof(SvodPool));
  pool->threads = threads < kMostThreads ? threads : kMostThreads;
  pool->stacks = static_cast<uint8_t*>(memory) + sizeof(SvodPool);
  return pool;
}

void svod_pool_run(void* memory, uint32_t chunks, SvodTask task, void* context) {
  SvodPool* pool = static_cast<SvodPool*>(memory);
  if (chunks == 0) return;
  if (pool->started + 1 < pool->threads && chunks > 1) start_workers(pool);
  pool->task = task;
  pool->context = context;
  pool->chunks = chunks;
  __atomic_store_n(&pool->done, 0u, __ATOMIC_SEQ_CST);
  __atomic_store_n(&pool->left, chunks, __ATOMIC_SEQ_CST);
  if (chunks > 1) wake_sleepers(pool, chunks - 1);
  work(pool, 0);
  wait_for_chunks(pool, chunks);
}

void svod_pool_end(SvodPool* pool) {
  __atomic_store_n(&pool->quit, 1u, __ATOMIC_SEQ_CST);
  wake_sleepers(pool, pool->threads);
  for (uint32_t i = 1; i <= pool->started; i++) {
    svod_thread_join(&pool->workers[i].alive);
  }
}
