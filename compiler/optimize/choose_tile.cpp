// The register tile. Accumulators, the vectors they are fed with and one broadcast have
// to fit the register file: MR*NV + NV + 1 <= 32 for AVX-512. Within that, the tile with
// the fewest loads per multiply-add wins; below eight accumulators the FMA pipeline runs
// dry.
#include "compiler/kernel/byte_products.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace svod {

namespace {

// Positions of a tile's axis read again what a loop of the reduction walks along: the
// loop's extent, and its steps from one position to the next; 0: they do not.
struct Slide {
  int64_t extent = 0, stride = 0;
  int64_t window(int count) const {
    return count > 1 && stride > 0 ? (count - 1) * stride + extent : count;
  }
};

struct LoadUse {
  bool vector;
  bool held;   // a vector for many steps of the reduction, as a scale of its block is
  int streams; // of a weight, whole lines, one per position: so many are read at once
  bool interleaved;       // vectors of bytes, which rows of a window that overlap share
  int64_t bytes;          // of a panel: what one vector of accumulators reads of it
  double steps;           // that are written out together and read neighbours
  double all_steps;       // of the reduction
  std::vector<bool> axes; // by candidate
  // By candidate: along the innermost loop, and along another one.
  std::vector<Slide> slides, far = {};
  // Of interleaved ones, by candidate: the positions of a window that slides along it.
  std::vector<int64_t> windows = {};
  // Likewise: neighbouring positions that one of them serves.
  std::vector<int> together = {};
  // By candidate: its positions compete for one set of the first cache.
  std::vector<bool> same_set = {};
};

struct Candidate {
  AxisId axis;
  int64_t extent;
  int apart; // positions of it that no tile takes in
};

// What the ends of a reduction along the lanes cost: sums across, `lanes` of them at
// once where there are as many.
struct Across {
  int lanes = 1;
  double steps = 0; // of the reduction; 0: not along the lanes
  double cost(int points) const {
    if (steps == 0) return 0;
    int rest = points % lanes;
    return (3.0 * (points - rest) + 8.0 * rest) / steps;
  }
};

// Positions of one axis that a tile is tried with.
constexpr int kLongestRow = 16;

// What a level offers, how long the reduction is, what a tile's last sums take, and the
// candidate along which results narrowed to bytes are neighbours (none: no bytes are).
struct Means {
  const Level& level;
  int per_vector = 1; // registers
  double steps = 1;
  Across across = {};
  bool few = false; // registers
  std::optional<size_t> bytes = {};
};

// What a register tile of these counts keeps and loads in one step.
struct Step {
  int points = 1, kept = 0;
  double loads = 0;
  bool fits = true;
};

} // namespace

// What all steps of the reduction read of a load whose tile slides along an outer loop of
// it, too: written out, it is kept from one of that loop's steps to the next. 0 where the
// steps are too many.
static int64_t kept_patch(const LoadUse& load, const std::vector<int>& counts,
                          int points) {
  if (!load.vector || points * load.all_steps > kWrittenOut) return 0;
  int64_t rows = 1, columns = 1;
  bool slides = false, along = false;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!load.axes[i] || counts[i] == 1) continue;
    slides |= load.far[i].stride > 0;
    along |= load.slides[i].stride > 0;
    (load.far[i].stride > 0 ? rows : columns) *= load.far[i].stride > 0
                                                     ? load.far[i].window(counts[i])
                                                     : load.slides[i].window(counts[i]);
  }
  return slides ? rows * columns * (along ? 1 : int64_t(load.steps)) : 0;
}

// What a panel's vector costs, in multiply-adds of a register: panels of a tile that
// together take more than half of the first cache come from the second one for every tile
// of rows, and half of what that takes longer is hidden.
static double vector_cost(const Machine& m, int64_t bytes) {
  const double load = m.in_fmas(m.loads_per_clock);
  const double farther = m.first.bytes_per_clock / m.second.bytes_per_clock;
  return bytes <= m.first.bytes / 2 ? load : load * (1 + farther) / 2;
}

