/* Firmware that runs any packed library once on a board of QEMU, without a C library: the
   inputs come as arrays (data.h, written by the test, which also names the arena and the
   outputs); outputs and the bytes of stack that the run wrote leave by semihosting. */
#include "data.h"

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;
void reset(void);

__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    &stack_top, (const void*)reset, (const void*)reset, (const void*)reset};

#define PAINTED 65536u
#define PATTERN 0xa5u

static int semihost(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void leave(int code) {
  const uint32_t arguments[2] = {0x20026, (uint32_t)code};
  semihost(0x20, arguments);
  for (;;) {
  }
}

static void print_bytes(const unsigned char* bytes, uint32_t count) {
  char text[129];
  for (uint32_t i = 0; i < count;) {
    uint32_t n = 0;
    for (; n < 128 && i < count; ++i) {
      text[n++] = "0123456789abcdef"[bytes[i] >> 4];
      text[n++] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[n] = 0;
    semihost(0x04, text);
  }
  semihost(0x04, "\n");
}

/* The callee's frames begin where this function's stack pointer is. */
__attribute__((noinline)) static uint32_t stack_of_run(int* status) {
  volatile unsigned char* top;
  __asm__ volatile("mov %0, sp" : "=r"(top));
  volatile unsigned char* bottom = top - PAINTED;
  for (volatile unsigned char* at = bottom; at < top; ++at) *at = PATTERN;
  *status = MODEL_RUN(ARENA, inputs, outputs);
  while (bottom < top && *bottom == PATTERN) ++bottom;
  return (uint32_t)(top - bottom);
}

void reset(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* the floating-point unit on */
  __asm__ volatile("dsb\n\tisb");
#endif
  for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
  for (uint32_t* to = &bss_start; to < &bss_end;) *to++ = 0;
  int status = 0;
  const uint32_t stack = stack_of_run(&status);
  if (status != 0) {
    semihost(0x04, MODEL_TEXT(status));
    leave(1);
  }
  print_bytes((const unsigned char*)&stack, sizeof stack);
  for (unsigned i = 0; i < OUTPUTS; ++i) print_bytes(outputs[i], output_bytes[i]);
  leave(0);
}
