// The register tile. Accumulators, the vectors they are fed with and one broadcast have
// to fit the register file: MR*NV + NV + 1 <= 32 for AVX-512. Within that, the tile with
// the fewest loads per multiply-add wins; below eight accumulators the FMA pipeline runs
// dry.
#include "compiler/fuse/choose.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace svod {

namespace {

struct LoadUse {
  bool vector;
  bool held;   // a vector for many steps of the reduction, as a scale of its block is
  int streams; // of a weight, whole lines, one per position: so many are read at once
  bool interleaved;       // vectors of bytes, which rows of a window that overlap share
  double cost;            // of one vector or broadcast, in multiply-adds
  std::vector<bool> axes; // by candidate
  // Of interleaved ones, by candidate: the positions of a window that slides along it.
  std::vector<int64_t> windows = {};
};

struct Candidate {
  AxisId axis;
  int64_t extent;
  int apart; // positions of it that no tile takes in
};

} // namespace

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

// Panels lie a power of two apart where a layer's width is one, so that lines of all of
// them compete for one set of the first cache: read side by side, 16 panels of 256
// vectors came at 22 GB/s from the second cache, 4 at 100.
static constexpr int kMostStreams = 4;
// Memory is read fastest in one stream: 4-bit weights came at 33 GB/s, in four at 20. The
// sums of blocks wait for nothing, so that one is enough for them; a single sum as long
// as a row pays only where no cache holds the weights.
static constexpr int64_t kLastCache = 32 << 20;

static double tile_cost(const std::vector<Candidate>& candidates,
                        const std::vector<LoadUse>& loads, const std::vector<int>& counts,
                        const Across& across, int registers, int per_vector) {
  int points = 1;
  double waste = 1;
  for (size_t i = 0; i < candidates.size(); ++i) {
    points *= counts[i];
    auto extent = double(candidates[i].extent), apart = double(candidates[i].apart);
    double tiles = std::ceil((extent - apart) / counts[i]) + apart;
    waste *= 1 + 0.7 * (tiles * counts[i] / extent - 1);
  }
  int kept = 0;
  double load_work = 0;
  for (const LoadUse& load : loads) {
    int distinct = 1;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (load.axes[i]) distinct *= counts[i];
    if (distinct > load.streams) return 1e30;
    double loaded = distinct;
    for (size_t i = 0; i < load.windows.size(); ++i)
      loaded *=
          double(counts[i] + load.windows[i] - 1) / double(counts[i] * load.windows[i]);
    if (!load.held) load_work += load.cost * loaded * (load.vector ? per_vector : 1);
    // Two registers: what is made of it takes one, too.
    if (load.held) kept += 2 * distinct * per_vector;
    const bool stays = distinct < points || load.interleaved;
    if (!load.held && load.vector && stays) kept += distinct * per_vector;
  }
  int needed = points * per_vector + kept + 1;
  if (needed > registers && points > 1) return 1e30;
  double work = points * per_vector;
  double latency = std::max(0.0, 8.0 - work) * 0.5;
  return (std::max(work, load_work) + 0.15 * load_work + latency +
          across.cost(points) * per_vector) /
         points * waste;
}

static void search(const std::vector<Candidate>& candidates,
                   const std::vector<LoadUse>& loads, size_t next, int used_axes,
                   std::vector<int>& counts, const Across& across, int registers,
                   int per_vector, double& best, std::vector<int>& choice) {
  if (next == candidates.size()) {
    double cost = tile_cost(candidates, loads, counts, across, registers, per_vector);
    if (cost < best * 0.999) best = cost, choice = counts;
    return;
  }
  int points = 1;
  for (size_t i = 0; i < next; ++i) points *= counts[i];
  int limit = used_axes >= 2
                  ? 1
                  : static_cast<int>(std::min<int64_t>(16, candidates[next].extent));
  for (int n = 1; n <= limit && n * points <= registers; ++n) {
    counts[next] = n;
    search(candidates, loads, next + 1, used_axes + (n > 1), counts, across, registers,
           per_vector, best, choice);
  }
  counts[next] = 1;
}

// What one vector of accumulators reads of an operand.
static int64_t panel_bytes(const Kernel& k, const Stage& s,
                           const std::vector<bool>& used) {
  int64_t bytes = int64_t(k.lanes) * byte_size(s.dtype);
  for (AxisId a : s.inner)
    if (used[a] && !k.is_dot(a)) bytes *= k.indices.extent(a);
  if (s.nested)
    for (AxisId a : (&s + 1)->inner)
      if (used[a]) bytes *= k.indices.extent(a);
  return bytes;
}