// What one element for all lanes costs. Rows that lie a multiple of a set's distance
// apart compete for its ways: in 13 rows of 3072 numbers every line was lost to the
// second cache before its next number was read (98 GFLOP/s where 8 rows reached 112).
static double broadcast_cost(const Machine& m, int rivals) {
  const double load = m.in_fmas(m.broadcasts_per_clock);
  const double farther = m.first.bytes_per_clock / m.second.bytes_per_clock;
  return m.first.ways != 0 && rivals > m.first.ways ? load * farther : load;
}

static Step step_of(const std::vector<LoadUse>& loads, const std::vector<int>& counts,
                    const Means& means) {
  const Machine& machine = means.level.machine;
  Step step;
  for (int count : counts) step.points *= count;
  for (const LoadUse& load : loads) {
    int distinct = 1, again = 1;
    int64_t window = 1;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (!load.axes[i]) continue;
      distinct *= counts[i];
      window *= load.slides[i].window(counts[i]);
      // The first and the last ones are read once.
      again *= means.few ? counts[i] : int(load.slides[i].window(counts[i]));
    }
    step.fits &= distinct <= load.streams;
    const int registers = load.vector ? means.per_vector : 1;
    // Two registers: what is made of it takes one, too.
    if (load.held) {
      step.kept += 2 * distinct * means.per_vector;
      continue;
    }
    if (load.interleaved) { // a load and two shuffles each
      double loaded = 2.0;
      int kept = 1;
      for (size_t i = 0; i < counts.size(); ++i) {
        if (!load.axes[i]) continue;
        const int own = (counts[i] + load.together[i] - 1) / load.together[i];
        kept *= own;
        loaded *= load.windows[i] == 1
                      ? double(own)
                      : double(own + load.windows[i] - 1) / double(load.windows[i]);
      }
      step.loads += loaded * registers;
      step.kept += kept * means.per_vector;
      continue;
    }
    if (const int64_t patch = kept_patch(load, counts, step.points); patch > 0) {
      step.loads += registers * double(patch) / load.all_steps;
      step.kept += static_cast<int>(patch) * means.per_vector;
      continue;
    }
    // Steps that are written out share what they load, and keep it as long.
    const bool shared =
        load.vector && window > distinct && step.points * load.steps <= kWrittenOut;
    int rivals = 1;
    for (size_t i = 0; i < counts.size(); ++i)
      if (load.axes[i] && load.same_set[i]) rivals *= counts[i];
    const double each = load.vector ? vector_cost(machine, distinct * load.bytes)
                                    : broadcast_cost(machine, rivals);
    step.loads += each * registers * (shared ? double(window) / load.steps : distinct);
    // 6 x 64 reached 99 to 111 GFLOP/s where 14 x 32 reached 111 to 115.
    const int crowd = load.bytes > 0 ? std::max(0, distinct - machine.free_streams) : 0;
    step.loads += 0.25 * crowd * crowd;
    if (shared)
      step.kept += again * means.per_vector;
    else if (load.vector && distinct < step.points)
      step.kept += distinct * means.per_vector;
  }
  step.fits &= step.points == 1 ||
               step.points * means.per_vector + step.kept + 1 <= means.level.registers;
  return step;
}

// Vectors narrowed to bytes are clamped from both sides, narrowed and stored one by one,
// or four neighbours together in six instructions.
static constexpr double kNarrowOne = 5, kNarrowFour = 6;

static double narrow_cost(const std::vector<int>& counts, const Means& means) {
  if (!means.bytes) return 0;
  int points = 1;
  for (int count : counts) points *= count;
  const int row = counts[*means.bytes], rest = row % 4, fours = row / 4;
  const int rows = points / row;
  return rows * (fours * kNarrowFour + rest * kNarrowOne) / means.steps;
}

