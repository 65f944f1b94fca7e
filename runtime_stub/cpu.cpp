// Asks the CPU for its features: each row of a table is one bit that has to be set, and
// the level has it when all its rows do. On x86 these are bits of registers, and AVX
// state counts only if the operating system saves it; elsewhere Linux tells them. Tiles
// are a process's to use when it has asked for them, and its threads' then.
#include "runtime_stub/cpu.h"

#if defined(__x86_64__)

#include "runtime_stub/syscall_linux.h"

namespace {

struct Registers {
  uint32_t value[4]; // eax, ebx, ecx, edx
};

Registers cpuid(uint32_t leaf, uint32_t part) {
  Registers r;
  __asm__ volatile("cpuid"
                   : "=a"(r.value[0]), "=b"(r.value[1]), "=c"(r.value[2]),
                     "=d"(r.value[3])
                   : "a"(leaf), "c"(part));
  return r;
}

uint32_t saved_state() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

enum Register : uint8_t { EAX, EBX, ECX, EDX };

// What is asked, each once: under a hypervisor an answer takes microseconds.
enum Leaf : uint8_t { LEAF_1, LEAF_7_0, LEAF_7_1, LEAF_EXTENDED_1, LEAF_COUNT };

struct Need {
  uint32_t feature; // of SvodCpuFeature
  Leaf leaf;
  Register where;
  uint8_t bit;
};

constexpr Need kNeeds[] = {
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 0},          // SSE3
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 9},          // SSSE3
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 13},         // CMPXCHG16B
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 19},         // SSE4.1
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 20},         // SSE4.2
    {SVOD_CPU_X86_64_V2, LEAF_1, ECX, 23},         // POPCNT
    {SVOD_CPU_X86_64_V2, LEAF_EXTENDED_1, ECX, 0}, // LAHF
    {SVOD_CPU_X86_64_V3, LEAF_1, ECX, 12},         // FMA
    {SVOD_CPU_X86_64_V3, LEAF_1, ECX, 22},         // MOVBE
    {SVOD_CPU_X86_64_V3, LEAF_1, ECX, 27},         // OSXSAVE
    {SVOD_CPU_X86_64_V3, LEAF_1, ECX, 28},         // AVX
    {SVOD_CPU_X86_64_V3, LEAF_1, ECX, 29},         // F16C
    {SVOD_CPU_X86_64_V3, LEAF_7_0, EBX, 3},        // BMI1
    {SVOD_CPU_X86_64_V3, LEAF_7_0, EBX, 5},        // AVX2
    {SVOD_CPU_X86_64_V3, LEAF_7_0, EBX, 8},        // BMI2
    {SVOD_CPU_X86_64_V3, LEAF_EXTENDED_1, ECX, 5}, // LZCNT
    {SVOD_CPU_X86_64_V4, LEAF_7_0, EBX, 16},       // AVX512F
    {SVOD_CPU_X86_64_V4, LEAF_7_0, EBX, 17},       // AVX512DQ
    {SVOD_CPU_X86_64_V4, LEAF_7_0, EBX, 28},       // AVX512CD
    {SVOD_CPU_X86_64_V4, LEAF_7_0, EBX, 30},       // AVX512BW
    {SVOD_CPU_X86_64_V4, LEAF_7_0, EBX, 31},       // AVX512VL
    {SVOD_CPU_AVX512_VNNI, LEAF_7_0, ECX, 11},
    {SVOD_CPU_AVX_VNNI, LEAF_7_1, EAX, 4},
    {SVOD_CPU_AVX512_VBMI, LEAF_7_0, ECX, 1},
    {SVOD_CPU_AVX512_VBMI2, LEAF_7_0, ECX, 6},
    {SVOD_CPU_AVX512_IFMA, LEAF_7_0, EBX, 21},
    {SVOD_CPU_AVX512_BITALG, LEAF_7_0, ECX, 12},
    {SVOD_CPU_AVX512_VPOPCNTDQ, LEAF_7_0, ECX, 14},
    {SVOD_CPU_AVX512_BF16, LEAF_7_1, EAX, 5},
    {SVOD_CPU_AVX512_FP16, LEAF_7_0, EDX, 23},
    {SVOD_CPU_GFNI, LEAF_7_0, ECX, 8},
    {SVOD_CPU_AMX_INT8, LEAF_7_0, EDX, 24}, // AMX-TILE
    {SVOD_CPU_AMX_INT8, LEAF_7_0, EDX, 25},
};

// What stands on what: without the lower level, or its saved registers, a bit means
// nothing.
constexpr uint32_t kAvxState = 0x6, kAvx512State = 0xe6;

struct Answers {
  Registers leaves[LEAF_COUNT];
};

// A leaf beyond the highest answers with zeros.
Answers ask() {
  Answers out = {};
  uint32_t highest = cpuid(0, 0).value[EAX];
  if (highest >= 1) out.leaves[LEAF_1] = cpuid(1, 0);
  if (highest >= 7) {
    out.leaves[LEAF_7_0] = cpuid(7, 0);
    if (out.leaves[LEAF_7_0].value[EAX] >= 1) out.leaves[LEAF_7_1] = cpuid(7, 1);
  }
  if (cpuid(0x80000000, 0).value[EAX] > 0x80000000) {
    out.leaves[LEAF_EXTENDED_1] = cpuid(0x80000001, 0);
  }
  return out;
}

} // namespace

