// What a compiled object costs on the device: code and constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace svod::toolchain {

struct ObjectFacts {
  uint64_t code_bytes = 0;     // executable sections
  uint64_t constant_bytes = 0; // read-only data that is loaded
  // ELF: .data and .bss and what becomes read-only after relocation
  uint64_t writable_bytes = 0;
};

ObjectFacts object_facts(std::span<const std::byte> object);

} // namespace svod::toolchain