// Of all elements of a weight that a load meets.
static int64_t weight_bytes(const Kernel& k, const Expr& load) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(load.index, used);
  double bytes = byte_size(load.dtype);
  for (AxisId a = 0; a < used.size(); ++a)
    if (used[a]) bytes *= double(k.indices.extent(a));
  return static_cast<int64_t>(bytes);
}

// How many positions of a window slide over the same elements along an outer axis.
static int64_t window_along(const Kernel& k, const Stage& s, const Expr& load,
                            AxisId axis) {
  int64_t step = 0, inner = 0;
  if (!k.indices.affine_in(load.index, axis, step) || step == 0) return 1;
  for (AxisId a : s.inner)
    if (!k.is_dot(a) && k.indices.affine_in(load.index, a, inner) && inner == step)
      return k.indices.extent(a);
  return 1;
}

// Weights beyond this come from the second cache for every tile.
static constexpr int64_t kFirstCache = 16 << 10;
// Panels shorter than this fill the first cache's sets evenly enough.
static constexpr int64_t kPanel = 4 << 10;
static constexpr int64_t kLine = 64; // bytes of the first cache's lines

// Walks down trees that go on side by side: a step waits for two loads and a comparison
// (about ten cycles), in which others take theirs.
static constexpr int64_t kWalks = 8;

static Tile descent_tile(const Kernel& k, ExprId descent) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(k.exprs[descent].index, used);
  for (ExprId load : loads_below(k, descent))
    k.indices.collect_axes(k.exprs[load].index, used);
  Tile tile;
  int64_t most = 1;
  for (AxisId a : k.outer) {
    int64_t walks = std::min(kWalks, k.indices.extent(a));
    if (!used[a] || walks <= most || (k.has_lane_axis && a == k.lane_axis)) continue;
    most = walks;
    tile.counts = {{a, static_cast<int>(walks)}};
  }
  return tile;
}

bool lanes_end_at(const Kernel& k, AxisId axis, bool high,
                  const std::vector<Range>& ranges) {
  if (!k.has_lane_axis || axis == k.lane_axis || k.indices.extent(axis) < 2) return false;
  std::vector<Range> rest = ranges;
  (high ? rest[axis].high : rest[axis].low) += high ? -1 : 1;
  auto helps = [&](const Bound& b) {
    if (!k.indices.depends_on(b.index, axis) ||
        !k.indices.depends_on(b.index, k.lane_axis))
      return false;
    Range all = k.indices.range(b.index, ranges), cut = k.indices.range(b.index, rest);
    return high ? all.high >= b.high && cut.high < b.high
                : all.low < b.low && cut.low >= b.low;
  };
  for (const Expr& e : k.exprs)
    if (std::ranges::any_of(e.bounds, helps)) return true;
  for (const Stage& s : k.stages)
    if (std::ranges::any_of(s.domain, helps)) return true;
  return false;
}

int gathers_below(const Kernel& k, ExprId root) {
  auto on_lanes = [&](ExprId d) {
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(k.exprs[d].index, used);
    for (ExprId load : loads_below(k, d))
      k.indices.collect_axes(k.exprs[load].index, used);
    return used[k.lane_axis];
  };
  if (!k.has_lane_axis) return 0;
  int count = 0;
  for (ExprId load : loads_below(k, root)) {
    std::vector<ExprId> dynamic;
    k.indices.collect_dynamic(k.exprs[load].index, dynamic);
    count += std::ranges::any_of(dynamic, on_lanes);
  }
  return count;
}

static bool shared_by_none(const Kernel& k, AxisId axis) {
  return std::ranges::all_of(loads_below(k, k.stages[0].value), [&](ExprId load) {
    return k.indices.depends_on(k.exprs[load].index, axis);
  });
}

static std::vector<Candidate> tile_candidates(const Kernel& k) {
  std::vector<Range> ranges;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    ranges.push_back({0, k.indices.extent(a) - 1});
  std::vector<Candidate> candidates;
  for (AxisId a : k.outer)
    if (k.indices.extent(a) > 1 && !k.is_lane(a))
      candidates.push_back(
          {a, k.indices.extent(a),
           lanes_end_at(k, a, false, ranges) + lanes_end_at(k, a, true, ranges)});
  // What every load depends on spares none.
  for (size_t i = 0; i < candidates.size() && candidates.size() > 4;)
    if (shared_by_none(k, candidates[i].axis))
      candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  if (candidates.size() > 4) candidates.erase(candidates.begin(), candidates.end() - 4);
  return candidates;
}

