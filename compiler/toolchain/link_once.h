// Functions that many objects hold alike, and of which a linker keeps one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace svod::toolchain {

struct LinkOnce {
  std::string symbol; // in the object
  std::string scope;  // of the symbol: "kernel::part2", or nothing
  std::string name;   // for all objects: equal for equal code only
  uint64_t bytes = 0;
};

// Whether what a function is named for all objects says that it computes a kernel, or a
// part of one, rather than what kernels call.
bool is_kernel(const std::string& name);

// The weak functions of an ELF object, which stand in groups of their own.
std::vector<LinkOnce> link_once_functions(std::span<const std::byte> object);

} // namespace svod::toolchain
