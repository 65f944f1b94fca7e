/* Two packed models in one strict C99 program: each runs many times in eight threads at
   once, every thread with its own arena, and every result must be bit-equal to the first.
 */
#include "libcnn.h"
#include "libmlp.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8

static float first_cnn[CNN_OUTPUT_0_COUNT], first_mlp[MLP_OUTPUT_0_COUNT];
static float x[CNN_INPUT_0_COUNT], a[MLP_INPUT_0_COUNT], b[MLP_INPUT_1_COUNT];
static int runs;

static void* aligned(size_t bytes, size_t align) {
  void* memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, bytes + 1) !=
      0)
    exit(3);
  return memory;
}

static void fill(float* values, size_t count) {
  uint32_t state = 12345;
  size_t i;
  for (i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
  }
}

static int run_both(void* cnn_arena, void* mlp_arena, float* cnn_out, float* mlp_out) {
  const void* cnn_inputs[1];
  const void* mlp_inputs[2];
  void* cnn_outputs[1];
  void* mlp_outputs[1];
  int status;
  cnn_inputs[0] = x;
  mlp_inputs[0] = a;
  mlp_inputs[1] = b;
  cnn_outputs[0] = cnn_out;
  mlp_outputs[0] = mlp_out;
  status = cnn_run(cnn_arena, cnn_inputs, cnn_outputs);
  if (status != 0) {
    fprintf(stderr, "cnn: %s\n", cnn_status_text(status));
    return status;
  }
  status = mlp_run(mlp_arena, mlp_inputs, mlp_outputs);
  if (status != 0) fprintf(stderr, "mlp: %s\n", mlp_status_text(status));
  return status;
}

static void* worker(void* unequal) {
  void* cnn_arena = aligned(CNN_ARENA_BYTES, CNN_ARENA_ALIGN);
  void* mlp_arena = aligned(MLP_ARENA_BYTES, MLP_ARENA_ALIGN);
  float cnn_out[CNN_OUTPUT_0_COUNT], mlp_out[MLP_OUTPUT_0_COUNT];
  int i;
  for (i = 0; i < runs; ++i) {
    /* What an earlier run left in arena and outputs must not matter. */
    memset(cnn_arena, i & 255, CNN_ARENA_BYTES);
    memset(mlp_arena, i & 255, MLP_ARENA_BYTES);
    memset(cnn_out, 255, sizeof cnn_out);
    memset(mlp_out, 255, sizeof mlp_out);
    if (run_both(cnn_arena, mlp_arena, cnn_out, mlp_out) != 0 ||
        memcmp(cnn_out, first_cnn, sizeof cnn_out) != 0 ||
        memcmp(mlp_out, first_mlp, sizeof mlp_out) != 0) {
      ++*(int*)unequal;
    }
  }
  free(cnn_arena);
  free(mlp_arena);
  return NULL;
}

static int bad_calls_are_refused(void* arena) {
  const void* inputs[1];
  void* outputs[1];
  inputs[0] = x;
  outputs[0] = first_cnn;
  return cnn_run(NULL, inputs, outputs) < 0 && cnn_run(arena, NULL, outputs) < 0 &&
         cnn_run((char*)arena + 1, inputs, outputs) < 0;
}

int main(int argc, char** argv) {
  void* cnn_arena = aligned(CNN_ARENA_BYTES, CNN_ARENA_ALIGN);
  void* mlp_arena = aligned(MLP_ARENA_BYTES, MLP_ARENA_ALIGN);
  pthread_t threads[THREADS];
  int unequal[THREADS] = {0}, total = 0, i;
  runs = argc > 1 ? atoi(argv[1]) : 125;
  fill(x, CNN_INPUT_0_COUNT);
  fill(a, MLP_INPUT_0_COUNT);
  fill(b, MLP_INPUT_1_COUNT);
  if (!bad_calls_are_refused(cnn_arena)) return 4;
  if (run_both(cnn_arena, mlp_arena, first_cnn, first_mlp) != 0) return 5;
  for (i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, worker, &unequal[i]) != 0) return 6;
  for (i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    total += unequal[i];
  }
  for (i = 0; i < CNN_OUTPUT_0_COUNT; ++i) printf("%.9g\n", (double)first_cnn[i]);
  free(cnn_arena);
  free(mlp_arena);
  return total != 0;
}
