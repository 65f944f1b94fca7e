// System calls of Linux by number, for the architectures a packed executable runs on: one
// table of numbers, and one instruction each.
#ifndef SVOD_SYSCALL_LINUX_H
#define SVOD_SYSCALL_LINUX_H

#include "runtime_stub/types.h"

#if defined(__x86_64__)
#define SVOD_NUMBER(x86_64, generic, arm, i386) x86_64
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define SVOD_NUMBER(x86_64, generic, arm, i386) generic
#elif defined(__arm__)
#define SVOD_NUMBER(x86_64, generic, arm, i386) arm
#elif defined(__i386__)
#define SVOD_NUMBER(x86_64, generic, arm, i386) i386
#else
#error "no Linux system calls for this architecture"
#endif

enum SvodCall {
  SVOD_CALL_READ = SVOD_NUMBER(0, 63, 3, 3),
  SVOD_CALL_WRITE = SVOD_NUMBER(1, 64, 4, 4),
  SVOD_CALL_CLOSE = SVOD_NUMBER(3, 57, 6, 6),
  SVOD_CALL_OPENAT = SVOD_NUMBER(257, 56, 322, 295),
  SVOD_CALL_READLINKAT = SVOD_NUMBER(267, 78, 332, 305),
  SVOD_CALL_STATX = SVOD_NUMBER(332, 291, 397, 383),
  SVOD_CALL_GETDENTS64 = SVOD_NUMBER(217, 61, 217, 220),
  SVOD_CALL_MKDIRAT = SVOD_NUMBER(258, 34, 323, 296),
  SVOD_CALL_MMAP =
      SVOD_NUMBER(9, 222, 192, 192), // 32 bits: mmap2, whose offset counts pages
  SVOD_CALL_MUNMAP = SVOD_NUMBER(11, 215, 91, 91),
  SVOD_CALL_MADVISE = SVOD_NUMBER(28, 233, 220, 219),
  SVOD_CALL_EXIT_GROUP = SVOD_NUMBER(231, 94, 248, 252),
  SVOD_CALL_CLOCK_GETTIME = SVOD_NUMBER(228, 113, 263, 265),
  SVOD_CALL_SCHED_GETAFFINITY = SVOD_NUMBER(204, 123, 242, 242),
  SVOD_CALL_FUTEX = SVOD_NUMBER(202, 98, 240, 240),
#if defined(__x86_64__)
  SVOD_CALL_ARCH_PRCTL = 158,
#endif
};

// Flags that more than one place must know. Files: close on exec; write, create,
// truncate. Threads share memory, files, signal handlers; `alive` is cleared by the
// kernel at the end.
enum SvodCallFlags : uint32_t {
  SVOD_REQUEST_STATE = 0x1023, // of arch_prctl: registers that a process asks to use
  SVOD_OPEN_FLAGS_READ = 02000000,
  SVOD_OPEN_FLAGS_WRITE = 02000000 | 01 | 0100 | 01000,
  SVOD_THREAD_FLAGS = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x200000,
};

// Six arguments always: registers that a call does not read cost nothing.
inline intptr_t svod_syscall(SvodCall call, uintptr_t a = 0, uintptr_t b = 0,
                             uintptr_t c = 0, uintptr_t d = 0, uintptr_t e = 0,
                             uintptr_t f = 0) {
#if defined(__x86_64__)
  register uintptr_t r10 __asm__("r10") = d;
  register uintptr_t r8 __asm__("r8") = e;
  register uintptr_t r9 __asm__("r9") = f;
  intptr_t result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(static_cast<uintptr_t>(call)), "D"(a), "S"(b), "d"(c), "r"(r10),
                     "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register uintptr_t x8 __asm__("x8") = call;
  register uintptr_t x0 __asm__("x0") = a;
  register uintptr_t x1 __asm__("x1") = b;
  register uintptr_t x2 __asm__("x2") = c;
  register uintptr_t x3 __asm__("x3") = d;
  register uintptr_t x4 __asm__("x4") = e;
  register uintptr_t x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return static_cast<intptr_t>(x0);
#elif defined(__riscv)
  register uintptr_t a7 __asm__("a7") = call;
  register uintptr_t a0 __asm__("a0") = a;
  register uintptr_t a1 __asm__("a1") = b;
  register uintptr_t a2 __asm__("a2") = c;
  register uintptr_t a3 __asm__("a3") = d;
  register uintptr_t a4 __asm__("a4") = e;
  register uintptr_t a5 __asm__("a5") = f;
  __asm__ volatile("ecall"
                   : "+r"(a0)
                   : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                   : "memory");
  return static_cast<intptr_t>(a0);
#elif defined(__i386__)
  // The first and the sixth argument wait in memory: ebp cannot be asked for.
  const uintptr_t ends[2] = {a, f};
  const uintptr_t* waiting = ends;
  intptr_t result;
  __asm__ volatile("pushl %%ebp\n\t"
                   "movl 4(%%ebx), %%ebp\n\t"
                   "movl (%%ebx), %%ebx\n\t"
                   "int $0x80\n\t"
                   "popl %%ebp"
                   : "=a"(result), "+b"(waiting)
                   : "a"(call), "c"(b), "d"(c), "S"(d), "D"(e)
                   : "memory");
  return result;
#else
  register uintptr_t r7 __asm__("r7") = call;
  register uintptr_t r0 __asm__("r0") = a;
  register uintptr_t r1 __asm__("r1") = b;
  register uintptr_t r2 __asm__("r2") = c;
  register uintptr_t r3 __asm__("r3") = d;
  register uintptr_t r4 __asm__("r4") = e;
  register uintptr_t r5 __asm__("r5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(r0)
                   : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
                   : "memory");
  return static_cast<intptr_t>(r0);
#endif
}

#endif
