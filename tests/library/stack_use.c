/* Runs a model on a stack of its own that was filled with a pattern, and prints how many
   bytes of it were written. */
#define _GNU_SOURCE
#include "libdigits.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define STACK (1 << 20)
static _Alignas(64) unsigned char stack[STACK], arena[DIGITS_ARENA_BYTES];
static float image[DIGITS_INPUT_0_COUNT], scores[DIGITS_OUTPUT_0_COUNT];
static ucontext_t here, there;
static int status;

static void nothing(void) {}
static void call(void) {
  const void* inputs[] = {image};
  void* outputs[] = {scores};
  status = digits_run(arena, inputs, outputs);
}

static unsigned used(void (*function)(void)) {
  unsigned untouched = 0;
  memset(stack, 0xa5, sizeof stack);
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof stack;
  there.uc_link = &here;
  makecontext(&there, function, 0);
  swapcontext(&here, &there);
  while (untouched < STACK && stack[untouched] == 0xa5) untouched++;
  return STACK - untouched;
}

int main(void) {
  unsigned alone = used(nothing), with = used(call);
  printf("%u\n", with - alone);
  return status;
}
