// The tiles of a kernel by their size: whole ones, remainders of an axis or of a chunk,
// and the ends of axes that are emitted apart.
#pragma once

#include "compiler/kernel/schedule.h"

#include <optional>

namespace svod::cost {

// The innermost loop around the tile.
struct Around {
  AxisId axis = 0;
  double trips = 1;
};

struct Piece {
  std::vector<TileAxis> counts;
  double times = 1;          // tiles of this size
  std::vector<Range> ranges; // of all axes, without the ends that are emitted apart
  std::optional<Around> around;
  int points() const { return static_cast<int>(tile_points(counts)); }
};

std::vector<Piece> pieces_of(const ScheduledKernel& kernel, const LevelSchedule& how);

} // namespace svod::cost
