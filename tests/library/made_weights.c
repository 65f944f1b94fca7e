/* A library of --weights=expand: what is refused before init, two arenas that share
   weights, and the answers of a run on the file that is given. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char
    memory[NET_MADE_BYTES + NET_INIT_SCRATCH_BYTES + 2 * NET_ARENA_BYTES + 256];
static unsigned char input[NET_INPUT_0_BYTES];
static unsigned char outputs[2][NET_OUTPUT_0_BYTES];
static void* arenas[2];

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

/* The next part of the memory, aligned. */
static void* take(size_t bytes) {
  static unsigned char* at = memory;
  unsigned char* begin = (unsigned char*)(((uintptr_t)at + 63) / 64 * 64);
  at = begin + bytes;
  return begin;
}

static int run(int i) {
  const void* ins[] = {input};
  void* outs[1];
  outs[0] = outputs[i];
  return net_run(arenas[i], ins, outs);
}

static void* run_often(void* number) {
  for (int i = 0; i < 20; i++)
    must(run(number != NULL) == NET_OK, "runs at the same time");
  return NULL;
}

int main(int count, char** words) {
  FILE* file = fopen(words[count - 2], "rb");
  must(file && fread(input, 1, sizeof(input), file) == sizeof(input),
       "the input is there");
  fclose(file);
  memset(memory, 0xa5, sizeof(memory));
  void* weights = take(NET_MADE_BYTES);
  void* scratch = take(NET_INIT_SCRATCH_BYTES);
  arenas[0] = take(NET_ARENA_BYTES), arenas[1] = take(NET_ARENA_BYTES);
  must(run(0) == NET_NO_WEIGHTS, "a run without weights is refused");
  must(strcmp(net_status_text(NET_NO_WEIGHTS), "init made no weights") == 0,
       "with a text");
  must(net_init(NULL, weights, scratch) == NET_BAD_ARGUMENT, "no arena");
  must(net_init(arenas[0], NULL, scratch) == NET_BAD_ARGUMENT, "no weights");
  must(net_init(arenas[0], weights, NULL) == NET_BAD_ARGUMENT,
       "no scratch for what is not made yet");
  must(net_init(arenas[0], (char*)weights + 8, scratch) == NET_MISALIGNED,
       "weights are aligned");
  must(net_init(arenas[0], weights, scratch) == NET_OK, "weights are made");
  memset(scratch, 0x5a, NET_INIT_SCRATCH_BYTES);
  must(run(1) == NET_NO_WEIGHTS, "another arena does not know of them");
  must(net_init(arenas[1], weights, NULL) == NET_OK, "it needs no scratch");
  pthread_t thread;
  must(pthread_create(&thread, NULL, run_often, arenas) == 0, "a thread");
  run_often(NULL);
  pthread_join(thread, NULL);
  must(memcmp(outputs[0], outputs[1], sizeof(outputs[0])) == 0,
       "both have the same answers");
  file = fopen(words[count - 1], "wb");
  must(file && fwrite(outputs[0], 1, sizeof(outputs[0]), file) == sizeof(outputs[0]),
       "they are written");
  return fclose(file);
}
