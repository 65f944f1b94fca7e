#pragma once

#include <cstdint>

namespace svod {

// To the next multiple.
constexpr uint64_t round_up(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

} // namespace svod
