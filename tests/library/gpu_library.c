/* A library for a GPU against the driver that stands in for NVIDIA's. Words: what is
   tried, its input, where the output goes. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char input[NET_INPUT_0_BYTES], output[NET_OUTPUT_0_BYTES];
static const void* inputs[] = {input};
static void* outputs[] = {output};

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

static void* new_arena(void) {
  void* arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
  memset(arena, 0xa5, NET_ARENA_BYTES);
  return arena;
}

/* How much the driver has lent; 0 where it is not the stand-in. */
static int left(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*count)(void) =
      driver ? (int (*)(void))(intptr_t)dlsym(driver, "svod_stand_in_left") : NULL;
  return count ? count() : 0;
}

static void* driver_function(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = driver ? dlsym(driver, name) : NULL;
  must(function != NULL, name);
  return function;
}

/* On the processor. */
static void here(void) {
  void* arena = new_arena();
  must(strcmp(net_device_text(arena), "the arena is not open") == 0, "nobody opened it");
  must(net_run_device(arena, inputs, outputs, NULL) == NET_NO_DEVICE, "so it has no GPU");
  must(net_finish_device(arena) == NET_NO_DEVICE, "nor anything to wait for");
  net_close(arena);
  must(net_run(arena, inputs, outputs) == NET_OK, "it runs on the processor");
  must(net_open(arena, 3) == NET_BAD_ARGUMENT, "there are three places");
  must(net_open(NULL, NET_ON_AUTO) == NET_BAD_ARGUMENT, "no arena");
  must(net_open((char*)arena + 8, NET_ON_AUTO) == NET_MISALIGNED, "arenas are aligned");
  must(net_open(arena, NET_ON_CPU) == NET_OK && !net_runs_on_device(arena),
       "the processor is a place");
  must(strcmp(net_device_text(arena), "the processor was asked for") == 0,
       "which is said");
  must(net_run(arena, inputs, outputs) == NET_OK, "it runs");
  net_close(arena);
  free(arena);
}

/* Where there is no GPU: the reason, by both ways to ask. */
static void nowhere(void) {
  void* arena = new_arena();
  must(net_open(arena, NET_ON_CUDA) != NET_OK && !net_runs_on_device(arena),
       "a GPU is asked for, and none is there");
  printf("%s\n", net_device_text(arena));
  must(net_open(arena, NET_ON_AUTO) == NET_OK && !net_runs_on_device(arena),
       "the processor is as good");
  must(strlen(net_device_text(arena)) > 10, "with the reason");
  must(net_run(arena, inputs, outputs) == NET_OK, "it runs");
  must(left() == 0, "nothing is left on the GPU");
  free(arena);
}

static void there(void) {
  CUcontext current = NULL;
  void* arena = new_arena();
  must(net_open(arena, NET_ON_AUTO) == NET_OK && net_runs_on_device(arena),
       "a GPU is there");
  printf("%s\n", net_device_text(arena));
  CUresult (*get)(CUcontext*) =
      (CUresult(*)(CUcontext*))(intptr_t)driver_function("cuCtxGetCurrent");
  must(get(&current) == 0 && current == NULL, "the thread has no context, as before");
  must(net_run(arena, inputs, outputs) == NET_OK, "it runs");
  must(net_run(arena, NULL, outputs) == NET_BAD_ARGUMENT, "inputs are needed");
  const void* none[] = {NULL};
  must(net_run(arena, none, outputs) == NET_BAD_ARGUMENT, "each of them");
  must(net_run_sized(arena, NET_ARENA_BYTES - 64, inputs, outputs) == NET_ARENA_SMALL,
       "the arena has a size");
  must(net_open(arena, NET_ON_CUDA) == NET_OK && net_runs_on_device(arena),
       "it may be opened again");
  must(net_run(arena, inputs, outputs) == NET_OK, "and runs");
  net_close(arena);
  must(!net_runs_on_device(arena) && left() == 0, "closed, it leaves nothing behind");
  net_close(arena);
  must(net_run(arena, inputs, outputs) == NET_OK, "and runs on the processor");
  must(net_open(arena, NET_ON_CUDA) == NET_OK &&
           net_run(arena, inputs, outputs) == NET_OK,
       "or again there");
  net_close(arena);
  free(arena);
}

