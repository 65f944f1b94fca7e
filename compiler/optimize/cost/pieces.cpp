#include "compiler/optimize/cost/pieces.h"

#include "compiler/kernel/lane_facts.h"

#include <algorithm>
#include <map>

namespace svod::cost {

namespace {

struct Ends {
  bool first = false, last = false;
};

// {positions together: how often} along one axis.
std::map<int, double> cuts_of(const ScheduledKernel& k, AxisId axis, int count,
                              const Ends& ends) {
  std::map<int, double> out;
  const int64_t extent = k.indices.extent(axis);
  int64_t block = extent;
  for (const ChunkAxis& c : k.loops.chunks)
    if (c.axis == axis) block = c.block;
  for (int64_t low = 0; low < extent; low += block) {
    const int64_t high = std::min(extent, low + block);
    int64_t length = high - low;
    if (ends.first && low == 0) --length, out[1] += 1;
    if (ends.last && high == extent && length > 0) --length, out[1] += 1;
    const int64_t whole = length / count, rest = length % count;
    if (whole > 0) out[count] += double(whole);
    if (rest > 0) out[static_cast<int>(rest)] += 1;
  }
  return out;
}

} // namespace

std::vector<Piece> pieces_of(const ScheduledKernel& k, const LevelSchedule& how) {
  std::vector<Range> ranges;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    ranges.push_back({0, k.indices.extent(a) - 1});
  std::vector<Ends> ends(k.indices.axis_count());
  for (AxisId a : k.loops.outer) {
    if (k.is_lane(a) || k.indices.extent(a) == 1) continue;
    ends[a] = {ends_apart(k, how.peeled, a, false, ranges),
               ends_apart(k, how.peeled, a, true, ranges)};
  }
  std::vector<Piece> out = {{}};
  for (AxisId a : k.loops.outer) {
    const int64_t extent = k.indices.extent(a);
    if (k.is_lane(a) || extent == 1) continue;
    const int count = std::max(1, tile_count(how.tile, a));
    const std::map<int, double> cuts = cuts_of(k, a, count, ends[a]);
    std::vector<Piece> more;
    for (const Piece& piece : out)
      for (const auto& [size, times] : cuts) {
        Piece next = piece;
        if (size > 1) next.counts.emplace_back(a, size);
        next.times *= times;
        next.around = Around{a, std::max(1.0, times)};
        more.push_back(std::move(next));
      }
    out = std::move(more);
  }
  for (AxisId a : k.loops.outer) {
    if (ends[a].first && ranges[a].low < ranges[a].high) ++ranges[a].low;
    if (ends[a].last && ranges[a].low < ranges[a].high) --ranges[a].high;
  }
  for (Piece& piece : out) piece.ranges = ranges;
  return out;
}

} // namespace svod::cost
