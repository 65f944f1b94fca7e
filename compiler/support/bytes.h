// Bytes that are text.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace svod {

// The same memory.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace svod
