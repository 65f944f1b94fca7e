// What a kernel says about its lanes: which loads follow them and how, where conditions
// on them can fail, and which positions are neighbours in memory.
#pragma once

#include "compiler/kernel/stage_work.h"

#include <optional>

namespace svod {

// Lanes so many elements apart are read as whole vectors and shuffled.
inline constexpr int64_t kNearLanes = 4;

// Loads below an expression that take each lane from where data says.
int gathers_below(const ScheduledKernel& kernel, ExprId root);

// Unrolled positions per axis: the register tile.
struct Tile {
  std::vector<std::pair<AxisId, int>> counts;
  double cost = 0; // of one position and step of a reduction, in instructions
  int count(AxisId axis) const {
    for (auto [a, n] : counts)
      if (a == axis) return n;
    return 1;
  }
  int64_t points() const {
    int64_t points = 1;
    for (auto [a, n] : counts) points *= n;
    return points;
  }
};

// Positions, at most `lanes`, that are neighbours in what the stage writes, those of the
// innermost axis last. `lane` is no such axis.
Tile neighbours_in(const ScheduledKernel& kernel, const Stage& stage, AxisId lane,
                   int lanes);

// Whether the first (or, `high`, the last) position of a long axis is the only one where
// what all lanes of a sum of products share is read past an edge, within `ranges` of all
// axes.
bool leaves_picture(const ScheduledKernel& kernel, AxisId axis, bool high,
                    const std::vector<Range>& ranges);
// Likewise, or the only one where a condition on lanes can fail. Loops emit it apart.
bool ends_apart(const ScheduledKernel& kernel, AxisId axis, bool high,
                const std::vector<Range>& ranges);

} // namespace svod
