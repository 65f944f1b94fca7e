// Where a packed executable starts: _start hands the stack pointer to svod_start, which
// finds argv and envp above it, applies the relocations of a static PIE (only "add the
// load address" can occur; anything else is a fault of the link) and calls svod_main.
// Until the relocations are done no stored pointer may be read; code reaches its data
// relative to itself.
#include "runtime_stub/platform.h"

namespace {

struct Dynamic {
  intptr_t tag;
  uintptr_t value;
};

enum Tag : intptr_t {
  TAG_RELA = 7,
  TAG_RELA_BYTES = 8,
  TAG_REL = 17,
  TAG_REL_BYTES = 18,
};

struct Relocation {
  uintptr_t offset;
  uintptr_t info;
#if !defined(__arm__)
  intptr_t addend; // arm keeps it in place
#endif
};

#if defined(__x86_64__)
constexpr uintptr_t kRelative = 8;
#elif defined(__aarch64__)
constexpr uintptr_t kRelative = 1027;
#elif defined(__riscv)
constexpr uintptr_t kRelative = 3;
#else
constexpr uintptr_t kRelative = 23;
#endif

constexpr int32_t kCannotStart = 127;

} // namespace

extern "C" {

// Both made by the linker, and hidden: reached without the table that relocations fill.
extern const Dynamic _DYNAMIC[] __attribute__((visibility("hidden")));
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

[[noreturn, gnu::used, gnu::visibility("hidden")]] void svod_start(uintptr_t* stack);

} // extern "C"

namespace {

void relocate() {
  uintptr_t base = reinterpret_cast<uintptr_t>(__ehdr_start);
  uintptr_t table = 0, bytes = 0;
  for (const Dynamic* entry = _DYNAMIC; entry->tag != 0; entry++) {
    if (entry->tag == TAG_RELA || entry->tag == TAG_REL) table = base + entry->value;
    if (entry->tag == TAG_RELA_BYTES || entry->tag == TAG_REL_BYTES) bytes = entry->value;
  }
  const Relocation* relocation = reinterpret_cast<const Relocation*>(table);
  for (uintptr_t i = 0; i * sizeof(Relocation) < bytes; i++) {
    if (relocation[i].info != kRelative) svod_exit(kCannotStart);
    uintptr_t* place = reinterpret_cast<uintptr_t*>(base + relocation[i].offset);
#if defined(__arm__)
    *place += base;
#else
    *place = base + static_cast<uintptr_t>(relocation[i].addend);
#endif
  }
}

} // namespace

void svod_start(uintptr_t* stack) {
  relocate();
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
