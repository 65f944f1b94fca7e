// What the choice of a tile and the emitter ask about lanes: where conditions on them can
// fail, which of them data moves, and which positions are neighbours in memory.
#include "compiler/kernel/lane_facts.h"

#include "compiler/support/divide.h"

#include <algorithm>

namespace svod {

std::vector<ExprId> shared_factors(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  if (s.kind != StageKind::Reduce || s.op != Op::ReduceSum || k.inner(s).empty())
    return {};
  std::vector<ExprId> loads = loads_below(k, s.value);
  std::erase_if(loads, [&](ExprId id) {
    return k.indices.depends_on(k.exprs[id].index, *k.loops.lane);
  });
  return loads;
}

// Whether the condition can fail at this end of the axis and nowhere else.
static bool fails_at(const ScheduledKernel& k, const Bound& b, AxisId axis, bool high,
                     const std::vector<Range>& ranges) {
  if (!k.indices.depends_on(b.index, axis)) return false;
  std::vector<Range> rest = ranges;
  (high ? rest[axis].high : rest[axis].low) += high ? -1 : 1;
  Range all = k.indices.range(b.index, ranges), cut = k.indices.range(b.index, rest);
  return high ? all.high >= b.high && cut.high < b.high
              : all.low < b.low && cut.low >= b.low;
}

bool shared_condition_ends(const ScheduledKernel& k, AxisId axis, bool high,
                           const std::vector<Range>& ranges) {
  return std::ranges::any_of(shared_factors(k), [&](ExprId id) {
    return std::ranges::any_of(k.exprs[id].bounds, [&](const Bound& b) {
      return fails_at(k, b, axis, high, ranges);
    });
  });
}

bool lane_condition_ends(const ScheduledKernel& k, AxisId axis, bool high,
                         const std::vector<Range>& ranges) {
  auto helps = [&](const Bound& b) {
    return k.indices.depends_on(b.index, *k.loops.lane) &&
           fails_at(k, b, axis, high, ranges);
  };
  for (const Expr& e : k.exprs)
    if (std::ranges::any_of(e.bounds, helps)) return true;
  for (const Stage& s : k.stages)
    if (std::ranges::any_of(s.domain, helps)) return true;
  return false;
}

bool ends_apart(const ScheduledKernel& k, const std::vector<PeeledAxis>& peeled,
                AxisId axis, bool high, const std::vector<Range>& ranges) {
  return std::ranges::any_of(peeled, [&](const PeeledAxis& p) {
    if (p.axis != axis) return false;
    return p.condition == PeeledAxis::Condition::OnLanes
               ? lane_condition_ends(k, axis, high, ranges)
               : shared_condition_ends(k, axis, high, ranges);
  });
}

// Whether nothing but the axis moves it.
static bool follows_alone(const IndexPool& pool, TermId id, AxisId axis) {
  const Term& t = pool.term(id);
  if (t.kind == Term::Kind::Axis) return t.id == axis;
  return t.kind != Term::Kind::Dynamic &&
         std::ranges::all_of(t.of.terms, [&](const auto& part) {
           return follows_alone(pool, part.first, axis);
         });
}

// Of what nothing but an axis moves, where that is at `position`.
static int64_t value_at(const IndexPool& pool, const Index& index, int64_t position) {
  int64_t sum = index.constant;
  for (const auto& [id, coefficient] : index.terms) {
    const Term& t = pool.term(id);
    int64_t value = position;
    if (t.kind != Term::Kind::Axis) {
      const int64_t of = value_at(pool, t.of, position);
      value = floor_div(of, t.divisor);
      if (t.kind == Term::Kind::Mod) value = of - value * t.divisor;
    }
    sum += coefficient * value;
  }
  return sum;
}

std::optional<ShuffledLanes> shuffled_lanes(const ScheduledKernel& k, const Expr& load) {
  if (!k.has_lane_axis() || k.indices.has_dynamic(load.index)) return std::nullopt;
  const AxisId lane = *k.loops.lane;
  int64_t step = 0;
  if (k.indices.affine_in(load.index, lane, step)) return std::nullopt;
  const int lanes = k.loops.lanes;
  ShuffledLanes out;
  Index of_lane;
  for (const auto& term : load.index.terms) {
    const bool on_lane = k.indices.depends_on({0, {term}}, lane);
    if (on_lane && !follows_alone(k.indices, term.first, lane)) return std::nullopt;
    Index& part = on_lane ? of_lane : term.second % lanes == 0 ? out.block : out.moved;
    part.terms.push_back(term);
  }
  out.block.constant = floor_div(load.index.constant, lanes) * lanes;
  out.moved.constant = load.index.constant - out.block.constant;
  for (int l = 0; l < lanes; ++l)
    out.lanes.push_back(static_cast<int>(value_at(k.indices, of_lane, l)));
  const auto [least, most] = std::ranges::minmax(out.lanes);
  const Range moved = k.indices.range(out.moved);
  if (least + moved.low != 0 || most + moved.high != lanes - 1) return std::nullopt;
  return out;
}

bool shuffles_lanes(const ScheduledKernel& k) {
  return std::ranges::any_of(k.exprs, [&](const Expr& e) {
    return e.kind == Expr::Kind::Load && shuffled_lanes(k, e);
  });
}

LaneAccess lane_access(const ScheduledKernel& k, const Expr& load) {
  int64_t step = 0;
  if (!k.indices.affine_in(load.index, *k.loops.lane, step))
    return shuffled_lanes(k, load) ? LaneAccess::Shuffled : LaneAccess::Gathered;
  if (step == 0) return LaneAccess::Same;
  return step == 1 ? LaneAccess::Neighbours : LaneAccess::Strided;
}

int gathers_below(const ScheduledKernel& k, ExprId root) {
  // The type is written out: an element of a vector<bool> is a reference into it.
  auto on_lanes = [&](ExprId d) -> bool {
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(k.exprs[d].index, used);
    for (ExprId load : loads_below(k, d))
      k.indices.collect_axes(k.exprs[load].index, used);
    return used[*k.loops.lane];
  };
  if (!k.has_lane_axis()) return 0;
  int count = 0;
  for (ExprId load : loads_below(k, root)) {
    std::vector<ExprId> dynamic;
    k.indices.collect_dynamic(k.exprs[load].index, dynamic);
    count += std::ranges::any_of(dynamic, on_lanes);
  }
  return count;
}

Tile neighbours_in(const ScheduledKernel& k, const Stage& s, AxisId lane, int lanes) {
  Tile tile;
  int64_t together = 1;
  for (bool more = true; more && together < lanes;) {
    more = false;
    for (AxisId a : k.loops.outer) {
      int64_t step = 0, extent = k.indices.extent(a);
      if (a == lane || extent < 2 || !k.indices.affine_in(s.index, a, step) ||
          step != together || (together > 1 && extent * together > lanes))
        continue;
      const int64_t count = std::min(extent, lanes / together);
      tile.counts.insert(tile.counts.begin(), {a, static_cast<int>(count)});
      together *= count;
      more = count == extent;
      break;
    }
  }
  // Of several axes a part is no use.
  if (together < lanes && tile.counts.size() > 1)
    tile.counts.erase(tile.counts.begin(), tile.counts.end() - 1);
  return tile;
}

int64_t columns_of_tile(const ScheduledKernel& k, const Stage& s,
                        const std::vector<TileAxis>& tile) {
  std::map<int64_t, int64_t> count_at; // by distance
  for (const TileAxis& t : tile) {
    int64_t step = 0;
    if (t.count == 1) continue;
    if (!k.indices.affine_in(s.index, t.axis, step)) return 1;
    count_at[step] = t.count;
  }
  int64_t run = 1;
  for (auto at = count_at.find(run); at != count_at.end(); at = count_at.find(run))
    run *= at->second;
  return run;
}

} // namespace svod
