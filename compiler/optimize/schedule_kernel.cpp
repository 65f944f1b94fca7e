#include "compiler/optimize/schedule_kernel.h"

#include "compiler/kernel/byte_table.h"
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/small_code.h"
#include "compiler/optimize/tile_facts.h"

#include <algorithm>

namespace svod::optimize {

// Rows that are shorter are not worth the text of their ends.
static constexpr int64_t kLongRow = 32;
// With this much work below a branch costs nothing.
static constexpr int64_t kSkippedSteps = 12;
// Fewer columns of a square are as well stored one by one.
static constexpr int kFewestColumns = 4;
// The instructions that narrow take four lanes and more.
static constexpr int kQuad = 4;

// Whether a condition of the first stage's factors that all lanes share looks at the
// axis.
static bool shares_condition(const ScheduledKernel& k, AxisId axis) {
  const std::vector<ExprId> factors = shared_factors(k);
  return std::ranges::any_of(factors, [&](ExprId id) {
    return std::ranges::any_of(k.exprs[id].bounds, [&](const Bound& b) {
      return k.indices.depends_on(b.index, axis);
    });
  });
}

// Whether a condition looks at both the lanes and the axis.
static bool has_lane_condition(const ScheduledKernel& k, AxisId axis) {
  auto looks = [&](const Bound& b) {
    return k.indices.depends_on(b.index, *k.loops.lane) &&
           k.indices.depends_on(b.index, axis);
  };
  return std::ranges::any_of(
             k.exprs,
             [&](const Expr& e) { return std::ranges::any_of(e.bounds, looks); }) ||
         std::ranges::any_of(k.stages, [&](const Stage& s) {
           return std::ranges::any_of(s.domain, looks);
         });
}

std::vector<PeeledAxis> peeled_axes(const ScheduledKernel& k) {
  std::vector<PeeledAxis> out;
  if (!k.has_lane_axis()) return out;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a) {
    if (k.is_lane(a) || k.indices.extent(a) < 2) continue;
    if (has_lane_condition(k, a)) out.push_back({PeeledAxis::Condition::OnLanes, a});
    if (k.indices.extent(a) >= kLongRow && contains(k.loops.outer, a) &&
        shares_condition(k, a))
      out.push_back({PeeledAxis::Condition::OnShared, a});
  }
  return out;
}

// A short nest is written out, so that neighbouring positions of the tile share what they
// load. Else four steps hide the loop; all sixteen of a block would spill (measured 2 x
// slower).
static Unroll choose_unroll(const ScheduledKernel& k, const Stage& s, const Level& level,
                            const std::vector<TileAxis>& tile) {
  if (level.small) return small_unroll();
  Unroll out{kWrittenOut, 32, 16, 4, false};
  // What is gathered is written out lane by lane already.
  out.off = gathers_below(k, s.value) > 0;
  if (!k.has_lane_axis()) return out;
  // Written out whole, weights that all positions share are loaded before the loop over
  // those, and most of them wait on the stack (a window of 64: 1030 thousand instructions
  // where one loop of two leaves 600). So do those of 16 steps that read elements of
  // registers.
  const bool halves = level.dots == ByteProducts::Halves && k.has_dot_axis() &&
                      contains(k.inner(s), *k.loops.dot);
  if (halves ||
      takes_shared_elements(k, level, static_cast<size_t>(&s - k.stages.data())))
    out.nest = out.small_nest = out.free = 0;
  // So is what lies apart: 14 positions of 9 steps were 2,000 loads of one element, and
  // took the compiler seconds. Nothing is lost where none of them is shared.
  constexpr int64_t kElements = 256;
  for (ExprId load : loads_below(k, s.value)) {
    int64_t apart = 0;
    const Expr& e = k.exprs[load];
    auto shared_along = [&](const TileAxis& t) {
      return shares_elements(k, s, e, t.axis, t.count);
    };
    if (k.indices.affine_in(e.index, *k.loops.lane, apart) && apart > kNearLanes &&
        std::ranges::none_of(tile, shared_along))
      out.nest = std::min(out.nest, kElements / k.loops.lanes);
  }
  out.small_nest = std::min(out.small_nest, out.nest);
  return out;
}

static StageSchedule schedule_stage(const ScheduledKernel& k,
                                    const Dependence& dependence, size_t number,
                                    const Level& level,
                                    const std::vector<TileAxis>& tile) {
  StageSchedule out;
  const Stage& s = k.stages[number];
  if (s.kind == StageKind::Reduce) {
    out.across = number == 0 && sums_across(k, level);
    out.paired = number == 0 && sums_in_pairs(k, level);
    out.widened = number == 0 && sums_widened(k, level);
    out.words = number == 0 && reads_words(k, level);
    out.unroll = choose_unroll(k, s, level, tile);
    if (!s.useful.empty()) out.skipped_steps = kSkippedSteps;
    if (!is_arg_reduce(s)) {
      choose_sums(k, dependence, number, level, out);
      choose_prefetch(k, dependence, number, level, tile, out);
    }
  }
  if (s.kind == StageKind::Store && k.has_lane_axis()) {
    int64_t apart = 0;
    if (dependence[s.value][*k.loops.lane] &&
        k.indices.affine_in(s.index, *k.loops.lane, apart) && apart > 1)
      out.columns = kFewestColumns;
    out.byte_rows = is_byte(s.dtype) && k.inner(s).empty();
  }
  return out;
}

