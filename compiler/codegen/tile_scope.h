// Where in a kernel text is emitted: the loops around it with what is known of their
// ranges, and the size of the register tile there.
#pragma once

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/lane_facts.h"

#include <string>
#include <vector>

namespace svod::codegen {

class TileScope {
public:
  // Both outlive the scope. `kernel` has vectors as long as `how` says.
  TileScope(const ScheduledKernel& kernel, const LevelSchedule& how);

protected:
  // A position within the register tile, and one of the steps that are taken together:
  // an offset for each of axes_.
  using Point = std::vector<int>;

  std::vector<Point> points() const;
  int64_t tile_points() const; // as many
  // `p` in all steps of the stage that are taken together.
  std::vector<Point> steps_together(const Stage& s, const Point& p) const;
  // How many of them are along one axis.
  int together_along(const Stage& s, AxisId axis) const {
    return tile_count(how(s).together, axis);
  }
  int offset_of(AxisId axis, const Point& p) const;
  // Of all axes, where a point of the tile is.
  std::vector<Range> ranges_at(const Point& p) const;
  bool holds(const Bound& b, const Point& p) const;
  // How far the positions of the register tile lie before and after its first one; false
  // for an index that is not affine in the loops.
  bool tile_span(const Index& index, int64_t& least, int64_t& most) const;
  // The point whose value is the same, of those that share one.
  Point project(ExprId id, const Point& p) const;
  bool depends(ExprId id, AxisId axis) const { return dependence_[id][axis]; }
  bool on_lanes(ExprId id) const {
    return k_.has_lane_axis() && dependence_[id][*k_.loops.lane];
  }
  bool lane_dependent(const Index& index) const;
  const StageSchedule& how(const Stage& s) const {
    return how_.stages[static_cast<size_t>(&s - k_.stages.data())];
  }
  bool needs_peel(AxisId axis, bool high) const;

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  std::vector<AxisId> axes_;    // of the tile, then of steps that are taken together
  std::vector<int> counts_;     // active size of the tile along each; 1 for steps
  std::vector<Range> narrowed_; // of each axis, of the tile's first position
  Dependence dependence_;
};

} // namespace svod::codegen
