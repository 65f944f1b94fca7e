/* An index that the data brings, out of range on the GPU. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float x[NET_INPUT_0_COUNT], y[NET_OUTPUT_0_COUNT];
static int64_t index_[NET_INPUT_1_COUNT] = {1, 3};

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

int main(void) {
  void* arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
  const void* inputs[] = {x, index_};
  void* outputs[] = {y};
  must(net_open(arena, NET_ON_CUDA) == NET_OK, "it opens");
  must(net_run(arena, inputs, outputs) == NET_OK, "a run");
  index_[1] = 9;
  must(net_run(arena, inputs, outputs) == NET_INDEX, "an index is out of range");
  printf("%s\n", net_device_text(arena));
  index_[1] = 2;
  must(net_run(arena, inputs, outputs) == NET_OK, "the next run knows nothing of it");
  CUdeviceptr there[3];
  const size_t bytes[] = {sizeof(x), sizeof(index_), sizeof(y)};
  for (int i = 0; i < 3; i++) must(cuMemAlloc(&there[i], bytes[i]) == 0, "memory");
  const void* ins[] = {(const void*)(uintptr_t)there[0],
                       (const void*)(uintptr_t)there[1]};
  void* outs[] = {(void*)(uintptr_t)there[2]};
  cuMemcpyHtoDAsync(there[0], x, sizeof(x), NULL);
  index_[0] = 7;
  cuMemcpyHtoDAsync(there[1], index_, sizeof(index_), NULL);
  must(net_run_device(arena, ins, outs, NULL) == NET_OK, "a run cannot know");
  index_[0] = 0;
  cuMemcpyHtoDAsync(there[1], index_, sizeof(index_), NULL);
  must(net_run_device(arena, ins, outs, NULL) == NET_OK, "nor the next");
  must(net_finish_device(arena) == NET_INDEX, "who waits learns of it");
  printf("%s\n", net_device_text(arena));
  must(net_run_device(arena, ins, outs, NULL) == NET_OK &&
           net_finish_device(arena) == NET_OK,
       "once");
  for (int i = 0; i < 3; i++) cuMemFree(there[i]);
  net_close(arena);
  return 0;
}