// Walks down trees stay as they are written: made vectors of, their loads become gathers
// (3 times slower).
static bool walks(const Kernel& k) {
  return std::ranges::any_of(k.exprs,
                             [](const Expr& e) { return e.kind == Expr::Kind::Descend; });
}

// All but the stages. A kernel without vectors has the level's number of lanes.
static LevelSchedule plain_schedule(const ScheduledKernel& k, const Level& level) {
  LevelSchedule out;
  out.level = level.suffix;
  out.small = level.small;
  out.lanes = k.has_lane_axis() ? k.loops.lanes : level.lanes;
  return out;
}

// What a tile makes of the rest. The vectors of `k` are as short as the schedule's.
static LevelSchedule schedule_below(const ScheduledKernel& k, const Level& level,
                                    std::vector<TileAxis> tile) {
  LevelSchedule out = plain_schedule(k, level);
  const std::optional<MatrixTiles> tiles = choose_tiles(k, level);
  out.tile = tiles ? tile_after(k, *tiles) : std::move(tile);
  out.peeled = peeled_axes(k);
  // The GELU of a quantised network takes 49 cycles for 16 bytes.
  out.tables = costly_byte_tables(k);
  out.near_lanes = kNearLanes;
  out.pack_scalars = !walks(k);
  out.narrows = level.narrows && k.has_lane_axis() && out.lanes >= kQuad;
  out.looped = choose_looped(k, level, out.tile);
  out.called = choose_called(k, level);
  const Dependence dependence = dependence_of(k);
  for (size_t i = 0; i < k.stages.size(); ++i)
    out.stages.push_back(schedule_stage(k, dependence, i, level, out.tile));
  if (tiles) {
    out.stages[0] = {};
    out.stages[0].tiles = tiles;
    choose_prefetch(k, dependence, 0, level, positions_of(*tiles), out.stages[0]);
  }
  return out;
}

// The kernel with vectors of `lanes` elements, if its own are longer.
static std::optional<ScheduledKernel> shortened(const ScheduledKernel& kernel,
                                                int lanes) {
  if (!kernel.has_lane_axis() || lanes == kernel.loops.lanes) return std::nullopt;
  return cut_lanes(kernel, kernel.loops.lanes / lanes);
}

// A loop of a thread is written out as far as hides its counting.
static LevelSchedule schedule_gpu(const ScheduledKernel& k, const Level& level) {
  LevelSchedule out = plain_schedule(k, level);
  out.gpu = choose_gpu(k, level);
  out.stages.resize(k.stages.size());
  for (StageSchedule& s : out.stages) s.unroll = {16, 16, 0, 4, false};
  return out;
}

LevelSchedule schedule_tile(const ScheduledKernel& kernel, const Level& level, int lanes,
                            std::vector<TileAxis> tile) {
  if (!level.has_lanes()) return schedule_gpu(kernel, level);
  const std::optional<ScheduledKernel> cut = shortened(kernel, lanes);
  return schedule_below(cut ? *cut : kernel, level, std::move(tile));
}

LevelSchedule schedule_lanes(const ScheduledKernel& kernel, const Level& level,
                             int lanes) {
  const std::optional<ScheduledKernel> cut = shortened(kernel, lanes);
  const ScheduledKernel& k = cut ? *cut : kernel;
  return schedule_below(k, level, choose_tile(k, level).counts);
}

LevelSchedule schedule_kernel(const ScheduledKernel& kernel, const Level& level,
                              bool joined) {
  if (!level.has_lanes() && !kernel.call() && !kernel.sequence())
    return schedule_gpu(kernel, level);
  if (kernel.call() || kernel.sequence()) {
    LevelSchedule out = plain_schedule(kernel, level);
    for (const ScheduledKernel& part : kernel.parts())
      if (part.has_lane_axis()) out.lanes = part.loops.lanes;
    return out;
  }
  return schedule_lanes(kernel, level,
                        joined ? kernel.loops.lanes : choose_lanes(kernel, level));
}

void schedule_levels(ScheduledKernel& kernel, const Target& target) {
  for (const Level& level : target.levels) {
    kernel.levels.push_back(schedule_kernel(kernel, level));
    for (ScheduledKernel& part : kernel.parts())
      part.levels.push_back(schedule_kernel(part, level, true));
  }
}

} // namespace svod::optimize
