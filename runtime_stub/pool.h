// A fork-join pool: one region at a time, made of chunks that any thread may take. Chunks
// are fixed by shape when packing, so the number of threads never changes a bit of the
// result.
#ifndef SVOD_POOL_H
#define SVOD_POOL_H

#include "runtime_stub/replay.h"

struct SvodPool; // lives in memory of the caller

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of memory (aligned to SVOD_ALIGN) for a pool of so many threads, stacks included.
uint64_t svod_pool_bytes(uint32_t threads);
// `threads` counts the calling thread. Workers start at the first region that can use
// them; where one cannot be started the others do its work.
struct SvodPool* svod_pool_make(void* memory, uint32_t threads);
// A SvodParallel: run->parallel = svod_pool_run, run->pool = the pool.
void svod_pool_run(void* pool, uint32_t chunks, SvodTask task, void* context);
// Ticks (ticks.h) that the calling thread has waited in all regions for chunks of others.
uint64_t svod_pool_waited(const struct SvodPool* pool);
// Ends the workers and waits for them; the memory is the caller's again.
void svod_pool_end(struct SvodPool* pool);

#ifdef __cplusplus
}
#endif

#endif
