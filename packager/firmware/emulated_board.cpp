// Any Cortex-M library runs on QEMU's MPS3 AN547 board: its Cortex-M55 executes the code
// of all smaller cores, and 2 GiB of memory hold every model. RISC-V and AArch64 have the
// board "virt". All of them print and end by semihosting.
#include "packager/firmware/emulated_board.h"

#include <algorithm>

namespace svod::packager {

namespace {

constexpr char kCortexScript[] = R"(ENTRY(svod_reset)
MEMORY {
  RESET (rx) : ORIGIN = 0x00000000, LENGTH = 512K
  ALL (rwx) : ORIGIN = 0x60000000, LENGTH = 2048M
}
SECTIONS {
  .vectors : { KEEP(*(.vectors)) } > RESET
  .text : { *(.text*) *(.rodata*) *(.svod*) } > ALL
  .data : { *(.data*) } > ALL
  .bss : { *(.bss* COMMON) } > ALL
  .stack (NOLOAD) : { . = ALIGN(8); . += 16M; svod_stack_top = .; } > ALL
  /DISCARD/ : { *(.ARM.exidx*) }
}
)";

// The reset vector; the floating-point and the vector unit are off until asked for.
constexpr char kCortexStart[] = R"(#include <stdint.h>
extern char svod_stack_top[];
int main(void);
void svod_reset(void);
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    svod_stack_top, (const void*)svod_reset, (const void*)svod_reset,
    (const void*)svod_reset};
void svod_reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;
  __asm__ volatile("dsb\n\tisb");
  const uint32_t stopped[] = {0x20026, (uint32_t)main()};
  register uint32_t r0 __asm__("r0") = 0x20;
  register const uint32_t* r1 __asm__("r1") = stopped;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  for (;;) {
  }
}
)";

constexpr char kRiscvScript[] = R"(ENTRY(svod_reset)
MEMORY { ALL (rwx) : ORIGIN = 0x80000000, LENGTH = 1024M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata* .srodata*) *(.svod*) } > ALL
  .data : { *(.data* .sdata*) } > ALL
  .bss : { *(.sbss* .bss* COMMON) } > ALL
  .stack (NOLOAD) : { . = ALIGN(16); . += 16M; svod_stack_top = .; } > ALL
}
)";

// A trap, as of an instruction that the core lacks, has to end somewhere.
constexpr char kRiscvStart[] = R"(#include <stdint.h>
int main(void);
__asm__(".section .vectors, \"ax\"\n.globl svod_reset\nsvod_reset:\n"
        ".option push\n.option arch, +zicsr\n"
        "la sp, svod_stack_top\nla t0, svod_trap\ncsrw mtvec, t0\n"
        "li t0, 0x2000\ncsrs mstatus, t0\n.option pop\nj svod_begin\n.text\n");
static void stop(uint32_t code) {
  const uint32_t stopped[] = {0x20026, code};
  register uint32_t a0 __asm__("a0") = 0x20;
  register const uint32_t* a1 __asm__("a1") = stopped;
  __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                   "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                   : "+r"(a0) : "r"(a1) : "memory");
  for (;;) {
  }
}
__attribute__((used, aligned(4))) void svod_trap(void) { stop(3); }
__attribute__((used)) void svod_begin(void) { stop((uint32_t)main()); }
)";

constexpr char kArm64Script[] = R"(ENTRY(svod_reset)
MEMORY { ALL (rwx) : ORIGIN = 0x40080000, LENGTH = 2000M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.svod*) } > ALL
  .data : { *(.data*) } > ALL
  .bss : { *(.bss* COMMON) } > ALL
  .stack (NOLOAD) : { . = ALIGN(16); . += 16M; svod_stack_top = .; } > ALL
}
)";

// Vectors lie at any address, which only cached memory takes: a table of blocks of 1 GiB,
// each where it is, turns the MMU on.
constexpr char kArm64Start[] = R"(#include <stdint.h>
int main(void);
static uint64_t blocks[512] __attribute__((aligned(4096)));
__asm__(".section .vectors, \"ax\"\n.globl svod_reset\nsvod_reset:\n"
        "adrp x0, svod_stack_top\nadd x0, x0, :lo12:svod_stack_top\nmov sp, x0\n"
        "mov x0, #0x300000\nmsr cpacr_el1, x0\nisb\nb svod_begin\n.text\n");
#define SET(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)))
__attribute__((used)) void svod_begin(void) {
  for (uint64_t i = 0; i < 4; ++i) blocks[i] = i << 30 | 1 << 10 | 3 << 8 | 1;
  SET("mair_el1", 0xff);
  SET("tcr_el1", 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | (uint64_t)2 << 32);
  SET("ttbr0_el1", (uintptr_t)blocks);
  uint64_t control;
  __asm__ volatile("dsb sy\n\tisb\n\tmrs %0, sctlr_el1" : "=r"(control));
  SET("sctlr_el1", (control | 1 | 1 << 2 | 1 << 12) & ~(uint64_t)2);
  __asm__ volatile("isb");
  const uint64_t stopped[] = {0x20026, (uint64_t)main()};
  register uint64_t x0 __asm__("x0") = 0x20;
  register const uint64_t* x1 __asm__("x1") = stopped;
  __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
  for (;;) {
  }
}
)";

const std::vector<EmulatedBoard>& boards() {
  static const std::vector<EmulatedBoard> kBoards = {
      {"thumb",
       "qemu-system-arm",
       {"-M", "mps3-an547"},
       kCortexScript,
       kCortexStart,
       "arm-none-eabi-gcc"},
      {"riscv32",
       "qemu-system-riscv32",
       {"-M", "virt", "-m", "1G", "-bios", "none"},
       kRiscvScript,
       kRiscvStart,
       "riscv64-unknown-elf-gcc"},
      {"aarch64-none",
       "qemu-system-aarch64",
       {"-M", "virt", "-cpu", "cortex-a53", "-m", "2G"},
       kArm64Script,
       kArm64Start,
       ""},
  };
  return kBoards;
}

} // namespace

const EmulatedBoard* find_board(const Target& target) {
  const auto board = std::ranges::find_if(boards(), [&](const EmulatedBoard& one) {
    return target.triple.starts_with(one.triple);
  });
  return board == boards().end() ? nullptr : &*board;
}

} // namespace svod::packager
