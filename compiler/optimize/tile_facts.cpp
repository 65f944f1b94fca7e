#include "compiler/optimize/tile_facts.h"

#include "compiler/kernel/byte_groups.h"
#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/shared_elements.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <numeric>

namespace svod::optimize {

// Where the registers, of a vector each, are no more than the longest row of positions, a
// tile must not share more than they keep (longer vectors are cut first,
// narrow_lanes.cpp). Of 32 enough are left to read again what they do not: 4 x 4 windows
// over every second of 112 columns took 85 us, 14 x 1, whose rows come from the second
// cache more often, 95. Without fused multiply-add the instructions are the limit,
// whatever is shared.
static bool has_few_registers(const Level& level, int per_vector) {
  return level.fma() && per_vector == 1 && level.registers <= kLongestRow;
}

// Position p and step t read element p * along + t * of_step: two pairs meet where the
// positions differ by a multiple of of_step / g and the steps by that of along / g, g
// being the greatest common divisor.
bool shares_elements(const ScheduledKernel& k, const Stage& s, const Expr& load,
                     AxisId axis, int64_t count) {
  int64_t along = 0;
  if (!k.indices.affine_in(load.index, axis, along) || along == 0) return false;
  return std::ranges::any_of(k.inner(s), [&](AxisId a) {
    int64_t of_step = 0;
    if (!k.indices.affine_in(load.index, a, of_step) || of_step == 0) return false;
    const int64_t g = std::gcd(along, of_step);
    return std::abs(of_step) / g < count && std::abs(along) / g < k.indices.extent(a);
  });
}

static Slide slide_along(const ScheduledKernel& k, const Expr& load, AxisId axis,
                         AxisId inner) {
  int64_t along = 0, of_step = 0;
  const int64_t extent = k.indices.extent(inner);
  const bool slides = extent > 1 && extent <= kWrittenOut / 2 && !k.is_lane(inner) &&
                      k.indices.affine_in(load.index, axis, along) &&
                      k.indices.affine_in(load.index, inner, of_step) && of_step != 0 &&
                      along % of_step == 0;
  const int64_t stride = slides ? along / of_step : 0;
  return stride > 0 && stride < extent ? Slide{extent, stride} : Slide{};
}

// The candidate along which vectors narrowed to bytes lie next to each other.
static std::optional<size_t> byte_rows(const ScheduledKernel& k,
                                       const std::vector<Candidate>& candidates) {
  const Stage& s = k.stages.back();
  const Expr* value = &k.exprs[s.value];
  // Of a signed byte with its top bit flipped, as products of bytes read it.
  if (value->kind == Expr::Kind::Map && value->op == Op::Xor &&
      k.exprs[value->inputs[0]].kind == Expr::Kind::Bitcast)
    value = &k.exprs[k.exprs[value->inputs[0]].inputs[0]];
  if (s.kind != StageKind::Store || value->kind != Expr::Kind::Cast ||
      !is_byte(value->dtype) || k.exprs[value->inputs[0]].dtype != DType::F32)
    return std::nullopt;
  for (size_t i = 0; i < candidates.size(); ++i) {
    int64_t step = 0;
    if (k.indices.affine_in(s.index, candidates[i].axis, step) && step == k.loops.lanes)
      return i;
  }
  return std::nullopt;
}

// What one vector of accumulators reads of an operand.
static int64_t panel_bytes(const ScheduledKernel& k, const Stage& s,
                           const std::vector<bool>& used) {
  int64_t bytes = int64_t(k.loops.lanes) * byte_size(s.dtype);
  for (AxisId a : k.inner(s))
    if (used[a] && !k.is_dot(a)) bytes *= k.indices.extent(a);
  if (s.nested)
    for (AxisId a : k.inner((&s)[1]))
      if (used[a]) bytes *= k.indices.extent(a);
  return bytes;
}

// Of all elements of a weight that a load meets.
static int64_t weight_bytes(const ScheduledKernel& k, const Expr& load) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(load.index, used);
  double bytes = byte_size(load.dtype);
  for (AxisId a = 0; a < used.size(); ++a)
    if (used[a]) bytes *= double(k.indices.extent(a));
  return static_cast<int64_t>(bytes);
}

// How many positions of a window slide over the same elements along an outer axis.
static int64_t window_along(const ScheduledKernel& k, const Stage& s, const Expr& load,
                            AxisId axis) {
  int64_t step = 0, inner = 0;
  if (!k.indices.affine_in(load.index, axis, step) || step == 0) return 1;
  for (AxisId a : k.inner(s))
    if (!k.is_dot(a) && k.indices.affine_in(load.index, a, inner) && inner == step)
      return k.indices.extent(a);
  return 1;
}

