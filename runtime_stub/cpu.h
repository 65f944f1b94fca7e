// What this CPU can do, asked at run time, so that one program holds kernels for several
// levels. x86 is asked by cpuid and xgetbv (the operating system must save the registers,
// too); on AArch64 and RISC-V Linux says what the CPU has, by HWCAP of the auxiliary
// vector. Elsewhere a package has one level, chosen when packing, and needs nothing.
#ifndef SVOD_CPU_H
#define SVOD_CPU_H

#include "runtime_stub/replay.h"

enum SvodCpuFeature {
  SVOD_CPU_X86_64_V2 = 1, // SSE4.2, popcnt
  SVOD_CPU_X86_64_V3 = 2, // AVX2, FMA, BMI
  SVOD_CPU_X86_64_V4 = 4, // AVX-512 F, BW, CD, DQ, VL
  SVOD_CPU_AVX512_VNNI = 8,
  SVOD_CPU_AVX_VNNI = 16,
  SVOD_CPU_AVX512_VBMI = 32,
  SVOD_CPU_AVX512_VBMI2 = 64,
  SVOD_CPU_AVX512_IFMA = 128,
  SVOD_CPU_AVX512_BITALG = 256,
  SVOD_CPU_AVX512_VPOPCNTDQ = 512,
  SVOD_CPU_AVX512_BF16 = 1024,
  SVOD_CPU_AVX512_FP16 = 2048,
  SVOD_CPU_GFNI = 4096,
  SVOD_CPU_AMX_INT8 = 8192, // tiles of bytes; a process asks for them
  // AArch64. The same bits: a program is for one architecture.
  SVOD_CPU_DOTPROD = 1, // SDOT, UDOT
  SVOD_CPU_I8MM = 2,    // SMMLA, USDOT
  SVOD_CPU_FP16 = 4,    // arithmetic of half precision
  SVOD_CPU_SVE = 8,
  SVOD_CPU_SVE_256 = 16, // of exactly 256 bits
  // RISC-V
  SVOD_CPU_VECTORS = 1, // V
};

#ifdef __cplusplus
extern "C" {
#endif

uint32_t svod_cpu_features(void);

// Which of these features a program cannot use here; 0: it may use all of them. Asks the
// operating system for registers that belong to those who have asked.
uint32_t svod_missing_features(uint32_t needed);

// The highest packed level that runs here, -1 if none does.
int32_t svod_choose_level(const struct SvodModel* model);

#ifdef __cplusplus
}
#endif

#endif
