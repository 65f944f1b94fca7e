// The lane axis by counting: each candidate is charged for the instructions it would
// execute. One vector of lanes costs one load when its elements are neighbours (or one
// weight that packing will make neighbours) and as many as it has lanes when they are
// not.
#include "compiler/kernel/byte_products.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace svod::optimize {

// Whether where data says differs from position to position of the axis.
static bool gathers_along(const ScheduledKernel& k, const Index& index, AxisId axis) {
  std::vector<ExprId> open;
  k.indices.collect_dynamic(index, open);
  std::vector<bool> used(k.indices.axis_count());
  while (!open.empty()) {
    const Expr& e = k.exprs[open.back()];
    open.pop_back();
    k.indices.collect_axes(e.index, used);
    for (const Bound& b : e.bounds) k.indices.collect_axes(b.index, used);
    k.indices.collect_dynamic(e.index, open);
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return used[axis];
}

// Instructions for one vector of lanes along `axis`.
static double vector_load_cost(const ScheduledKernel& k, const Expr& load, AxisId axis,
                               int lanes) {
  int64_t stride = 0;
  bool affine = k.indices.affine_in(load.index, axis, stride) &&
                !gathers_along(k, load.index, axis);
  bool guarded = false;
  for (const Bound& b : load.bounds) guarded |= k.indices.depends_on(b.index, axis);
  bool weight = k.arguments[load.argument].kind == Argument::Kind::Packed;
  if (affine && weight) return 1;
  if (affine && stride == 0 && !guarded) return 1;
  if (affine && stride == 1) return guarded ? 3 : 1;
  // A vector and a shuffle for each, less one shuffle.
  if (affine && stride > 1 && stride <= kNearLanes)
    return double(guarded ? 4 * stride : 2 * stride - 1);
  return (guarded ? 2.5 : 1.5) * lanes;
}

// Trees are walked one lane after the other: what that costs beyond one walk.
static double lanewise_cost(const ScheduledKernel& k, ExprId value, AxisId axis,
                            int lanes) {
  double cost = 0;
  for (ExprId id : descents_below(k, value)) {
    const Expr& e = k.exprs[id];
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(e.index, used);
    for (ExprId load : loads_below(k, id))
      k.indices.collect_axes(k.exprs[load].index, used);
    if (used[axis]) cost += double(kStepWork * e.limit + 2) * lanes;
  }
  return cost;
}

// Whether with this axis as lanes the stage multiplies bytes four at a time.
static bool allows_dots(const ScheduledKernel& k, const Stage& s, AxisId axis,
                        const Level& level) {
  if (!level.has_dots()) return false;
  ByteOperands operands = byte_operands(k, s);
  if (operands.x == nullptr || contains(k.inner(s), axis) ||
      !level.takes(operands.both_signed))
    return false;
  return !k.indices.depends_on(operands.x->index, axis) &&
         k.indices.depends_on(operands.w->index, axis) &&
         std::any_of(k.inner(s).begin(), k.inner(s).end(), [&](AxisId a) {
           int64_t stride = 0;
           return k.indices.extent(a) > 2 &&
                  k.indices.affine_in(operands.x->index, a, stride) && stride == 1;
         });
}

// Shuffles and the store of a vector that is written as a column, with as many others as
// it has lanes; see transpose_tile().
static constexpr double kSwapWork = 6.0;

// Whether lanes that lie apart are written so.
static bool swaps_columns(const ScheduledKernel& k, const Stage& s, AxisId axis,
                          int lanes) {
  int64_t apart = 0;
  if (k.stages.size() != 1 || s.kind != StageKind::Store || !k.inner(s).empty() ||
      !k.indices.affine_in(s.index, axis, apart) || apart <= 1)
    return false;
  return neighbours_in(k, s, axis, lanes).points() == lanes;
}

// Where bytes are widened to be multiplied, a vector of them takes an instruction, and
// one more that changes the vectors' type; what all lanes share takes none.
static double widening_cost(const ScheduledKernel& k, const Stage& s, AxisId axis,
                            const Level& level) {
  if (level.dots != ByteProducts::Widened) return 0;
  const ByteOperands operands = byte_operands(k, s);
  if (operands.x == nullptr) return 0;
  return 2.0 * (k.indices.depends_on(operands.x->index, axis) +
                k.indices.depends_on(operands.w->index, axis));
}

// Results that are written out side by side share what they load and compute: it counts
// for the first of them.
static StageWork own_work(const ScheduledKernel& k, const Stage& s,
                          std::vector<bool>& shared) {
  const bool alone = s.kind != StageKind::Store || !k.inner(s).empty();
  return alone ? work_below(k, s.value) : work_below(k, s.value, shared);
}

// A vector that is written lane by lane, the last one with a condition where it has lanes
// beyond the end. It meets as many lines of the cache as it takes.
static double scattered_cost(const ScheduledKernel& k, const Stage& s, AxisId axis,
                             int64_t stride, int lanes, const Level& level) {
  // Without a cache the line is the bus, which may be narrower than an element.
  const int64_t line =
      std::max<int64_t>(1, level.machine.first.line / byte_size(s.dtype));
  const auto lines = double(std::min<int64_t>(lanes, lanes * stride / line + 1));
  const int64_t extent = k.indices.extent(axis), vectors = (extent + lanes - 1) / lanes;
  const double ragged = extent % lanes == 0 ? 0 : 1.3 / double(vectors);
  return (1.2 + ragged) * lanes + 0.1 * lines;
}

static double stage_cost(const ScheduledKernel& k, const Stage& s, AxisId axis, int lanes,
                         const Level& level, std::vector<bool>& shared) {
  const std::vector<AxisId> loops = loops_of(k, s);
  bool looped = contains(loops, axis);
  double positions = positions_of(k.indices, loops);
  if (allows_dots(k, s, axis, level)) positions /= kDot;
  // When the lane axis belongs to other stages this one runs once per position.
  double extent = double(k.indices.extent(axis));
  double vectors = looped ? positions / extent * std::ceil(extent / lanes) : positions;
  const StageWork work = own_work(k, s, shared);
  double cost = work.operations + lanewise_cost(k, s.value, axis, lanes);
  for (ExprId id : work.loads)
    cost += looped ? vector_load_cost(k, k.exprs[id], axis, lanes) : 1.0;
  cost += widening_cost(k, s, axis, level);
  if (s.kind != StageKind::Reduce) {
    int64_t stride = 0;
    bool neighbours = k.indices.affine_in(s.index, axis, stride) && stride == 1;
    const bool swaps = !neighbours && swaps_columns(k, s, axis, lanes);
    cost += neighbours || !looped ? 1.0
            : swaps               ? kSwapWork
                                  : scattered_cost(k, s, axis, stride, lanes, level);
  } else if (contains(k.inner(s), axis)) {
    // Lanes are summed up at the end; of positions the best one is picked lane by lane.
    double end = is_arg_reduce(s) ? 4.0 * lanes : 12.0;
    cost += end / std::max(1.0, positions_of(k.indices, k.inner(s)) / lanes);
  }
  return vectors * cost;
}

static bool can_vectorise(const ScheduledKernel& k, AxisId axis) {
  for (const Stage& s : k.stages) {
    if (s.kind == StageKind::Scatter || s.kind == StageKind::Sort) return false;
    bool inner = contains(k.inner(s), axis);
    if (s.kind == StageKind::Scan && inner) return false;
    // Each lane keeps the number of its best position.
    int64_t step = 0;
    bool countable = k.indices.affine_in(s.position, axis, step) &&
                     k.indices.range(s.position).high <= INT32_MAX;
    if (is_arg_reduce(s) && inner && !countable) return false;
  }
  return true;
}

// Without lanes. What is written out side by side the compiler puts into vectors itself,
// in part.
static double scalar_cost(const ScheduledKernel& k) {
  constexpr size_t kSideBySide = 4;
  const double each = k.stages.size() >= kSideBySide ? 0.5 : 0.9;
  double cost = 0;
  std::vector<bool> shared;
  for (const Stage& s : k.stages) {
    const StageWork work = own_work(k, s, shared);
    cost += positions_of(k.indices, loops_of(k, s)) *
            (work.operations + double(work.loads.size()) + 1.0) * each;
  }
  return cost;
}

// Whether a piece of an axis, shorter than the vectors, is copied as one: what begins
// within a block of channels has its neighbours only as far as a block goes on both sides
// (12 channels behind 12 others of 32 x 32 x 32 positions: element by element 1890 us).
static bool is_short_vector(const ScheduledKernel& k, AxisId axis, int lanes) {
  constexpr int64_t kFewest = 4; // a register of 16 bytes
  const int64_t extent = k.indices.extent(axis);
  const Stage& s = k.stages.back();
  int64_t step = 0;
  if (k.stages.size() != 1 || s.kind != StageKind::Store || !k.inner(s).empty() ||
      extent < kFewest || lanes % extent != 0 ||
      !k.indices.affine_in(s.index, axis, step) || step != 1)
    return false;
  return std::ranges::all_of(work_below(k, s.value).loads, [&](ExprId id) {
    const Expr& load = k.exprs[id];
    return k.indices.affine_in(load.index, axis, step) && (step == 0 || step == 1);
  });
}

std::optional<LaneAxis> choose_lane(const Lowered& lowered, int lanes,
                                    const Level& level) {
  const ScheduledKernel& k = lowered.kernel;
  double best = scalar_cost(k);
  std::vector<bool> shared;
  std::optional<LaneAxis> choice;
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = axes.size(); place-- > 0;) {
      AxisId axis = axes[place];
      int64_t extent = k.indices.extent(axis);
      // Only the outermost axis of a dimension may run over its end.
      const bool whole = place == 0 || extent % lanes == 0;
      const bool looped = lowered.unrolled.count(axis) == 0 && extent >= 2;
      if (!looped || !can_vectorise(k, axis)) continue;
      if (!whole && !(level.has_vectors() && is_short_vector(k, axis, lanes))) continue;
      const int own = whole ? lanes : static_cast<int>(extent);
      double cost = 0;
      shared.clear();
      for (const Stage& s : k.stages) cost += stage_cost(k, s, axis, own, level, shared);
      if (cost < best) best = cost, choice = {dim, place, own};
    }
  return choice;
}

} // namespace svod::optimize
