/* A library whose model has steps of the processor between a GPU's: tensors here, tensors
   on the GPU on a stream of the caller's, and a stream that is captured. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float x[NET_INPUT_0_COUNT], here[NET_OUTPUT_0_COUNT], there[NET_OUTPUT_0_COUNT],
    alone[NET_OUTPUT_0_COUNT];

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

int main(void) {
  for (int i = 0; i < NET_INPUT_0_COUNT; i++) x[i] = (float)(i % 37) / 37 - 0.5f;
  void* arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
  memset(arena, 0xa5, NET_ARENA_BYTES);
  const void* inputs[] = {x};
  void* outputs[] = {alone};
  must(net_run(arena, inputs, outputs) == NET_OK, "a run on the processor alone");
  must(net_open(arena, NET_ON_CUDA) == NET_OK, "it opens");
  outputs[0] = here;
  must(net_run(arena, inputs, outputs) == NET_OK, "a run");
  for (int i = 0; i < NET_OUTPUT_0_COUNT; i++) {
    const float apart = here[i] - alone[i];
    must(apart < 1e-4f && apart > -1e-4f, "with the processor's answers");
  }
  CUdeviceptr from, to;
  CUstream stream;
  must(cuMemAlloc(&from, sizeof(x)) == 0 && cuMemAlloc(&to, sizeof(there)) == 0 &&
           cuStreamCreate(&stream, 1) == 0,
       "memory and a stream of the caller's");
  cuMemcpyHtoDAsync(from, x, sizeof(x), stream);
  const void* ins[] = {(const void*)(uintptr_t)from};
  void* outs[] = {(void*)(uintptr_t)to};
  must(net_run_device(arena, ins, outs, stream) == NET_OK, "a run there");
  must(net_finish_device(arena) == NET_OK, "ends well");
  cuMemcpyDtoHAsync(there, to, sizeof(there), stream);
  cuStreamSynchronize(stream);
  must(memcmp(here, there, sizeof(here)) == 0, "with the same bits");
  must(cuStreamBeginCapture_v2(stream, 2) == 0, "a stream is captured");
  must(net_run_device(arena, ins, outs, stream) == NET_DEVICE_FAULT,
       "and cannot be waited for");
  printf("%s\n", net_device_text(arena));
  CUgraph graph;
  cuStreamEndCapture(stream, &graph);
  must(net_run(arena, inputs, outputs) == NET_OK, "the arena runs on");
  net_close(arena);
  free(arena);
  return 0;
}
