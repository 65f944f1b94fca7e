// What a compiled object costs on the device: code, constants, and the stack its
// functions take (for objects compiled with -fstack-size-section).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace svod::toolchain {

struct ObjectFacts {
  uint64_t code_bytes = 0;     // executable sections
  uint64_t constant_bytes = 0; // read-only data that is loaded
  uint64_t writable_bytes =
      0;                    // .data and .bss and what becomes read-only after relocation
  uint64_t stack_bytes = 0; // of all its functions together, with their return addresses
};

ObjectFacts object_facts(std::span<const std::byte> object);

} // namespace svod::toolchain