// Fewer sums than hide the latency of a multiply-add wait for half of what is missing.
// Lines beyond those that are stored beside the multiplications of the next tile wait:
// products of 16 steps reached 114 GFLOP/s by 4 x 64, 106 by 14 x 32.
static double step_cost(const Step& step, const Means& means) {
  const Machine& m = means.level.machine;
  const double work = step.points * means.per_vector;
  const double latency = std::max(0.0, m.sums_in_flight - work) * 0.5;
  const double register_bytes = means.level.register_bits / 8.0;
  const double lines = work * register_bytes / double(m.first.line);
  return std::max(work, step.loads) + 0.15 * step.loads + latency +
         means.across.cost(step.points) * means.per_vector +
         m.stored_line_wait * std::max(0.0, lines - m.stored_lines) / means.steps;
}

// The cost of all positions from the candidate `next` on, by position: whole tiles, the
// rest of an axis as a tile of its own, and what lies apart.
static double tiles_cost(const std::vector<Candidate>& candidates,
                         const std::vector<LoadUse>& loads, const std::vector<int>& whole,
                         const Means& means, size_t next, std::vector<int>& counts) {
  if (next == candidates.size())
    return step_cost(step_of(loads, counts, means), means) + narrow_cost(counts, means);
  const int count = whole[next];
  const int64_t extent = candidates[next].extent, apart = candidates[next].apart;
  const auto rest = static_cast<int>((extent - apart) % count);
  const int64_t tiles = (extent - apart) / count;
  double cost = 0;
  auto add = [&](int size, int64_t times) {
    if (size == 0 || times == 0) return;
    counts[next] = size;
    cost += double(times) * tiles_cost(candidates, loads, whole, means, next + 1, counts);
  };
  add(count, tiles + (count == 1 ? apart : 0));
  add(rest, 1);
  if (count != 1) add(1, apart);
  counts[next] = count;
  return cost / double(extent);
}

static double tile_cost(const std::vector<Candidate>& candidates,
                        const std::vector<LoadUse>& loads, const std::vector<int>& counts,
                        const Means& means) {
  if (!step_of(loads, counts, means).fits) return 1e30;
  std::vector<int> part = counts;
  return tiles_cost(candidates, loads, counts, means, 0, part);
}