// So many panels of weights may be read at once. They lie a power of two apart where a
// layer's width is one, so that lines of all of them compete for one set of the first
// cache: read side by side, 16 panels of 256 vectors came at 22 GB/s from the second
// cache, 4 at 100. Panels shorter than a set's distance fill the sets evenly enough.
// Memory is read fastest in one stream: 4-bit weights came at 33 GB/s, in four at 20. The
// sums of blocks (nested) wait for nothing, so that one is enough for them; a single sum
// as long as a row pays only where no cache holds the weights.
static int streams_of(const Machine& m, int64_t panel, int64_t line, int64_t weights,
                      bool nested) {
  const int64_t set = m.first.set_bytes();
  if (set == 0 || panel < set || line < m.first.line) return INT_MAX;
  return nested || weights > m.last.bytes ? 1 : m.streams;
}

static bool shared_by_none(const ScheduledKernel& k, AxisId axis) {
  return std::ranges::all_of(loads_below(k, k.stages[0].value), [&](ExprId load) {
    return k.indices.depends_on(k.exprs[load].index, axis);
  });
}

// Positions that follow each other: of a part of a chain, no more than it has.
static int64_t run_of(const ScheduledKernel& k, AxisId axis) {
  int64_t extent = k.indices.extent(axis);
  for (const ChunkAxis& c : k.loops.chunks)
    if (k.loops.in_parts && c.axis == axis) extent = std::min(extent, c.block);
  return extent;
}

static std::vector<Candidate> tile_candidates(const ScheduledKernel& k) {
  std::vector<Range> ranges;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    ranges.push_back({0, k.indices.extent(a) - 1});
  std::vector<Candidate> candidates;
  // A picture's rows go one by one: in tiles of 2 x 3 the first layer of
  // mobilenet_v3_small took 220 us on AVX2, in those of 6 x 1 175.
  const std::vector<PeeledAxis> peeled = peeled_axes(k);
  auto row = [&](AxisId a) {
    const PeeledAxis of_picture{PeeledAxis::Condition::OnShared, a};
    return a != k.loops.outer.back() && std::ranges::count(peeled, of_picture) != 0 &&
           (shared_condition_ends(k, a, false, ranges) ||
            shared_condition_ends(k, a, true, ranges));
  };
  // Few of a short axis' positions may be needed: of those that end with the run's sizes
  // a tile lies along the longest, counted in what they are sizes of. Vectors of keys are
  // as long as the rows of queries.
  const auto length = [&](const RunEnd& e) { return k.indices.extent(e.axis) * e.step; };
  auto ends_short = [&](AxisId a) {
    const RunEnd* own = k.run_end(a);
    return own != nullptr && std::ranges::any_of(k.ends, [&](const RunEnd& e) {
             return contains(k.loops.outer, e.axis) && length(e) > length(*own);
           });
  };
  for (AxisId a : k.loops.outer)
    if (run_of(k, a) > 1 && !k.is_lane(a) && !row(a) && !ends_short(a))
      candidates.push_back({a, run_of(k, a),
                            ends_apart(k, peeled, a, false, ranges) +
                                ends_apart(k, peeled, a, true, ranges)});
  // What every load depends on spares none.
  for (size_t i = 0; i < candidates.size() && candidates.size() > 4;)
    if (shared_by_none(k, candidates[i].axis))
      candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  if (candidates.size() > 4) candidates.erase(candidates.begin(), candidates.end() - 4);
  return candidates;
}

// The innermost loop of the reduction; none where it has no loop.
static std::optional<AxisId> innermost_loop(const ScheduledKernel& k, const Stage& s) {
  std::optional<AxisId> out;
  for (AxisId a : k.inner(s))
    if (k.is_loop(a)) out = a;
  return out;
}

// Along each candidate: whether the load walks there, and what its positions share.
static void add_candidates(const ScheduledKernel& k, const Expr& e, bool weight,
                           const std::vector<bool>& used, std::optional<AxisId> step,
                           const TileFacts& facts, LoadUse& use) {
  const Stage& s = k.stages[0];
  const int64_t set_bytes = facts.level.machine.first.set_bytes();
  for (const Candidate& c : facts.candidates) {
    use.axes.push_back(used[c.axis]);
    int64_t apart = 0;
    const bool affine = k.indices.affine_in(e.index, c.axis, apart);
    use.same_set.push_back(!weight && set_bytes != 0 && affine && apart != 0 &&
                           apart * byte_size(e.dtype) % set_bytes == 0);
    if (use.grouped) use.apart.push_back(apart);
    if (use.interleaved) {
      use.windows.push_back(window_along(k, s, e, c.axis));
      use.together.push_back(windows_together(k, s, e, c.axis));
    }
    auto slide = [&](AxisId a) {
      const Slide found = slide_along(k, e, c.axis, a);
      return facts.few || use.shuffled || found.stride == 1 ? found : Slide{};
    };
    use.slides.push_back(step ? slide(*step) : Slide{});
    use.far.push_back({});
    for (AxisId a : k.inner(s))
      if (facts.few && step && a != *step && use.far.back().stride == 0)
        use.far.back() = slide(a);
  }
}

