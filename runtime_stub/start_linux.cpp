// Where a packed executable starts: _start hands the stack pointer to svod_start, which
// finds argv and envp above it and calls svod_main. A static PIE would relocate itself
// here; ours holds no pointer that needs it, and the linker's result is refused if it
// does.
#include "runtime_stub/platform.h"

extern "C" [[noreturn, gnu::used, gnu::visibility("hidden")]] void
svod_start(uintptr_t* stack);

void svod_start(uintptr_t* stack) {
  int32_t argc = static_cast<int32_t>(stack[0]);
  char** argv = reinterpret_cast<char**>(stack + 1);
  svod_exit(svod_main(argc, argv, argv + argc + 1));
}

#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl _start
  .type _start, @function
_start:
  xorl %ebp, %ebp
  movq %rsp, %rdi
  andq $-16, %rsp
  callq svod_start
  .size _start, . - _start
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl _start
  .type _start, %function
_start:
  mov x29, #0
  mov x30, #0
  mov x0, sp
  bl svod_start
  .size _start, . - _start
)");
#elif defined(__i386__)
__asm__(R"(
  .text
  .globl _start
  .type _start, @function
_start:
  xorl %ebp, %ebp
  movl %esp, %eax
  andl $-16, %esp
  subl $12, %esp
  pushl %eax
  call svod_start
  .size _start, . - _start
)");
#elif defined(__riscv)
__asm__(R"(
  .text
  .globl _start
  .type _start, @function
_start:
  mv a0, sp
  andi sp, sp, -16
  call svod_start
  .size _start, . - _start
)");
#else
__asm__(R"(
  .text
  .arm
  .p2align 2
  .globl _start
  .type _start, %function
_start:
  mov r11, #0
  mov lr, #0
  mov r0, sp
  bic sp, sp, #7
  bl svod_start
  .size _start, . - _start
)");
#endif