// A store whose lanes lie apart takes as many neighbours along the axis that is
// contiguous as a vector has lanes, and swaps rows with columns in registers.
static Tile transpose_tile(const Kernel& k) {
  const Stage& s = k.stages.back();
  Tile tile;
  int64_t apart = 0;
  bool lanes = k.stages.size() == 1 && s.kind == StageKind::Store && s.inner.empty() &&
               k.has_lane_axis && k.indices.affine_in(s.index, k.lane_axis, apart);
  if (!lanes || apart <= 1) return tile;
  for (AxisId a : k.outer) {
    int64_t step = 0, extent = k.indices.extent(a);
    bool next = a != k.lane_axis && extent >= 4 &&
                k.indices.affine_in(s.index, a, step) && step == 1;
    if (next) tile.counts = {{a, static_cast<int>(std::min<int64_t>(k.lanes, extent))}};
  }
  return tile;
}

// Running reductions of neighbouring vectors go along together: each step then reads and
// writes a few cache lines in a row.
static Tile scan_tile(const Kernel& k) {
  const Stage& s = k.stages[0];
  Tile tile;
  for (AxisId a : k.outer) {
    int64_t step = 0, extent = k.indices.extent(a);
    bool next = k.has_lane_axis && a != k.lane_axis && extent > 1 &&
                k.indices.affine_in(s.index, a, step) && step == k.lanes;
    if (next) tile.counts = {{a, static_cast<int>(std::min<int64_t>(4, extent))}};
  }
  return tile;
}

Tile choose_tile(const Kernel& k, const Level& level) {
  Tile tile;
  const Stage& s = k.stages[0];
  std::vector<ExprId> descents = descents_below(k, s.value);
  if (!descents.empty()) return descent_tile(k, descents[0]);
  if (s.kind == StageKind::Store) return transpose_tile(k);
  if (s.kind == StageKind::Scan && k.stages.size() == 1) return scan_tile(k);
  bool arg = s.op == Op::ArgMin || s.op == Op::ArgMax;
  if (s.kind != StageKind::Reduce || s.inner.empty() || arg) return tile;
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
  auto step = std::find_if(s.inner.rbegin(), s.inner.rend(), [&](AxisId a) {
    return !k.is_lane(a) && !k.is_dot(a) && k.indices.extent(a) > 1;
  });
  std::vector<LoadUse> loads;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(e.index, used);
    for (const Bound& b : e.bounds) k.indices.collect_axes(b.index, used);
    bool vector = k.has_lane_axis && used[k.lane_axis];
    LoadUse use{vector,  vector && step != s.inner.rend() && !used[*step],
                INT_MAX, false,
                0.5,     {}};
    bool weight = k.arguments[e.argument].kind == Argument::Kind::Packed;
    const int64_t bytes = weight && use.vector ? panel_bytes(k, s, used) : 0;
    const bool dots = k.has_dot_axis && used[k.dot_axis];
    const int64_t line = int64_t(k.lanes) * byte_size(e.dtype) * (dots ? kDot : 1);
    if (bytes >= kPanel && !use.held && line >= kLine)
      use.streams = s.nested || weight_bytes(k, e) > kLastCache ? 1 : kMostStreams;
    if (bytes > kFirstCache) use.cost = 1.0;
    use.interleaved = dots && vector && !weight;
    if (use.interleaved) use.cost = 2.0; // and two shuffles
    for (const Candidate& c : candidates) {
      use.axes.push_back(used[c.axis]);
      if (use.interleaved) use.windows.push_back(window_along(k, s, e, c.axis));
    }
    loads.push_back(std::move(use));
  }
  int lane_bits = byte_size(is_narrow_float(s.dtype) ? DType::F32 : s.dtype) * 8;
  int per_vector = std::max(1, k.lanes * lane_bits / level.register_bits);
  std::vector<int> counts(candidates.size(), 1), choice = counts;
  double best = 1e300;
  Across across;
  if (k.has_lane_axis &&
      std::find(s.inner.begin(), s.inner.end(), k.lane_axis) != s.inner.end()) {
    across = {k.lanes, 1.0 / k.lanes};
    for (AxisId a : s.inner) across.steps *= double(k.indices.extent(a));
  }
  search(candidates, loads, 0, 0, counts, across, level.registers, per_vector, best,
         choice);
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
