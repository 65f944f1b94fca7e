// The fork-join pool of packed executables on Linux. Each thread has a share of a
// region's chunks, the same part of it in every region: what a kernel wrote is mostly
// read by the thread that wrote it, for writing over what another core has read costs
// more than all else about memory. A region is published by writing its task, then the
// number of chunks left of each share, then that there is a new region. Whoever takes
// such a number one down owns a chunk, and only then reads the task, which cannot change
// while a chunk is owned. A thread whose share is done takes from the others. So one that
// is late, or never runs because its core is busy, claims nothing and nobody waits for
// it: the caller alone could do the whole region. Idle workers spin for about the time
// between two kernels and then sleep.
#include "runtime_stub/pool.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/ticks.h"

namespace {

constexpr uint64_t kStackBytes = 512 << 10;
constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kSpins = 4000; // some tens of microseconds

// One thread of the pool; the first is the caller. Words that different threads write
// live in different cache lines.
struct alignas(64) Worker {
  uint32_t left; // chunks of its share of this region that nobody has taken
  uint32_t index;
  uint32_t alive;
  SvodPool* pool;
};

} // namespace

struct SvodPool {
  alignas(64) uint32_t regions; // published so far
  alignas(64) uint32_t done;    // chunks of this region that are complete
  alignas(64) uint32_t sleepers;
  uint32_t caller_sleeps;
  uint32_t quit;
  alignas(64) SvodTask task; // of this region, as the two below
  void* context;
  uint32_t chunks;
  uint32_t threads;
  uint32_t started; // workers that exist, or that could not be made
  uint64_t waited;  // ticks, by the caller for chunks of others
  Worker* workers;
  uint8_t* stacks;
};

namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
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

// The first chunk of a thread's share; the caller's is never empty.
uint32_t share_begin(uint32_t chunks, uint32_t threads, uint32_t thread) {
  return static_cast<uint32_t>((uint64_t{chunks} * thread + threads - 1) / threads);
}

// Takes chunks of `owner`'s share until none is left. Whoever completes the last one of
// all wakes a sleeping caller.
void work_share(SvodPool* pool, uint32_t owner, uint32_t thread) {
  uint32_t* share = &pool->workers[owner].left;
  uint32_t left = load(share);
  while (left != 0) {
    if (!__atomic_compare_exchange_n(share, &left, left - 1, true, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
      continue;
    }
    uint32_t chunks = pool->chunks;
    uint32_t end = share_begin(chunks, pool->threads, owner + 1);
    pool->task(pool->context, end - left, thread);
    if (add(&pool->done, 1) + 1 == chunks && load(&pool->caller_sleeps) != 0) {
      svod_futex_wake(&pool->done, 1);
    }
    left = load(share);
  }
}

// Its own share, then those of the threads after it.
void work(SvodPool* pool, uint32_t thread) {
  uint32_t threads = load(&pool->threads);
  for (uint32_t owner = thread; owner < threads; owner++) work_share(pool, owner, thread);
  for (uint32_t owner = 0; owner < thread; owner++) work_share(pool, owner, thread);
}

// Until there is a region after `seen`, or the end.
void sleep(SvodPool* pool, uint32_t seen) {
  add(&pool->sleepers, 1);
  if (load(&pool->regions) == seen && load(&pool->quit) == 0) {
    svod_futex_wait(&pool->regions, seen);
  }
  add(&pool->sleepers, ~0u);
}

void run_worker(void* argument) {
  const Worker& worker = *static_cast<Worker*>(argument);
  SvodPool* pool = worker.pool;
  while (load(&pool->quit) == 0) {
    uint32_t seen = load(&pool->regions);
    work(pool, worker.index);
    uint32_t spins = 0;
    while (load(&pool->regions) == seen && load(&pool->quit) == 0 && spins < kSpins) {
      relax();
      spins++;
    }
    if (spins == kSpins) sleep(pool, seen);
  }
}

void start_workers(SvodPool* pool) {
  for (; pool->started + 1 < pool->threads; pool->started++) {
    Worker& worker = pool->workers[pool->started + 1];
    uint8_t* stack = pool->stacks + pool->started * kStackBytes;
    if (svod_thread_start(run_worker, &worker, stack, kStackBytes, &worker.alive) != 0) {
      __atomic_store_n(&pool->threads, worker.index,
                       __ATOMIC_SEQ_CST); // the others do its work
      return;
    }
  }
}

// There is a new region, or the end: idle workers look.
void announce(SvodPool* pool, uint32_t most) {
  add(&pool->regions, 1);
  if (load(&pool->sleepers) != 0) svod_futex_wake(&pool->regions, most);
}

void wait_for_chunks(SvodPool* pool, uint32_t chunks) {
  if (load(&pool->done) == chunks) return;
  const uint64_t begin = svod_ticks();
  for (uint32_t spins = 0; load(&pool->done) != chunks; spins++) {
    relax();
    if (spins < kSpins) continue;
    __atomic_store_n(&pool->caller_sleeps, 1u, __ATOMIC_SEQ_CST);
    uint32_t done = load(&pool->done);
    if (done != chunks) svod_futex_wait(&pool->done, done);
    __atomic_store_n(&pool->caller_sleeps, 0u, __ATOMIC_SEQ_CST);
  }
  pool->waited += svod_ticks() - begin;
}

} // namespace

uint64_t svod_pool_bytes(uint32_t threads) {
  uint64_t workers = threads < kMostThreads ? threads : kMostThreads;
  return sizeof(SvodPool) + workers * (sizeof(Worker) + kStackBytes);
}

SvodPool* svod_pool_make(void* memory, uint32_t threads) {
  threads = threads < kMostThreads ? threads : kMostThreads;
  SvodPool* pool = static_cast<SvodPool*>(memory);
  __builtin_memset(pool, 0, sizeof(SvodPool) + threads * sizeof(Worker));
  pool->threads = threads;
  pool->workers = reinterpret_cast<Worker*>(pool + 1);
  pool->stacks = reinterpret_cast<uint8_t*>(pool->workers + threads);
  for (uint32_t i = 0; i < threads; i++) {
    pool->workers[i].index = i;
    pool->workers[i].pool = pool;
  }
  return pool;
}

void svod_pool_run(void* memory, uint32_t chunks, SvodTask task, void* context) {
  SvodPool* pool = static_cast<SvodPool*>(memory);
  if (chunks == 0) return;
  if (chunks == 1) return task(context, 0, 0);
  start_workers(pool);
  pool->task = task;
  pool->context = context;
  pool->chunks = chunks;
  __atomic_store_n(&pool->done, 0u, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < pool->threads; i++) {
    uint32_t share =
        share_begin(chunks, pool->threads, i + 1) - share_begin(chunks, pool->threads, i);
    __atomic_store_n(&pool->workers[i].left, share, __ATOMIC_SEQ_CST);
  }
  announce(pool, chunks - 1);
  work(pool, 0);
  wait_for_chunks(pool, chunks);
}

uint64_t svod_pool_waited(const SvodPool* pool) { return pool->waited; }

void svod_pool_end(SvodPool* pool) {
  __atomic_store_n(&pool->quit, 1u, __ATOMIC_SEQ_CST);
  announce(pool, pool->threads);
  for (uint32_t i = 1; i <= pool->started; i++) {
    svod_thread_join(&pool->workers[i].alive);
  }
}