static LoadUse load_use(const ScheduledKernel& k, ExprId id, const TileFacts& facts) {
  const Stage& s = k.stages[0];
  const Expr& e = k.exprs[id];
  const std::optional<AxisId> step = innermost_loop(k, s);
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(e.index, used);
  for (const Bound& b : e.bounds) k.indices.collect_axes(b.index, used);
  const bool weight = k.arguments[e.argument].kind == Argument::Kind::Packed;
  const bool dots = k.has_dot_axis() && used[*k.loops.dot];
  LoadUse use;
  use.vector = k.has_lane_axis() && used[*k.loops.lane];
  use.held = use.vector && step && !used[*step];
  use.shuffled = use.vector && !weight && shuffled_lanes(k, e);
  if (weight && use.vector) use.bytes = panel_bytes(k, s, used);
  const int64_t line = int64_t(k.loops.lanes) * byte_size(e.dtype) * (dots ? kDot : 1);
  if (!use.held)
    use.streams =
        streams_of(facts.level.machine, use.bytes, line, weight_bytes(k, e), s.nested);
  int64_t dot_step = 0;
  use.interleaved =
      dots && use.vector && !weight &&
      !(k.indices.affine_in(e.index, *k.loops.dot, dot_step) && dot_step == 1);
  use.grouped = dots && !use.vector && sums_groups(k, facts.level);
  if (facts.elements == id) use.elements = kElements;
  if (use.vector && step) use.steps = double(k.indices.extent(*step));
  use.all_steps = facts.steps;
  if (facts.halves) {
    use.shared = dots && !use.vector && reads_groups(k);
    for (const Candidate& c : facts.candidates)
      use.strides.push_back(k.indices.coefficient(e.index, c.axis));
    for (const TileAxis& t : s.short_sums)
      use.step_strides.push_back(k.indices.coefficient(e.index, t.axis));
  }
  add_candidates(k, e, weight, used, step, facts, use);
  return use;
}

// Two addresses and a count of steps stay beside the sums.
static constexpr int kAddresses = 3;

// Bytes in words are widened to two pairs, each of which meets one instruction.
static std::optional<ScalarCosts> scalar_costs(const ScheduledKernel& k,
                                               const Level& level) {
  if (sums_across(k, level)) return ScalarCosts{};
  const DType dtype = k.stages[0].dtype;
  if (level.has_vectors() || is_float(dtype) || byte_size(dtype) > 4) return std::nullopt;
  // A multiplication and an addition for two; of bytes that are read, two come together
  // by a shift and an addition.
  if (sums_in_pairs(k, level))
    return ScalarCosts{.product = 1, .load = 1.5, .kept = 0.75, .sums = 0.5};
  const bool words = k.has_dot_axis() && level.dots == ByteProducts::Words;
  if (words) return ScalarCosts{.product = 2, .load = 3, .kept = 2};
  // RISC-V has no instruction that does both.
  return ScalarCosts{.product = level.dots == ByteProducts::Paired ? 2.0 : 1.0};
}

TileFacts tile_facts(const ScheduledKernel& k, const Level& level) {
  const Stage& s = k.stages[0];
  TileFacts facts{.level = level, .kernel = k, .registers = level.registers};
  facts.scalars = scalar_costs(k, level);
  if (facts.scalars) facts.registers = level.integer_registers - kAddresses;
  facts.candidates = tile_candidates(k);
  const int lane_bits = byte_size(is_narrow_float(s.dtype) ? DType::F32 : s.dtype) * 8;
  facts.per_vector = std::max(1, k.loops.lanes * lane_bits / level.register_bits);
  if (sums_across(k, level)) facts.per_vector = 1;
  if (sums_groups(k, level)) {
    facts.per_vector = quads_stored(k);
    facts.per_load = facts.per_vector;
    facts.matrices = level.dots == ByteProducts::Matrices;
  }
  if (level.dots == ByteProducts::Halves && k.has_dot_axis()) {
    facts.per_vector = 2 * quads_stored(k);
    HalfCosts& halves = facts.halves.emplace();
    for (const TileAxis& t : s.short_sums) halves.together.push_back(t.count);
  }
  facts.few = !facts.scalars && has_few_registers(level, facts.per_vector);
  for (AxisId a : k.inner(s))
    if (!k.is_lane(a) && !k.is_dot(a)) facts.steps *= double(k.indices.extent(a));
  if (facts.per_vector == 1 && k.has_lane_axis())
    facts.bytes = byte_rows(k, facts.candidates);
  if (!facts.scalars && k.has_lane_axis() && contains(k.inner(s), *k.loops.lane)) {
    facts.across = {k.loops.lanes, 1.0 / k.loops.lanes};
    for (AxisId a : k.inner(s)) facts.across.steps *= double(k.indices.extent(a));
  }
  if (takes_shared_elements(k, level, 0)) facts.elements = shared_elements(k, s)->load;
  for (ExprId id : loads_below(k, s.value)) facts.loads.push_back(load_use(k, id, facts));
  return facts;
}

} // namespace svod::optimize
