// Whether the loops that multiply keep their values in registers: read from the machine
// code, since nothing before it can tell.
#pragma once

#include "compiler/support/target.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace svod::toolchain {

// Of the innermost loops with many vector multiplications.
struct SpillFacts {
  uint64_t loops = 0;    // all of them
  uint64_t spilling = 0; // those that read or write vectors in the stack frame
  uint64_t accesses = 0; // instructions that do, in these
  uint64_t products = 0; // vector multiplications in these
};

// Of an object of ours; nothing for a target whose instructions are not read.
SpillFacts spill_facts(const Target& target, std::span<const std::byte> object);

} // namespace svod::toolchain
