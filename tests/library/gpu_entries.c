/* A library for a GPU with two entries against the driver that stands in for NVIDIA's.
   Words: their inputs, each in a file, and where the outputs of both go. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int svod_stand_in_left(void);

static unsigned char in[2][NET_ENTRY_1_INPUT_0_BYTES], out[2][NET_ENTRY_1_OUTPUT_0_BYTES];
static const size_t in_bytes[] = {NET_INPUT_0_BYTES, NET_ENTRY_1_INPUT_0_BYTES};
static const size_t out_bytes[] = {NET_OUTPUT_0_BYTES, NET_ENTRY_1_OUTPUT_0_BYTES};

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

/* Both entries on tensors in the GPU's memory, before anybody waits. */
static void run_there(void* arena) {
  CUdeviceptr x[2], y[2];
  unsigned char found[NET_ENTRY_1_OUTPUT_0_BYTES];
  for (size_t e = 0; e < 2; e++) {
    cuMemAlloc(&x[e], in_bytes[e]);
    cuMemAlloc(&y[e], out_bytes[e]);
    cuMemcpyHtoDAsync(x[e], in[e], in_bytes[e], NULL);
    const void* inputs[] = {(const void*)(uintptr_t)x[e]};
    void* outputs[] = {(void*)(uintptr_t)y[e]};
    must(net_run_entry_device(e, arena, inputs, outputs, NULL) == NET_OK, "a run there");
    must(net_run_entry_device(2, arena, inputs, outputs, NULL) == NET_BAD_ARGUMENT,
         "there are two entries");
  }
  must(net_finish_device(arena) == NET_OK, "both are done");
  for (size_t e = 0; e < 2; e++) {
    cuMemcpyDtoHAsync(found, y[e], out_bytes[e], NULL);
    must(memcmp(found, out[e], out_bytes[e]) == 0, "the same answers");
    cuMemFree(x[e]);
    cuMemFree(y[e]);
  }
}

int main(int count, char** words) {
  must(count == 4, "three words");
  for (size_t e = 0; e < 2; e++) {
    FILE* file = fopen(words[1 + e], "rb");
    must(file && fread(in[e], 1, in_bytes[e], file) == in_bytes[e], "an input");
    fclose(file);
  }
  void* arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
  must(net_arena_bytes() == NET_ARENA_BYTES, "the header knows the arena");
  int status = net_open(arena, NET_ON_CUDA);
  if (status != NET_OK) {
    printf("%s\n", net_device_text(arena));
    must(svod_stand_in_left() == 0, "what the first entry has taken is given back");
    must(net_open(arena, NET_ON_AUTO) == NET_OK && !net_runs_on_device(arena),
         "the processor is as good");
  }
  for (int i = 0; i < 3; i++)
    for (size_t e = 0; e < 2; e++) {
      const void* inputs[] = {in[e]};
      void* outputs[] = {out[e]};
      must(net_run_entry(e, arena, inputs, outputs) == NET_OK, "a run of each in turn");
    }
  if (status == NET_OK) run_there(arena);
  net_close(arena);
  must(svod_stand_in_left() == 0, "nothing is left behind");
  FILE* file = fopen(words[3], "wb");
  for (size_t e = 0; file && e < 2; e++) fwrite(out[e], 1, out_bytes[e], file);
  must(file != NULL, "the outputs are written");
  return fclose(file);
}