static void search(const std::vector<Candidate>& candidates,
                   const std::vector<LoadUse>& loads, size_t next, int used_axes,
                   std::vector<int>& counts, const Means& means, double& best,
                   std::vector<int>& choice) {
  if (next == candidates.size()) {
    double cost = tile_cost(candidates, loads, counts, means);
    if (cost < best * 0.999) best = cost, choice = counts;
    return;
  }
  int points = 1;
  for (size_t i = 0; i < next; ++i) points *= counts[i];
  int limit =
      used_axes >= 2 ? 1 : int(std::min<int64_t>(kLongestRow, candidates[next].extent));
  for (int n = 1; n <= limit && n * points <= means.level.registers; ++n) {
    counts[next] = n;
    search(candidates, loads, next + 1, used_axes + (n > 1), counts, means, best, choice);
  }
  counts[next] = 1;
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

// A step down a tree waits for two loads and a comparison, in which other walks take
// theirs.
static Tile descent_tile(const ScheduledKernel& k, ExprId descent, const Machine& m) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(k.exprs[descent].index, used);
  for (ExprId load : loads_below(k, descent))
    k.indices.collect_axes(k.exprs[load].index, used);
  Tile tile;
  int64_t most = 1;
  for (AxisId a : k.loops.outer) {
    int64_t walks = std::min<int64_t>(m.walks_in_flight, k.indices.extent(a));
    if (!used[a] || walks <= most || (k.has_lane_axis() && a == *k.loops.lane)) continue;
    most = walks;
    tile.counts = {{a, static_cast<int>(walks)}};
  }
  return tile;
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
  for (AxisId a : k.loops.outer)
    if (run_of(k, a) > 1 && !k.is_lane(a) && !row(a))
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

// A store whose lanes lie apart takes as many neighbours where it is contiguous as a
// vector has lanes, and swaps rows with columns in registers.
static Tile transpose_tile(const ScheduledKernel& k) {
  const Stage& s = k.stages.back();
  int64_t apart = 0;
  bool lanes = k.stages.size() == 1 && s.kind == StageKind::Store && k.inner(s).empty() &&
               k.has_lane_axis() && k.indices.affine_in(s.index, *k.loops.lane, apart);
  if (!lanes || apart <= 1) return {};
  Tile tile = neighbours_in(k, s, *k.loops.lane, k.loops.lanes);
  return tile.points() < 4 ? Tile{} : tile;
}

// Running reductions of neighbouring vectors go along together: each step then reads and
// writes a few cache lines in a row.
static Tile scan_tile(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  Tile tile;
  for (AxisId a : k.loops.outer) {
    int64_t step = 0, extent = k.indices.extent(a);
    bool next = k.has_lane_axis() && a != *k.loops.lane && extent > 1 &&
                k.indices.affine_in(s.index, a, step) && step == k.loops.lanes;
    if (next) tile.counts = {{a, static_cast<int>(std::min<int64_t>(4, extent))}};
  }
  return tile;
}

// Where the registers, of a vector each, are no more than the longest row of positions, a
// tile must not share more than they keep (longer vectors are cut first,
// narrow_lanes.cpp). Of 32 enough are left to read again what they do not: 4 x 4 windows
// over every second of 112 columns took 85 us, 14 x 1, whose rows come from the second
// cache more often, 95. Without fused multiply-add the instructions are the limit,
// whatever is shared.
static bool has_few_registers(const Level& level, int per_vector) {
  return level.fma && per_vector == 1 && level.registers <= kLongestRow;
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
  const Expr& value = k.exprs[s.value];
  if (s.kind != StageKind::Store || value.kind != Expr::Kind::Cast ||
      value.dtype != DType::U8 || k.exprs[value.inputs[0]].dtype != DType::F32)
    return std::nullopt;
  for (size_t i = 0; i < candidates.size(); ++i) {
    int64_t step = 0;
    if (k.indices.affine_in(s.index, candidates[i].axis, step) && step == k.loops.lanes)
      return i;
  }
  return std::nullopt;
}

Tile choose_tile(const ScheduledKernel& k, const Level& level) {
  Tile tile;
  const Stage& s = k.stages[0];
  std::vector<ExprId> descents = descents_below(k, s.value);
  if (!descents.empty()) return descent_tile(k, descents[0], level.machine);
  if (s.kind == StageKind::Store) return transpose_tile(k);
  if (s.kind == StageKind::Scan && k.stages.size() == 1) return scan_tile(k);
  bool arg = s.op == Op::ArgMin || s.op == Op::ArgMax;
  if (s.kind != StageKind::Reduce || k.inner(s).empty() || arg) return tile;
  // Several reductions per row keep their rows apart; one at a time is enough there.
  if (std::ranges::count_if(k.stages, [](const Stage& x) {
        return x.kind == StageKind::Reduce && !x.nested;
      }) > 1)
    return tile;
  // Many gathers are long as they are: five positions of a RoiAlign compiled for a
  // minute.
  constexpr int kManyGathers = 2;
  if (gathers_below(k, s.value) > kManyGathers) return tile;
  const std::vector<Candidate> candidates = tile_candidates(k);
  auto step = std::find_if(k.inner(s).rbegin(), k.inner(s).rend(), [&](AxisId a) {
    return !k.is_lane(a) && !k.is_dot(a) && k.indices.extent(a) > 1;
  });
  int lane_bits = byte_size(is_narrow_float(s.dtype) ? DType::F32 : s.dtype) * 8;
  int per_vector = std::max(1, k.loops.lanes * lane_bits / level.register_bits);
  const bool few = has_few_registers(level, per_vector);
  const int64_t set_bytes = level.machine.first.set_bytes();
  std::vector<LoadUse> loads;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(e.index, used);
    for (const Bound& b : e.bounds) k.indices.collect_axes(b.index, used);
    bool vector = k.has_lane_axis() && used[*k.loops.lane];
    LoadUse use{vector,  vector && step != k.inner(s).rend() && !used[*step],
                INT_MAX, false,
                0,       1,
                1,       {},
                {}};
    bool weight = k.arguments[e.argument].kind == Argument::Kind::Packed;
    if (weight && use.vector) use.bytes = panel_bytes(k, s, used);
    const bool dots = k.has_dot_axis() && used[*k.loops.dot];
    const int64_t line = int64_t(k.loops.lanes) * byte_size(e.dtype) * (dots ? kDot : 1);
    if (!use.held)
      use.streams =
          streams_of(level.machine, use.bytes, line, weight_bytes(k, e), s.nested);
    int64_t dot_step = 0;
    use.interleaved =
        dots && vector && !weight &&
        !(k.indices.affine_in(e.index, *k.loops.dot, dot_step) && dot_step == 1);
    if (vector && step != k.inner(s).rend()) use.steps = double(k.indices.extent(*step));
    for (AxisId a : k.inner(s))
      if (!k.is_lane(a) && !k.is_dot(a)) use.all_steps *= double(k.indices.extent(a));
    for (const Candidate& c : candidates) {
      use.axes.push_back(used[c.axis]);
      int64_t apart = 0;
      use.same_set.push_back(!weight && set_bytes != 0 &&
                             k.indices.affine_in(e.index, c.axis, apart) && apart != 0 &&
                             apart * byte_size(e.dtype) % set_bytes == 0);
      if (use.interleaved) {
        use.windows.push_back(window_along(k, s, e, c.axis));
        use.together.push_back(windows_together(k, s, e, c.axis));
      }
      auto slide = [&](AxisId a) {
        const Slide found = slide_along(k, e, c.axis, a);
        return few || found.stride == 1 ? found : Slide{};
      };
      use.slides.push_back(step == k.inner(s).rend() ? Slide{} : slide(*step));
      use.far.push_back({});
      for (AxisId a : k.inner(s))
        if (few && step != k.inner(s).rend() && a != *step && use.far.back().stride == 0)
          use.far.back() = slide(a);
    }
    loads.push_back(std::move(use));
  }
  std::vector<int> counts(candidates.size(), 1), choice = counts;
  double best = 1e300;
  Means means{.level = level, .per_vector = per_vector, .few = few};
  if (per_vector == 1 && k.has_lane_axis()) means.bytes = byte_rows(k, candidates);
  for (AxisId a : k.inner(s))
    if (!k.is_lane(a) && !k.is_dot(a)) means.steps *= double(k.indices.extent(a));
  if (k.has_lane_axis() && std::find(k.inner(s).begin(), k.inner(s).end(),
                                     *k.loops.lane) != k.inner(s).end()) {
    means.across = {k.loops.lanes, 1.0 / k.loops.lanes};
    for (AxisId a : k.inner(s)) means.across.steps *= double(k.indices.extent(a));
  }
  search(candidates, loads, 0, 0, counts, means, best, choice);
  tile.cost = best;
  // Positions that share a broadcast follow each other: the vectors stay in registers and
  // one broadcast at a time is alive (the other way round spilled: 2 x slower).
  auto on_vectors = [&](size_t i) {
    return std::any_of(loads.begin(), loads.end(),
                       [&](const LoadUse& l) { return l.vector && l.axes[i]; });
  };
  for (bool vectors : {false, true})
    for (size_t i = 0; i < candidates.size(); ++i)
      if (choice[i] > 1 && on_vectors(i) == vectors)
        tile.counts.emplace_back(candidates[i].axis, choice[i]);
  return tile;
}

} // namespace svod
