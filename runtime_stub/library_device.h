// Of a library that was packed for a GPU: what an arena holds for it, and the calls of
// the header. `room` is that part of the arena, of gpu_room() bytes; `key` tells that it
// was opened, by whoever else wrote it not.
#ifndef SVOD_LIBRARY_DEVICE_H
#define SVOD_LIBRARY_DEVICE_H

#include "runtime_stub/types.h"

namespace svod_library {

enum RunsOn : int32_t { RUNS_AUTO = 0, RUNS_CPU = 1, RUNS_GPU = 2 };

uint64_t gpu_room();
// SVOD_OK where runs go to the processor, too, as RUNS_AUTO allows.
int32_t open_gpu(void* room, uint64_t key, int32_t place);
void close_gpu(void* room, uint64_t key);
bool runs_on_gpu(const void* room, uint64_t key);
// What it is, why there is none, or what the driver refused last; never null.
const char* gpu_text(const void* room, uint64_t key);

// Of a room that runs_on_gpu. Tensors here, or on the GPU; `stream` is the driver's, null
// its default one.
int32_t run_gpu(void* room, uint32_t entry, const void* const inputs[],
                void* const outputs[]);
int32_t run_gpu_there(void* room, uint32_t entry, const void* const inputs[],
                      void* const outputs[], void* stream);
int32_t finish_gpu(void* room); // waits for the last run there of each entry

} // namespace svod_library

#endif
