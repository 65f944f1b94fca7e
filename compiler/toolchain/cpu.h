// What LLVM knows about a CPU by name: --cpu takes its word for it.
#pragma once

#include "compiler/support/target.h"

namespace svod::toolchain {

bool is_known_cpu(const Target& target, const std::string& cpu);

// `feature` as LLVM spells it: "avx512vl". False for an unknown CPU.
bool cpu_has(const Target& target, const std::string& cpu, const std::string& feature);

} // namespace svod::toolchain
