#include "compiler/kernel/schedule.h"

#include <algorithm>

namespace svod {

int tile_count(const std::vector<TileAxis>& tile, AxisId axis) {
  for (const TileAxis& t : tile)
    if (t.axis == axis) return t.count;
  return 1;
}

int64_t tile_points(const std::vector<TileAxis>& tile) {
  int64_t points = 1;
  for (const TileAxis& t : tile) points *= t.count;
  return points;
}

std::span<const ScheduledKernel> Kernel::parts() const {
  const Sequence* s = sequence();
  return s ? std::span<const ScheduledKernel>(s->parts)
           : std::span<const ScheduledKernel>();
}

std::span<ScheduledKernel> Kernel::parts() {
  Sequence* s = sequence();
  return s ? std::span<ScheduledKernel>(s->parts) : std::span<ScheduledKernel>();
}

int64_t ScheduledKernel::chunk_count() const {
  int64_t count = 1;
  for (const ChunkAxis& c : loops.chunks)
    count *= (indices.extent(c.axis) + c.block - 1) / c.block;
  return count;
}

Loops plain_loops(const Kernel& kernel) {
  Loops loops;
  loops.outer = kernel.outer;
  for (const Stage& s : kernel.stages) loops.inner.push_back(s.inner);
  return loops;
}

std::vector<int64_t> range_lengths(const ScheduledKernel& k, AxisId axis, bool first,
                                   bool last) {
  const int64_t extent = k.indices.extent(axis);
  int64_t block = extent;
  for (const ChunkAxis& c : k.loops.chunks)
    if (c.axis == axis) block = c.block;
  const int64_t parts = (extent + block - 1) / block, rest = extent - (parts - 1) * block;
  if (parts == 1) return {extent - first - last};
  std::vector<int64_t> lengths = {block - first, rest - last};
  if (parts > 2) lengths.push_back(block);
  return lengths;
}

int64_t tile_trips(const ScheduledKernel& k, const std::vector<TileAxis>& tile,
                   AxisId axis) {
  const int64_t count = tile_count(tile, axis);
  return (std::ranges::max(range_lengths(k, axis, false, false)) + count - 1) / count;
}

} // namespace svod
