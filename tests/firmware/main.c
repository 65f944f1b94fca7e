/* Firmware that runs the packed digits library on a Cortex-M4 without any C library: the
   samples come as arrays (samples.h, written by the test), the scores leave by
   semihosting as hexadecimal floats. */
#include "digits.h"
#include "samples.h"

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;
void reset(void);

__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    &stack_top, (const void*)reset, (const void*)reset, (const void*)reset};

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES + 1];
static _Alignas(DIGITS_ARENA_ALIGN) float image[DIGITS_INPUT_0_COUNT];
static _Alignas(DIGITS_ARENA_ALIGN) float scores[DIGITS_OUTPUT_0_COUNT];

static int semihost(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void print(const char* text) { semihost(0x04, text); }

static void leave(int code) {
  const uint32_t arguments[2] = {0x20026, (uint32_t)code};
  semihost(0x20, arguments);
  for (;;) {
  }
}

static void print_bits(float value) {
  union {
    float f;
    uint32_t u;
  } bits = {value};
  char text[10] = "00000000 ";
  for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[bits.u >> (28 - 4 * i) & 15];
  print(text);
}

void reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* the floating-point unit on */
  __asm__ volatile("dsb\n\tisb");
  for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
  for (uint32_t* to = &bss_start; to < &bss_end;) *to++ = 0;
  for (int k = 0; k < SAMPLE_COUNT; ++k) {
    for (unsigned i = 0; i < DIGITS_INPUT_0_COUNT; ++i) image[i] = samples[k][i];
    const void* const inputs[] = {image};
    void* const outputs[] = {scores};
    int status = digits_run(arena, inputs, outputs);
    if (status != 0) {
      print(digits_status_text(status));
      leave(1);
    }
    for (unsigned i = 0; i < DIGITS_OUTPUT_0_COUNT; ++i) print_bits(scores[i]);
    print("\n");
  }
  leave(0);
}
