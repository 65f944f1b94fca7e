// One row of the usual table of distances is kept: names are short, and so is the stack.
#include "runtime_stub/program/nearest.h"

namespace packed {

static uint32_t distance(Text a, Text b) {
  constexpr uint64_t kMostCompared = 63; // bytes of a name
  if (a.size > kMostCompared) a = a.first(kMostCompared);
  if (b.size > kMostCompared) b = b.first(kMostCompared);
  uint8_t row[kMostCompared + 1];
  for (uint64_t i = 0; i <= b.size; i++) row[i] = static_cast<uint8_t>(i);
  for (uint64_t i = 0; i < a.size; i++) {
    uint8_t corner = row[0];
    row[0] = static_cast<uint8_t>(i + 1);
    for (uint64_t k = 0; k < b.size; k++) {
      const auto replaced = static_cast<uint8_t>(corner + (a.data[i] != b.data[k]));
      corner = row[k + 1];
      const auto moved = static_cast<uint8_t>((corner < row[k] ? corner : row[k]) + 1);
      row[k + 1] = replaced < moved ? replaced : moved;
    }
  }
  return row[b.size];
}

void Nearest::consider(Text name) {
  const uint32_t away = distance(given_, name);
  if (away >= away_) return;
  away_ = away;
  name_ = name;
}

} // namespace packed
