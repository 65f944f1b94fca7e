/* Reads a digit on a Cortex-M4 without any C library: the picture is in flash, the answer
   leaves by semihosting, which QEMU and debug probes understand. docs/firmware.md builds
   and runs it. */
#include "libdigits.h"

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;
void reset(void);

/* Stack pointer, then where the processor begins, then what it does when all is lost. */
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    &stack_top, (const void*)reset, (const void*)reset, (const void*)reset};

static const char picture[8][9] = {"   #+   ", "  +#.+# ", "  #: #+ ", " +# ##  ",
                                   " +##### ", " +####  ", "   ##   ", "   #    "};

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES];

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

static float grey(char c) {
  return c == '#' ? 1.0f : c == '+' ? 0.67f : c == ':' || c == '.' ? 0.33f : 0.0f;
}

int main(void) {
  static float image[DIGITS_INPUT_0_COUNT], scores[DIGITS_OUTPUT_0_COUNT];
  for (int i = 0; i < 64; ++i) image[i] = grey(picture[i / 8][i % 8]);
  const void* const inputs[] = {image};
  void* const outputs[] = {scores};
  const int status = digits_run(arena, inputs, outputs);
  if (status != DIGITS_OK) {
    semihost(4, digits_status_text(status));
    return 1;
  }
  char answer[] = "this is a 0\n";
  for (int i = 1, best = 0; i < DIGITS_OUTPUT_0_COUNT; ++i)
    if (scores[i] > scores[best]) answer[10] = (char)('0' + (best = i));
  semihost(4, answer);
  return 0;
}

void reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* the floating-point unit on */
  __asm__ volatile("dsb\n\tisb");
  for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
  for (uint32_t* to = &bss_start; to < &bss_end;) *to++ = 0;
  leave(main());
}
