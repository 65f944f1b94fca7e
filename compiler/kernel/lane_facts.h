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

// Lanes that read elements of one vector, as those of a group of channels share its
// inputs: lane l reads element lanes[l] + moved of the vector at `block`, `moved` being
// the same for all lanes.
struct ShuffledLanes {
  Index block, moved;
  std::vector<int> lanes;
};
// Nothing where lanes read neighbours or elsewhere, or where some element of the vector
// is never read, and so may be none.
std::optional<ShuffledLanes> shuffled_lanes(const ScheduledKernel& kernel,
                                            const Expr& load);
// Whether lanes of some load do so.
bool shuffles_lanes(const ScheduledKernel& kernel);

// Where lanes of a load read: all the same element, neighbours, elements a fixed number
// apart, elements of one vector, or anywhere.
enum class LaneAccess { Same, Neighbours, Strided, Shuffled, Gathered };
// Of a kernel with lanes.
LaneAccess lane_access(const ScheduledKernel& kernel, const Expr& load);

// A register tile, and what it costs.
struct Tile {
  std::vector<TileAxis> counts;
  double cost = 0; // of one position and step of a reduction, in instructions
  int count(AxisId axis) const { return tile_count(counts, axis); }
  int64_t points() const { return tile_points(counts); }
};

// Positions, at most `lanes`, that are neighbours in what the stage writes, those of the
// innermost axis last. `lane` is no such axis.
Tile neighbours_in(const ScheduledKernel& kernel, const Stage& stage, AxisId lane,
                   int lanes);

// Positions of a tile that are neighbours in what the stage writes, where its lanes lie
// apart: a run of so many columns, of which the tile has several where it has more
// positions. 1 where an axis of the tile has no one distance.
int64_t columns_of_tile(const ScheduledKernel& kernel, const Stage& stage,
                        const std::vector<TileAxis>& tile);

// Loads of the first stage that all lanes share, where it is a sum of products.
std::vector<ExprId> shared_factors(const ScheduledKernel& kernel);

// Whether the first (or, `high`, the last) position of the axis is the only one, within
// `ranges` of all axes, where a condition on lanes can fail.
bool lane_condition_ends(const ScheduledKernel& kernel, AxisId axis, bool high,
                         const std::vector<Range>& ranges);
// Likewise a condition of what all lanes of a sum of products share: a picture is read
// past its edge.
bool shared_condition_ends(const ScheduledKernel& kernel, AxisId axis, bool high,
                           const std::vector<Range>& ranges);
// Whether loops over the axis emit that position apart.
bool ends_apart(const ScheduledKernel& kernel, const std::vector<PeeledAxis>& peeled,
                AxisId axis, bool high, const std::vector<Range>& ranges);

} // namespace svod