uint32_t svod_cpu_features(void) {
  uint32_t features = 0;
  for (const Need& need : kNeeds) features |= need.feature;
  Answers answers = ask();
  for (const Need& need : kNeeds) {
    uint32_t bits = answers.leaves[need.leaf].value[need.where];
    if (!(bits >> need.bit & 1)) features &= ~need.feature;
  }
  uint32_t state = features & SVOD_CPU_X86_64_V3 ? saved_state() : 0;
  if (!(features & SVOD_CPU_X86_64_V2) || (state & kAvxState) != kAvxState) {
    return features & SVOD_CPU_X86_64_V2;
  }
  if (!(features & SVOD_CPU_X86_64_V4) || (state & kAvx512State) != kAvx512State) {
    features &=
        SVOD_CPU_X86_64_V2 | SVOD_CPU_X86_64_V3 | SVOD_CPU_AVX_VNNI | SVOD_CPU_GFNI;
  }
  return features;
}

#elif defined(__linux__) && (defined(__aarch64__) || defined(__riscv))

#include "runtime_stub/syscall_linux.h"

namespace {

// Of the auxiliary vector, asm/hwcap.h of Linux.
constexpr uint64_t kHwcap = 16, kHwcap2 = 26;

struct Need {
  uint32_t feature; // of SvodCpuFeature
  uint64_t key;
  uint8_t bit;
};

constexpr Need kNeeds[] = {
#if defined(__aarch64__)
    {SVOD_CPU_DOTPROD, kHwcap, 20}, // ASIMDDP
    {SVOD_CPU_I8MM, kHwcap2, 13},
    {SVOD_CPU_FP16, kHwcap, 10}, // ASIMDHP
    {SVOD_CPU_SVE, kHwcap, 22},
#else
    {SVOD_CPU_VECTORS, kHwcap, 'v' - 'a'},
#endif
};

// The auxiliary vector as the system shows it, which a library finds without the stack
// that its program began with. Nothing of it where there is no /proc.
struct Auxiliary {
  uint64_t words[128]; // keys and values in turns
  uintptr_t count;
};

Auxiliary read_auxiliary() {
  constexpr intptr_t kHere = -100; // AT_FDCWD: the path is absolute
  Auxiliary out = {};
  const intptr_t file =
      svod_syscall(SVOD_CALL_OPENAT, static_cast<uintptr_t>(kHere),
                   reinterpret_cast<uintptr_t>("/proc/self/auxv"), 0, 0);
  if (file < 0) return out;
  const intptr_t bytes =
      svod_syscall(SVOD_CALL_READ, static_cast<uintptr_t>(file),
                   reinterpret_cast<uintptr_t>(out.words), sizeof(out.words));
  svod_syscall(SVOD_CALL_CLOSE, static_cast<uintptr_t>(file));
  if (bytes > 0) out.count = static_cast<uintptr_t>(bytes) / sizeof(out.words[0]);
  return out;
}

uint64_t value_of(const Auxiliary& all, uint64_t key) {
  for (uintptr_t i = 0; i + 1 < all.count; i += 2)
    if (all.words[i] == key) return all.words[i + 1];
  return 0;
}

#if defined(__aarch64__)
// Bytes of a vector: `rdvl x0, #1`, written as a number because this file is compiled for
// CPUs without SVE.
uintptr_t vector_bytes() {
  register uintptr_t bytes __asm__("x0");
  __asm__(".inst 0x04bf5020" : "=r"(bytes));
  return bytes;
}
#endif

#if defined(__riscv)
// Whether a vector has the 128 bits that kernels count on: CSR vlenb, its bytes.
bool has_long_vectors() {
  uintptr_t bytes;
  __asm__("csrr %0, 0xc22" : "=r"(bytes));
  return bytes >= 16;
}
#endif

} // namespace

uint32_t svod_cpu_features(void) {
  uint32_t features = 0;
  const Auxiliary all = read_auxiliary();
  for (const Need& need : kNeeds)
    if (value_of(all, need.key) >> need.bit & 1) features |= need.feature;
#if defined(__aarch64__)
  // Kernels count on vectors of one length, neither shorter nor longer ones.
  if (features & SVOD_CPU_SVE && vector_bytes() == 32) features |= SVOD_CPU_SVE_256;
#elif defined(__riscv)
  if (features & SVOD_CPU_VECTORS && !has_long_vectors()) features &= ~SVOD_CPU_VECTORS;
#endif
  return features;
}

#else

uint32_t svod_cpu_features(void) { return 0; }

#endif

// Of features that the CPU has.
static uint32_t refused(uint32_t needed) {
#if defined(__x86_64__)
  // Linux keeps tiles, 8 KB for each thread, only for processes that have asked. One that
  // saves none refuses, and so does one where the stack for signals is too small.
  constexpr uintptr_t kTileData = 18;
  const bool asks = needed & SVOD_CPU_AMX_INT8;
  if (asks && svod_syscall(SVOD_CALL_ARCH_PRCTL, SVOD_REQUEST_STATE, kTileData) != 0) {
    return SVOD_CPU_AMX_INT8;
  }
#endif
  (void)needed;
  return 0;
}

static uint32_t missing_of(uint32_t features, uint32_t needed) {
  const uint32_t missing = needed & ~features;
  return missing != 0 ? missing : refused(needed);
}

uint32_t svod_missing_features(uint32_t needed) {
  return missing_of(svod_cpu_features(), needed);
}

int32_t svod_choose_level(const SvodModel* model) {
  uint32_t features = svod_cpu_features();
  for (uint32_t level = model->level_count; level-- > 0;) {
    if (missing_of(features, model->levels[level].features) == 0) {
      return static_cast<int32_t>(level);
    }
  }
  return -1;
}
