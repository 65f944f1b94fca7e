// Sizes and counts as words of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace svod::packager {

// Digits alone, of a number that stays in 64 bits by far.
inline std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || value >= int64_t{1} << 58) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return text.empty() ? std::nullopt : std::optional(value);
}

} // namespace svod::packager
