#include "compiler/kernel/schedule.h"

#include <algorithm>

namespace svod {

ExprId Kernel::add(Expr expr) {
  auto found = std::find(exprs.begin(), exprs.end(), expr);
  if (found != exprs.end()) return static_cast<ExprId>(found - exprs.begin());
  exprs.push_back(std::move(expr));
  return static_cast<ExprId>(exprs.size() - 1);
}

const RunEnd* Kernel::run_end(AxisId axis) const {
  const auto found = std::ranges::find(ends, axis, &RunEnd::axis);
  return found == ends.end() ? nullptr : &*found;
}

bool Kernel::ends_at(uint32_t argument) const {
  return std::ranges::count(ends, argument, &RunEnd::argument) != 0;
}

SortRoom::SortRoom(int64_t elements, int64_t wanted, DType dtype) {
  // Twice the wanted, and some, for the number of sorts to stay small.
  const int64_t key_bytes = byte_size(dtype) == 8 ? 8 : 4, word_bytes = 2 * key_bytes;
  const int64_t kept = 2 * wanted + 8;
  selects = kept < elements;
  words = selects ? kept : elements;
  first = selects ? (elements * key_bytes + 15) / 16 * 16 : 0;
  second = first + words * word_bytes;
  end = (second + words * word_bytes + 63) / 64 * 64;
}

} // namespace svod
