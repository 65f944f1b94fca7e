// Weights are read once per run: in a model larger than the caches each panel comes from
// memory, and what the processor fetches by itself ends with a page or a panel. A tile of
// panels is read again for every tile of data. During the first of those sweeps the
// panels after them, which lie behind them in memory, are fetched into the second cache:
// one line for each step of the reduction, which costs nothing beside a tile's
// multiplications. resnet18's products of 16 rows: 87 to 108 GFLOP/s, those of 8 rows,
// which sweep once: 87 to 105.
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

// More than this would push out of the second cache what is in use.
static int64_t most_ahead(const Machine& m) { return m.second.bytes / 4; }
// Panels that are swept once, for few rows, are nothing but streams, which a core that
// runs ahead of itself follows by itself: while it multiplies what one line holds it asks
// for enough others, and asking twice costs up to half of the rate at which the second
// cache gives lines. Measured on Golden Cove, 512 numbers to 512 in layers of 20 MB, time
// with over time without: 1 row 1.00, 4 rows 1.06, 8 rows 1.09, 12 rows 0.87, 16 rows
// 0.89; from the second cache 1 row 1.00 to 1.54, 4 rows 1.43, 8 rows 1.11. A core that
// waits for each load has the shorter ones fetched.
static int64_t most_streamed(const Machine& m) {
  return m.window > 0 ? 0 : m.second.bytes / 16;
}

// The last loop that takes the load to another panel; those before it in memory and time.
static size_t panel_loop(const ScheduledKernel& k, const Expr& load) {
  const std::vector<AxisId>& outer = k.loops.outer;
  size_t place = outer.size();
  for (size_t i = 0; i < outer.size(); ++i)
    if (!k.is_lane(outer[i]) && k.indices.extent(outer[i]) > 1 &&
        k.indices.depends_on(load.index, outer[i]))
      place = i;
  return place;
}

static bool exceeds_cache(const ScheduledKernel& k, const Machine& m, const Expr& load) {
  return k.indices.range(load.index).high * byte_size(load.dtype) >= m.resident_weights();
}

// A weight whose panels lie behind each other in the order in which loops read them.
static std::optional<WeightPrefetch> weight_prefetch(const ScheduledKernel& k,
                                                     const Machine& m, const Stage& s,
                                                     ExprId id,
                                                     const std::vector<TileAxis>& tile) {
  const Expr& e = k.exprs[id];
  int64_t lane = 0, panel = 0, elements = k.loops.lanes;
  if (k.arguments[e.argument].kind != Argument::Kind::Packed || !e.bounds.empty() ||
      !k.has_lane_axis() || !k.indices.affine_in(e.index, *k.loops.lane, lane) ||
      lane != (k.has_dot_axis() ? kDot : 1) || !exceeds_cache(k, m, e))
    return std::nullopt;
  const size_t place = panel_loop(k, e);
  if (place == k.loops.outer.size()) return std::nullopt;
  const AxisId axis = k.loops.outer[place];
  for (AxisId a : k.inner(s))
    if (k.indices.depends_on(e.index, a)) elements *= k.indices.extent(a);
  if (!k.indices.affine_in(e.index, axis, panel) || panel != elements)
    return std::nullopt;
  WeightPrefetch out{
      id, axis, axis, panel, most_ahead(m), most_streamed(m), m.streamed_rows};
  int64_t most = 1;
  for (size_t i = place + 1; i < k.loops.outer.size(); ++i) {
    const AxisId a = k.loops.outer[i];
    if (k.is_lane(a) || k.indices.extent(a) == 1) continue;
    if (const int64_t trips = tile_trips(k, tile, a); trips > most)
      most = trips, out.sweep = a;
  }
  return out;
}

// A picture that is read where it lies comes from memory, and rows of a window are too
// short and too many at once for the processor to follow.
static std::optional<PicturePrefetch> picture_prefetch(const ScheduledKernel& k,
                                                       const Machine& m,
                                                       const Dependence& dependence,
                                                       const Stage& s) {
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    // Where it is fetched the stage's loops are not open yet.
    const bool affine = std::ranges::all_of(k.inner(s), [&](AxisId a) {
      int64_t step = 0;
      return k.indices.affine_in(e.index, a, step);
    });
    if (!affine || e.bounds.empty() || dependence[id][*k.loops.lane] ||
        k.indices.has_dynamic(e.index) || !exceeds_cache(k, m, e))
      continue;
    for (AxisId row : k.loops.outer)
      for (AxisId window : k.inner(s)) {
        int64_t down = 0, step = 0;
        if (k.indices.affine_in(e.index, row, down) &&
            k.indices.affine_in(e.index, window, step) && step > 1 && down >= step &&
            down % step == 0 && down / step < k.indices.extent(window))
          return PicturePrefetch{id, row, window, m.first.line};
      }
  }
  return std::nullopt;
}

void choose_prefetch(const ScheduledKernel& k, const Dependence& dependence, size_t stage,
                     const Level& level, const std::vector<TileAxis>& tile,
                     StageSchedule& schedule) {
  const Stage& s = k.stages[stage];
  const Machine& m = level.machine;
  if (s.op != Op::ReduceSum || !level.has_vectors()) return;
  if (!s.keeps && !s.nested && !k.loops.repeated)
    for (ExprId id : loads_below(k, s.value))
      if (std::optional<WeightPrefetch> w = weight_prefetch(k, m, s, id, tile))
        schedule.weights.push_back(*w);
  if (k.has_lane_axis()) schedule.picture = picture_prefetch(k, m, dependence, s);
}

} // namespace svod::optimize
