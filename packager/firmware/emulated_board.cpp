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

// The reset vector and SysTick's; the floating-point and the vector unit are off until
// asked for. SysTick counts 24 bits down, 32 million times a second.
constexpr char kCortexStart[] = R"(#include <stdint.h>
extern char svod_stack_top[];
void svod_begin(void);
void svod_reset(void);
void svod_wrap(void);
__attribute__((section(".vectors"), used)) static const void* const vectors[16] = {
    svod_stack_top, (const void*)svod_reset, (const void*)svod_reset,
    (const void*)svod_reset, [15] = (const void*)svod_wrap};
static volatile uint32_t wraps;
void svod_wrap(void) { ++wraps; }
uint64_t svod_now(void) {
  volatile uint32_t* const timer = (volatile uint32_t*)0xE000E010;
  uint32_t before, left;
  do before = wraps, left = timer[2];
  while (before != wraps);
  return ((uint64_t)before << 24) + (0xffffffu - left);
}
static void semihost(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
void svod_reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;
  __asm__ volatile("dsb\n\tisb");
  volatile uint32_t* const timer = (volatile uint32_t*)0xE000E010;
  timer[1] = 0xffffff;
  timer[2] = 0;
  timer[0] = 7;
  svod_begin();
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
__asm__(".section .vectors, \"ax\"\n.globl svod_reset\nsvod_reset:\n"
        ".option push\n.option arch, +zicsr\n"
        "la sp, svod_stack_top\nla t0, svod_trap\ncsrw mtvec, t0\n"
        "li t0, 0x2000\ncsrs mstatus, t0\n.option pop\nj svod_begin\n.text\n");
static void semihost(uint32_t operation, const void* argument) {
  register uint32_t a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = argument;
  __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                   "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                   : "+r"(a0) : "r"(a1) : "memory");
}
uint64_t svod_now(void) {
  uint32_t high, low, again;
  do
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstreth\n"
                     "csrr %1, minstret\ncsrr %2, minstreth\n.option pop"
                     : "=&r"(high), "=&r"(low), "=&r"(again));
  while (high != again);
  return (uint64_t)high << 32 | low;
}
__attribute__((used, aligned(4))) void svod_trap(void) {
  const uint32_t stopped[] = {0x20026, 3};
  semihost(0x20, stopped);
}
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
void svod_begin(void);
static uint64_t blocks[512] __attribute__((aligned(4096)));
__asm__(".section .vectors, \"ax\"\n.globl svod_reset\nsvod_reset:\n"
        "adrp x0, svod_stack_top\nadd x0, x0, :lo12:svod_stack_top\nmov sp, x0\n"
        "mov x0, #0x300000\nmsr cpacr_el1, x0\nisb\nb svod_map\n.text\n");
#define SET(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)))
static void semihost(uint64_t operation, const void* argument) {
  register uint64_t x0 __asm__("x0") = operation;
  register const void* x1 __asm__("x1") = argument;
  __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
}
uint64_t svod_now(void) {
  uint64_t count;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(count));
  return count;
}
__attribute__((used)) void svod_map(void) {
  for (uint64_t i = 0; i < 4; ++i) blocks[i] = i << 30 | 1 << 10 | 3 << 8 | 1;
  SET("mair_el1", 0xff);
  SET("tcr_el1", 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | (uint64_t)2 << 32);
  SET("ttbr0_el1", (uintptr_t)blocks);
  uint64_t control;
  __asm__ volatile("dsb sy\n\tisb\n\tmrs %0, sctlr_el1" : "=r"(control));
  SET("sctlr_el1", (control | 1 | 1 << 2 | 1 << 12) & ~(uint64_t)2);
  __asm__ volatile("isb");
  svod_begin();
}
)";

// What follows the board's own.
constexpr char kCommon[] = R"(
int main(void);
__attribute__((used)) void svod_begin(void) {
  const uintptr_t stopped[] = {0x20026, (uintptr_t)main()};
  semihost(0x20, stopped);
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
       "arm-none-eabi-gcc",
       "shift=5",
       32.0 / 31.25},
      {"riscv32",
       "qemu-system-riscv32",
       {"-M", "virt", "-m", "1G", "-bios", "none", "-nic", "none"},
       kRiscvScript,
       kRiscvStart,
       "riscv64-unknown-elf-gcc",
       "shift=0",
       1},
      {"aarch64-none",
       "qemu-system-aarch64",
       {"-M", "virt", "-cpu", "cortex-a53", "-m", "2G", "-nic", "none"},
       kArm64Script,
       kArm64Start,
       "",
       "shift=4",
       1},
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

std::string start_text(const EmulatedBoard& board) {
  return std::string(board.start) + kCommon;
}

} // namespace svod::packager
