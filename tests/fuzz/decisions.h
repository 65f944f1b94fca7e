// Bytes as decisions: each takes some from the front. Behind the end all are 0, so that
// every text of bytes means something and a shorter one means something simpler.
#pragma once

#include "tests/fuzz/target.h"

#include <algorithm>

namespace svod::fuzz {

class Decisions {
public:
  explicit Decisions(Bytes bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const uint8_t out = rest_.front();
    rest_ = rest_.subspan(1);
    return out;
  }
  // Of [0, end), end at most 65536.
  size_t below(size_t end) {
    if (end < 2) return 0;
    return (end <= 256 ? byte() : static_cast<size_t>(byte() << 8 | byte())) % end;
  }
  bool chance(int of_256) { return byte() >= 256 - of_256; }
  template <class List> const auto& one_of(const List& list) {
    return list[below(std::size(list))];
  }
  uint32_t word() {
    uint32_t out = 0;
    for (int i = 0; i < 4; ++i) out = out << 8 | byte();
    return out;
  }
  Bytes take(size_t bytes) {
    const Bytes out = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return out;
  }
  Bytes rest() { return take(rest_.size()); }

private:
  Bytes rest_;
};

} // namespace svod::fuzz
