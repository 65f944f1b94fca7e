// What a stream writes may lie on what it reads, as with a single kernel (apart.cpp), but
// by rows: a row that has been read for the last time may be written over. One turn of a
// launch is a step; what is written in it counts as written before what it reads.
#include "compiler/plan/apart.h"

#include <algorithm>
#include <limits>

namespace svod::plan {

using Whole = Stream::Whole;

// The only access of its kind; none where there are others.
static const Whole* find_only(const Stream& stream, SlotId slot, bool written) {
  const auto found = std::ranges::find(stream.wholes, slot, &Whole::slot);
  if (found == stream.wholes.end() || found->written != written) return nullptr;
  return std::ranges::count(stream.wholes, slot, &Whole::slot) == 1 ? &*found : nullptr;
}

std::optional<Apart> least_apart(const Stream& stream, SlotId read, SlotId written) {
  const Whole* const from = find_only(stream, read, false);
  const Whole* const to = find_only(stream, written, true);
  if (from == nullptr || to == nullptr) return std::nullopt;
  // Rows are read in ascending order, so a row's last turn is that of the last chunk that
  // reaches back to it: when chunk c reads, rows from its first one on are still needed,
  // and the result has come as far as it was then.
  int64_t up = 0, below = 0, above = 0;
  const int64_t low = to->low * to->row_bytes;
  for_each_turn(stream, [&](size_t launch, int64_t n) {
    const int64_t chunk = n + stream.launches[launch].ahead;
    if (chunk < 0 || chunk >= stream.launches[launch].chunks) return;
    if (launch == to->launch) up = (chunk * to->step + to->high) * to->row_bytes;
    if (launch != from->launch || (up == 0 && launch != to->launch)) return;
    const int64_t first = std::max<int64_t>(0, chunk * from->step + from->low);
    const int64_t end = chunk * from->step + from->high;
    below = std::max(below, up - first * from->row_bytes);
    above = std::max(above, end * from->row_bytes - low);
  });
  return Apart{static_cast<uint64_t>(below), static_cast<uint64_t>(above)};
}

} // namespace svod::plan
