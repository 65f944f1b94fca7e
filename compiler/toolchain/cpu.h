// What LLVM knows about a CPU by name: --cpu takes its word for it.
#pragma once

#include "compiler/support/target.h"

#include <string>
#include <vector>

namespace svod::toolchain {

bool is_known_cpu(const Target& target, const std::string& cpu);

// What code for the target's triple may use and the CPU does not have, as LLVM spells it:
// "dsp". Empty when the CPU runs such code.
std::string lacks_of(const Target& target, const std::string& cpu);

// The strongest of the target's levels whose code the CPU executes; 0, its weakest, where
// levels are no matter of features that LLVM knows CPUs by.
size_t strongest_level(const Target& target, const std::string& cpu);

// This machine's CPU, as LLVM names it.
std::string host_cpu();

// All that LLVM knows for the target's architecture.
std::vector<std::string> known_cpus(const Target& target);

// `feature` as LLVM spells it: "avx512vl". False for an unknown CPU.
bool cpu_has(const Target& target, const std::string& cpu, const std::string& feature);

} // namespace svod::toolchain