static void* run_often(void* arena) {
  unsigned char mine[NET_OUTPUT_0_BYTES];
  void* outs[] = {mine};
  must(net_open(arena, NET_ON_CUDA) == NET_OK, "a thread opens its arena");
  for (int i = 0; i < 5; i++) must(net_run(arena, inputs, outs) == NET_OK, "and runs");
  net_close(arena);
  must(memcmp(mine, output, sizeof(mine)) == 0, "with the answers of the others");
  return NULL;
}

/* Tensors on the GPU, in a context of the caller's; and three threads, each with an
 * arena. */
static void in_place(void) {
  CUresult (*make)(CUcontext*, unsigned, CUdevice) = (CUresult(*)(
      CUcontext*, unsigned, CUdevice))(intptr_t)driver_function("cuCtxCreate_v2");
  CUresult (*get)(CUcontext*) =
      (CUresult(*)(CUcontext*))(intptr_t)driver_function("cuCtxGetCurrent");
  CUresult (*allocate)(CUdeviceptr*, size_t) =
      (CUresult(*)(CUdeviceptr*, size_t))(intptr_t)driver_function("cuMemAlloc_v2");
  CUresult (*release)(CUdeviceptr) =
      (CUresult(*)(CUdeviceptr))(intptr_t)driver_function("cuMemFree_v2");
  CUresult (*up)(CUdeviceptr, const void*, size_t, CUstream) =
      (CUresult(*)(CUdeviceptr, const void*, size_t, CUstream))(intptr_t)driver_function(
          "cuMemcpyHtoDAsync_v2");
  CUresult (*down)(void*, CUdeviceptr, size_t, CUstream) =
      (CUresult(*)(void*, CUdeviceptr, size_t, CUstream))(intptr_t)driver_function(
          "cuMemcpyDtoHAsync_v2");
  CUcontext mine = NULL, current = NULL;
  must(make(&mine, 0, 0) == 0, "a context");
  void* arena = new_arena();
  must(net_open(arena, NET_ON_CUDA) == NET_OK, "it opens");
  CUdeviceptr x, y;
  must(allocate(&x, sizeof(input)) == 0 && allocate(&y, sizeof(output)) == 0, "memory");
  up(x, input, sizeof(input), NULL);
  const void* ins[] = {(const void*)(uintptr_t)x};
  void* outs[] = {(void*)(uintptr_t)y};
  must(net_finish_device(arena) == NET_OK, "there is nothing to wait for");
  for (int i = 0; i < 3; i++)
    must(net_run_device(arena, ins, outs, NULL) == NET_OK, "runs there");
  must(net_finish_device(arena) == NET_OK, "they are done");
  down(output, y, sizeof(output), NULL);
  const void* crooked[] = {(const void*)(uintptr_t)(x + 4)};
  must(net_run_device(arena, crooked, outs, NULL) == NET_MISALIGNED,
       "tensors are aligned there");
  must(net_run_device(arena, ins, NULL, NULL) == NET_BAD_ARGUMENT, "outputs are needed");
  must(get(&current) == 0 && current == mine, "the caller's context stays");
  release(x), release(y);
  net_close(arena);
  must(left() == 0, "nothing is left, and the device's own context was not asked for");
  pthread_t threads[3];
  for (int i = 0; i < 3; i++)
    must(pthread_create(&threads[i], NULL, run_often, new_arena()) == 0, "a thread");
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  must(left() == 0, "nor of theirs");
  free(arena);
}

/* The driver gives up in the second run. */
static void lost(void) {
  void* arena = new_arena();
  must(net_open(arena, NET_ON_CUDA) == NET_OK &&
           net_run(arena, inputs, outputs) == NET_OK,
       "a first run");
  must(net_run(arena, inputs, outputs) == NET_DEVICE_FAULT, "a second");
  printf("%s: %s\n", net_status_text(NET_DEVICE_FAULT), net_device_text(arena));
  net_close(arena);
  must(left() == 0, "even then all is given back");
}

int main(int count, char** words) {
  must(count == 4, "three words");
  FILE* file = fopen(words[2], "rb");
  must(file && fread(input, 1, sizeof(input), file) == sizeof(input),
       "the input is there");
  fclose(file);
  const char* what = words[1];
  if (strcmp(what, "here") == 0) here();
  if (strcmp(what, "nowhere") == 0) nowhere();
  if (strcmp(what, "there") == 0) there();
  if (strcmp(what, "in_place") == 0) in_place();
  if (strcmp(what, "lost") == 0) lost();
  file = fopen(words[3], "wb");
  must(file && fwrite(output, 1, sizeof(output), file) == sizeof(output),
       "the output is written");
  return fclose(file);
}
