// Emitted vectors are as long as a block of channels; on a level with shorter registers
// each takes several. Where neighbouring outputs share what they read, as the windows of
// a depthwise convolution do, a tile of such vectors leaves no room for what is shared
// (3x3 over 16 channels on AVX2: 207 accesses to the stack, 43 % of the peak). One
// register at a time, the parts of a block on a loop of their own, does (90 %).
#include "compiler/kernel/lane_facts.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/tile_facts.h"

#include <algorithm>

namespace svod::optimize {

namespace {

// One reduction whose lanes are neither summed nor multiplied four at a time, and a
// store; `halves`: of floats of half precision, too.
bool is_plain(const ScheduledKernel& k, bool halves) {
  auto plain = [&](const Expr& e) {
    const bool cast = halves && e.kind == Expr::Kind::Cast;
    return (e.dtype == DType::F32 || (halves && is_narrow_float(e.dtype))) &&
           (e.kind == Expr::Kind::Load || e.kind == Expr::Kind::Constant ||
            e.kind == Expr::Kind::Map || e.kind == Expr::Kind::Local || cast);
  };
  return k.has_lane_axis() && !k.has_dot_axis() && k.stages.size() == 2 &&
         k.stages[0].kind == StageKind::Reduce && !k.stages[0].keeps &&
         k.stages[1].kind == StageKind::Store && k.loops.inner[1].empty() &&
         std::ranges::find(k.loops.inner[0], *k.loops.lane) == k.loops.inner[0].end() &&
         std::ranges::all_of(k.exprs, plain);
}

// Whether steps of the reduction read what other positions of the tile read.
bool shares_windows(const ScheduledKernel& k, const Tile& tile) {
  const Stage& s = k.stages[0];
  int64_t steps = tile.points();
  for (AxisId a : k.inner(s)) steps *= k.indices.extent(a);
  if (steps > kWrittenOut) return false;
  return std::ranges::any_of(loads_below(k, s.value), [&](ExprId id) {
    const Expr& load = k.exprs[id];
    return k.indices.depends_on(load.index, *k.loops.lane) &&
           std::ranges::any_of(tile.counts, [&](const TileAxis& count) {
             return shares_elements(k, s, load, count.axis, count.count);
           });
  });
}

} // namespace

// Whether lanes may be fewer where each is a register of its own.
static bool parts_scalars(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  return k.has_lane_axis() && s.kind == StageKind::Reduce && !is_float(s.dtype) &&
         !contains(k.inner(s), *k.loops.lane);
}

// Without vectors lanes are registers of their own: as many are taken together as make
// the cheapest tile.
static int choose_scalars(const ScheduledKernel& k, const Level& level) {
  if (!parts_scalars(k)) return k.loops.lanes;
  int best = k.loops.lanes;
  double least = choose_tile(k, level).cost;
  for (int lanes = k.loops.lanes / 2; lanes >= 2; lanes /= 2) {
    const int parts = k.loops.lanes / lanes;
    const std::optional<ScheduledKernel> cut = cut_lanes(k, parts);
    if (!cut) break;
    const double cost = choose_tile(*cut, level).cost * parts;
    if (cost < least) least = cost, best = lanes;
  }
  return best;
}

std::vector<int> lane_counts(const ScheduledKernel& k, const Level& level) {
  std::vector<int> out{k.loops.lanes};
  if (!k.has_lane_axis()) return out;
  if (!level.has_vectors()) {
    for (int lanes = k.loops.lanes / 2; parts_scalars(k) && lanes >= 2; lanes /= 2)
      if (cut_lanes(k, k.loops.lanes / lanes)) out.push_back(lanes);
    return out;
  }
  const int parts = k.loops.lanes * 32 / level.register_bits;
  if (level.register_bits >= 128 && parts >= 2 && is_plain(k, shuffles_lanes(k)) &&
      cut_lanes(k, parts))
    out.push_back(k.loops.lanes / parts);
  return out;
}

int choose_lanes(const ScheduledKernel& k, const Level& level) {
  if (!level.has_vectors()) return choose_scalars(k, level);
  const int parts = k.loops.lanes * 32 / level.register_bits;
  // The longer ones need fewer instructions beside the multiplications.
  constexpr double kAsGood = 1.1;
  if (level.register_bits < 128 || parts < 2) return k.loops.lanes;
  const bool picks = shuffles_lanes(k);
  if (!is_plain(k, picks)) return k.loops.lanes;
  if (!level.fma() && !picks) return k.loops.lanes;
  const std::optional<ScheduledKernel> cut = cut_lanes(k, parts);
  if (!cut) return k.loops.lanes;
  if (picks) return cut->loops.lanes;
  const Tile whole = choose_tile(k, level), narrow = choose_tile(*cut, level);
  const bool better = narrow.cost * parts <= kAsGood * whole.cost &&
                      narrow.count(cut->loops.outer.back()) == 1;
  return better && shares_windows(*cut, narrow) ? cut->loops.lanes : k.loops.lanes;
}

} // namespace svod::optimize
