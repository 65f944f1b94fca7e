#include "compiler/codegen/tile_scope.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace svod::codegen {

TileScope::TileScope(const ScheduledKernel& kernel, const LevelSchedule& how)
    : k_(kernel), how_(how), dependence_(dependence_of(kernel)) {
  for (AxisId a = 0; a < k_.indices.axis_count(); ++a)
    narrowed_.push_back({0, k_.indices.extent(a) - 1});
  for (const TileAxis& t : how_.tile) axes_.push_back(t.axis);
  for (const StageSchedule& s : how_.stages)
    for (const TileAxis& t : s.together) axes_.push_back(t.axis);
  counts_.assign(axes_.size(), 1);
}

std::vector<TileScope::Point> TileScope::points() const {
  std::vector<Point> out = {Point(counts_.size(), 0)};
  for (size_t i = 0; i < counts_.size(); ++i) {
    std::vector<Point> next;
    for (const Point& p : out)
      for (int n = 0; n < counts_[i]; ++n) {
        next.push_back(p);
        next.back()[i] = n;
      }
    out = std::move(next);
  }
  return out;
}

std::vector<TileScope::Point> TileScope::steps_together(const Stage& s,
                                                        const Point& p) const {
  std::vector<Point> out = {p};
  for (const TileAxis& t : how(s).together) {
    const size_t slot = std::ranges::find(axes_, t.axis) - axes_.begin();
    std::vector<Point> next;
    for (const Point& step : out)
      for (int n = 0; n < t.count; ++n) next.push_back(step), next.back()[slot] = n;
    out = std::move(next);
  }
  return out;
}

int64_t TileScope::tile_points() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{1}, std::multiplies());
}

int TileScope::offset_of(AxisId axis, const Point& p) const {
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i] == axis) return p[i];
  return 0;
}

std::vector<Range> TileScope::ranges_at(const Point& p) const {
  std::vector<Range> ranges = narrowed_;
  for (size_t i = 0; i < axes_.size(); ++i) {
    Range& r = ranges[axes_[i]];
    r.low += p[i], r.high += p[i];
  }
  return ranges;
}

bool TileScope::holds(const Bound& b, const Point& p) const {
  Range r = k_.indices.range(b.index, ranges_at(p));
  return r.low >= b.low && r.high < b.high;
}

bool TileScope::tile_span(const Index& index, int64_t& least, int64_t& most) const {
  for (auto [id, coefficient] : index.terms) {
    const Term& t = k_.indices.term(id);
    if (t.kind != Term::Kind::Axis || (k_.has_lane_axis() && t.id == *k_.loops.lane))
      return false;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (axes_[i] == t.id)
        (coefficient < 0 ? least : most) += coefficient * (counts_[i] - 1);
  }
  return true;
}

TileScope::Point TileScope::project(ExprId id, const Point& p) const {
  Point out = p;
  for (size_t i = 0; i < axes_.size(); ++i)
    if (!depends(id, axes_[i])) out[i] = 0;
  return out;
}

bool TileScope::lane_dependent(const Index& index) const {
  if (!k_.has_lane_axis()) return false;
  if (k_.indices.depends_on(index, *k_.loops.lane)) return true;
  std::vector<ExprId> dynamic;
  k_.indices.collect_dynamic(index, dynamic);
  return std::any_of(dynamic.begin(), dynamic.end(),
                     [&](ExprId d) { return on_lanes(d); });
}

bool TileScope::needs_peel(AxisId axis, bool high) const {
  return ends_apart(k_, how_.peeled, axis, high, narrowed_);
}

} // namespace svod::codegen
