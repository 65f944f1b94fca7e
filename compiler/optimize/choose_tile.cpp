// The register tile. Accumulators, the vectors they are fed with and one broadcast have
// to fit the register file: MR*NV + NV + 1 <= 32 for AVX-512. Within that, the tile with
// the fewest loads per multiply-add wins; below eight accumulators the FMA pipeline runs
// dry.
#include "compiler/optimize/choose.h"
#include "compiler/optimize/small_code.h"
#include "compiler/optimize/tile_facts.h"

#include <algorithm>

namespace svod::optimize {

// Tries all counts from the candidate `next` on; `best` and `choice` become those of the
// cheapest.
static void search(const TileFacts& facts, size_t next, int used_axes,
                   std::vector<int>& counts, double& best, std::vector<int>& choice) {
  if (next == facts.candidates.size()) {
    const double cost = tile_cost(facts, counts);
    if (cost < best * 0.999) best = cost, choice = counts;
    return;
  }
  int points = 1;
  for (size_t i = 0; i < next; ++i) points *= counts[i];
  const int64_t extent = facts.candidates[next].extent;
  const int limit = used_axes >= 2 ? 1 : int(std::min<int64_t>(kLongestRow, extent));
  for (int n = 1; n <= limit && n * points <= facts.registers; ++n) {
    if (n * points > facts.most_points) break;
    if (facts.level.small && extent % n != 0) continue;
    counts[next] = n;
    search(facts, next + 1, used_axes + (n > 1), counts, best, choice);
  }
  counts[next] = 1;
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

static int64_t reductions_of(const ScheduledKernel& k) {
  return std::ranges::count_if(
      k.stages, [](const Stage& s) { return s.kind == StageKind::Reduce && !s.nested; });
}

// Rows of softmax: each waits for the ends of its sums, across lanes, and for the
// exponentials between them, in which its neighbours take theirs, as long as the first
// cache holds what all of them read and write. On Golden Cove, time of one row at a time
// over that of four: 300 rows of 49 numbers 1.41, of 256 1.53, 100 rows of 768 1.60, 64
// of 1500 1.10, 16 of 4096 0.84. Rows without exponentials gain nothing for certain.
static Tile softmax_tile(const ScheduledKernel& k, const Level& level) {
  constexpr int kRows = 4;
  const Stage& s = k.stages[0];
  const bool exponentials = std::ranges::any_of(k.exprs, [](const Expr& e) {
    return e.kind == Expr::Kind::Map && e.op == Op::Exp;
  });
  if (level.small || level.machine.window == 0 || reductions_of(k) < 2 ||
      s.kind != StageKind::Reduce || !k.has_lane_axis() ||
      !contains(k.inner(s), *k.loops.lane) || !exponentials)
    return {};
  int64_t bytes = byte_size(DType::F32), most = kRows - 1;
  for (AxisId a : k.inner(s)) bytes *= k.indices.extent(a);
  if (2 * kRows * bytes > level.machine.first.bytes) return {};
  Tile tile;
  for (AxisId a : k.loops.outer)
    if (const int64_t extent = k.indices.extent(a); extent > most) {
      most = extent;
      tile.counts = {{a, kRows}};
    }
  return tile;
}

// Whether the first stage is one that tiles are searched for: a single reduction of few
// gathers.
static bool takes_search(const ScheduledKernel& k) {
  // Many gathers are long as they are: five positions of a RoiAlign compiled for a
  // minute.
  constexpr int kManyGathers = 2;
  const Stage& s = k.stages[0];
  const bool arg = s.op == Op::ArgMin || s.op == Op::ArgMax;
  if (s.kind != StageKind::Reduce || k.inner(s).empty() || arg) return false;
  return reductions_of(k) <= 1 && gathers_below(k, s.value) <= kManyGathers;
}

static Tile searched_tile(const ScheduledKernel& k, const Level& level) {
  TileFacts facts = tile_facts(k, level);
  facts.most_points = most_points(k, level);
  std::vector<int> counts(facts.candidates.size(), 1), choice = counts;
  Tile tile;
  tile.cost = 1e300;
  search(facts, 0, 0, counts, tile.cost, choice);
  // Positions that share a broadcast follow each other: the vectors stay in registers and
  // one broadcast at a time is alive (the other way round spilled: 2 x slower).
  auto on_vectors = [&](size_t i) {
    return std::ranges::any_of(facts.loads,
                               [&](const LoadUse& l) { return l.vector && l.axes[i]; });
  };
  for (bool vectors : {false, true})
    for (size_t i = 0; i < choice.size(); ++i)
      if (choice[i] > 1 && on_vectors(i) == vectors)
        tile.counts.emplace_back(facts.candidates[i].axis, choice[i]);
  return tile;
}

Tile choose_tile(const ScheduledKernel& k, const Level& level) {
  const Stage& s = k.stages[0];
  const std::vector<ExprId> descents = descents_below(k, s.value);
  if (!descents.empty()) return descent_tile(k, descents[0], level.machine);
  if (s.kind == StageKind::Store) return transpose_tile(k);
  if (s.kind == StageKind::Scan && k.stages.size() == 1) return scan_tile(k);
  return takes_search(k) ? searched_tile(k, level) : softmax_tile(k, level);
}

} // namespace svod::optimize
