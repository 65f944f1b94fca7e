/* Runs a packed library once under an emulator: inputs are part of the program, outputs
   go to stdout one after the other, the exit code is the negated status. No C library:
   the entry point and the two calls of the host stand here, system calls for Linux,
   semihosting for Cortex-M boards. The test that compiles this gives sizes and places in
   infer_data.h. */
#include "infer.h"

#include "infer_data.h"

static _Alignas(INFER_ARENA_ALIGN) unsigned char arena[INFER_ARENA_BYTES + 1];
static _Alignas(64) unsigned char written[OUTPUT_BYTES + 1];
extern const unsigned char given[];

#if defined(__aarch64__)
enum { kWrite = 64, kExit = 94 };
static long call(long number, long a, long b, long c) {
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x8 __asm__("x8") = number;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
  return x0;
}
#elif defined(__arm__) && !defined(__linux__)
/* Cortex-M: the board's emulator answers calls that the core makes by a breakpoint. */
extern char stack_top[];
void _start(void);

__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    stack_top, (const void*)_start, (const void*)_start, (const void*)_start};

static long semihost(long operation, const void* argument) {
  register long r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

enum { kWrite, kExit };
static long call(long number, long a, long b, long c) {
  static const char console[] = ":tt";
  const long opened[] = {(long)console, 5, 3}, stopped[] = {0x20026, a};
  if (number == kExit) return semihost(0x20, stopped);
  const long written[] = {semihost(0x01, opened), b, c};
  return c - semihost(0x05, written);
}
#elif defined(__arm__)
enum { kWrite = 4, kExit = 248 };
static long call(long number, long a, long b, long c) {
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r7 __asm__("r7") = number;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r7) : "memory");
  return r0;
}
#elif defined(__riscv)
enum { kWrite = 64, kExit = 94 };
static long call(long number, long a, long b, long c) {
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c;
  register long a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
#elif defined(__i386__)
enum { kWrite = 4, kExit = 252 };
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c)
                   : "memory");
  return result;
}
#else
enum { kWrite = 1, kExit = 231 };
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}
#endif

/* A reset or the emulator enters here, with the stack aligned as nobody's call leaves it.
 */
#if defined(__i386__) || defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
void _start(void) {
#if defined(__ARM_FP) && !defined(__linux__) && defined(__arm__)
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* floating-point and vector unit on */
  __asm__ volatile("dsb\n\tisb");
#endif
  const void* inputs[] = {INPUTS 0};
  void* outputs[] = {OUTPUTS 0};
  const int status = infer_run(arena, inputs, outputs);
  for (long at = 0; status == 0 && at < OUTPUT_BYTES;) {
    const long wrote = call(kWrite, 1, (long)(written + at), OUTPUT_BYTES - at);
    if (wrote <= 0) break;
    at += wrote;
  }
  call(kExit, -status, 0, 0);
  for (;;) {
  }
}
