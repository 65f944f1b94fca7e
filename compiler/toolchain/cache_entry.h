// One entry of the cache as its file has it: a header, and the value behind it,
// compressed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace svod::toolchain {

struct EntryHeader {
  char magic[8];
  uint64_t size;     // of what follows
  uint64_t unpacked; // of the value
  std::array<uint8_t, 32> sha256;
};

// The header of an entry of this value, which is `packed` there.
EntryHeader entry_header(std::span<const std::byte> packed, uint64_t unpacked);

std::vector<std::byte> entry_of(std::span<const std::byte> value);

// Nothing where the entry is foreign, cut or damaged, or where its value would be larger
// than `most`.
std::optional<std::vector<std::byte>> value_of(std::span<const std::byte> entry,
                                               uint64_t most = UINT64_MAX);

} // namespace svod::toolchain
