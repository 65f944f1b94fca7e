// A counter of this processor that any program may read without a system call. Its rate
// is the processor's own, so only spans of it compare. 0 where there is none.
#ifndef SVOD_TICKS_H
#define SVOD_TICKS_H

#include "runtime_stub/types.h"

static inline uint64_t svod_ticks(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#elif defined(__riscv) && __riscv_xlen == 64
  uint64_t ticks;
  __asm__ volatile("rdtime %0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

#endif
