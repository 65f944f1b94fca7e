// The order of loops, and where outer ones are cut into parallel chunks.
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace svod::optimize {

// By ascending key; equal ones stay as they were.
template <class Key> static void sort_axes(std::vector<AxisId>& axes, Key key) {
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < axes.size(); ++i) order.emplace_back(key(axes[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<AxisId> sorted;
  for (auto [unused, i] : order) sorted.push_back(axes[i]);
  axes = std::move(sorted);
}

// Inner axes run with the smallest activation stride innermost, so that neighbouring
// steps read neighbouring memory.
static void order_inner(ScheduledKernel& k, size_t stage) {
  const Stage& s = k.stages[stage];
  bool reorder = s.kind == StageKind::Reduce && !is_arg_reduce(s);
  if (!reorder || s.inner.size() < 2) return;
  const Expr* widest = nullptr;
  for (ExprId id : loads_below(k, s.value)) {
    const Expr& e = k.exprs[id];
    if (k.arguments[e.argument].kind == Argument::Kind::Buffer && widest == nullptr)
      widest = &e;
  }
  if (widest == nullptr) return;
  // Elements of one vector come before its neighbours, which share what is shuffled.
  const auto shuffled = shuffled_lanes(k, *widest);
  sort_axes(k.loops.inner[stage], [&](AxisId a) {
    const int64_t step = std::abs(k.indices.coefficient(widest->index, a));
    return shuffled && step < k.loops.lanes ? -step * k.loops.lanes - 1 : -step;
  });
}

namespace {

// Which axes the weights of a reduction depend on and which its data, and bytes of both.
// Panels of a factor that the run has made are read as weights are.
struct OperandAxes {
  std::vector<bool> weight, data;
  int64_t weight_bytes = 0;
  std::set<BufferId> buffers; // that data come from

  // Products apart from each other, as those of groups or of Winograd's positions.
  bool apart(AxisId a) const { return weight[a] && data[a]; }
};

} // namespace

// Whether a load reads panels: vectors of the lanes, of which those of neighbouring steps
// of the sum lie behind each other.
static bool reads_panels(const ScheduledKernel& k, const Expr& load) {
  if (contains(k.loops.inner[0], *k.loops.lane)) return false;
  int64_t lane = 0, step = 0;
  return k.indices.affine_in(load.index, *k.loops.lane, lane) && lane == 1 &&
         k.indices.affine_in(load.index, k.loops.inner[0].back(), step) &&
         step == k.loops.lanes;
}

static OperandAxes operand_axes(const ScheduledKernel& k,
                                const std::vector<PackedWeight>& packed,
                                const std::vector<Buffer>& buffers) {
  const bool product = k.has_lane_axis() && !shared_factors(k).empty();
  OperandAxes out;
  out.weight.resize(k.indices.axis_count());
  out.data.resize(k.indices.axis_count());
  for (ExprId id : loads_below(k, k.stages[0].value)) {
    const Expr& e = k.exprs[id];
    const Argument& a = k.arguments[e.argument];
    const bool is_known = a.kind == Argument::Kind::Packed;
    const bool is_weight = is_known || (product && reads_panels(k, e));
    if (is_weight)
      out.weight_bytes += is_known ? packed[a.id].bytes() : buffers[a.id].bytes();
    else
      out.buffers.insert(a.id);
    k.indices.collect_axes(e.index, is_weight ? out.weight : out.data);
  }
  for (ExprId id : descents_below(k, k.stages[0].value)) {
    const PackedWeight& nodes = packed[k.arguments[k.exprs[id].table].id];
    out.weight_bytes += nodes.bytes();
    k.indices.collect_axes(k.exprs[id].index, out.data);
  }
  return out;
}

static bool reduces(const ScheduledKernel& k) {
  return k.stages[0].kind == StageKind::Reduce && !k.stages[0].inner.empty();
}

// Whether what is copied at once lies along the axis, in whole units.
static bool fills_units(const ScheduledKernel& k, AxisId axis) {
  constexpr int64_t kUnitBytes = 16;
  return std::ranges::any_of(loads_below(k, k.stages[0].value), [&](ExprId id) {
    const Expr& e = k.exprs[id];
    return k.arguments[e.argument].kind == Argument::Kind::Buffer &&
           k.indices.coefficient(e.index, axis) == 1 &&
           k.indices.extent(axis) * byte_size(e.dtype) % kUnitBytes == 0;
  });
}

// On a GPU the longest axis that whole tiles of steps divide is innermost: what a tile of
// steps has in common, as the place in a window and what bounds it, is found out once.
static void order_for_tiles(ScheduledKernel& k) {
  constexpr int64_t kSteps = 16;
  std::vector<AxisId>& inner = k.loops.inner[0];
  if (inner.empty() || fills_units(k, inner.back())) return;
  auto length = [&](AxisId a) {
    const int64_t extent = k.indices.extent(a);
    return extent % kSteps == 0 ? extent : 0;
  };
  const auto longest = std::ranges::max_element(inner, {}, length);
  if (longest == inner.end() || length(*longest) == 0) return;
  std::rotate(longest, longest + 1, inner.end());
}

void order_loops(ScheduledKernel& k, const std::vector<PackedWeight>& packed,
                 const std::vector<Buffer>& buffers, const Machine& machine) {
  for (size_t i = 0; i < k.stages.size(); ++i) order_inner(k, i);
  if (!reduces(k)) return;
  if (machine.multiprocessors > 0 && product_axes(k)) return order_for_tiles(k);
  const OperandAxes axes = operand_axes(k, packed, buffers);
  const bool resident = axes.weight_bytes <= machine.resident_weights();
  // What is apart comes one after the other.
  sort_axes(k.loops.outer, [&](AxisId a) {
    if (resident) return int64_t(axes.apart(a) || k.indices.extent(a) == 1 ? 0 : 1);
    return int64_t(axes.apart(a) ? 0 : axes.weight[a] ? 1 : 2);
  });
}

static void count_work(ScheduledKernel& k, const std::vector<PackedWeight>& packed,
                       const std::vector<Buffer>& buffers) {
  double flops = 0;
  for (const Stage& s : k.stages) {
    int operations = work_below(k, s.value).operations;
    if (s.kind == StageKind::Reduce || s.kind == StageKind::Scan) ++operations;
    flops += operations * positions_of(k.indices, loops_of(k, s));
  }
  k.flops = static_cast<int64_t>(flops);
  k.bytes = 0;
  for (const Argument& a : k.arguments)
    k.bytes +=
        a.kind == Argument::Kind::Packed ? packed[a.id].bytes() : buffers[a.id].bytes();
}

// A chunk is worth its hand-out when its work takes so many times what a region of
// threads costs; fewer chunks than that leave a core idle.
static constexpr double kRegionsOfChunk = 40;
// From here on two threads gain more than a region costs them: what one has written, the
// other reads.
static constexpr double kRegionsOfTwo = 30;
static constexpr int64_t kMaxChunks = 64;

static bool scatters(const ScheduledKernel& k) {
  return std::ranges::any_of(k.stages,
                             [](const Stage& s) { return s.kind == StageKind::Scatter; });
}

// How many chunks are worth it. Products of tiles take a small part of the time that
// work_per_ns says of others.
static int64_t wanted_chunks(const ScheduledKernel& k, const Machine& m, bool tiles) {
  const double faster = tiles ? 2 * kTileRows * kTileBytes * m.clock_ghz /
                                    (m.tile_product_clocks * m.work_per_ns)
                              : 1;
  const double region = m.fork_join_ns * m.work_per_ns;
  const double work = double(k.flops) / faster + double(k.bytes);
  if (region == 0 || scatters(k)) return 1;
  const double chunks = std::min(double(kMaxChunks), work / (kRegionsOfChunk * region));
  const int64_t least = work >= kRegionsOfTwo * region ? 2 : 0;
  return std::max(least, static_cast<int64_t>(chunks));
}

// Blocks are whole register tiles: a block below the tile would leave it no work. They
// are equal where that takes at most twice the block; rows of a prime number end with a
// shorter one.
static int64_t pick_block(int64_t extent, int64_t parts, int tile, bool panels) {
  // 42: tiles of 6 and 14 rows. Blocks of few panels take nothing from each other, and
  // blocks of many leave too little of their axis to cut, so that rows are.
  int64_t unit = !panels && extent >= 336 && 42 % tile == 0 ? 42 : tile;
  int64_t units = (extent + unit - 1) / unit;
  int64_t block = (units + parts - 1) / parts;
  int64_t equal = block;
  while (unit < 42 && units % equal != 0) ++equal;
  return std::min((equal <= 2 * block ? equal : block) * unit, extent);
}

// Whole blocks of tiles, which are whole tiles of vectors, too, for levels without them.
static Tile whole_blocks(const ScheduledKernel& k, const Level& level,
                         const MatrixTiles& tiles) {
  Tile out = choose_tile(k, level);
  for (const TileAxis& along : positions_of(tiles)) {
    const auto found = std::ranges::find(out.counts, along.axis, &TileAxis::axis);
    if (found == out.counts.end())
      out.counts.push_back(along);
    else
      found->count = std::lcm(found->count, along.count);
  }
  return out;
}

// The tile that the kernel is executed with: a block of tiles of registers, or, where
// lanes are registers of their own, one of parts of its lanes.
static Tile executed_tile(const ScheduledKernel& k, const Level& level,
                          const std::optional<MatrixTiles>& tiles) {
  if (tiles) return whole_blocks(k, level, *tiles);
  const int lanes = level.has_vectors() ? k.loops.lanes : choose_lanes(k, level);
  if (lanes != k.loops.lanes)
    if (const auto cut = cut_lanes(k, k.loops.lanes / lanes))
      return choose_tile(*cut, level);
  return choose_tile(k, level);
}

// Rows that each panel of weights passes by once more, cut so that a block of them stays
// in the second cache meanwhile, where that cache has too little room for all and so many
// times fewer bytes come from beyond it: the data once, and the weights with each block.
// (Goto, van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008; Zen 3:
// 4096 rows of 1024 channels, 256 results each, 92 ms in whole sweeps, 31 in blocks of 66
// rows; 5625 rows of 256 channels, 256 results, between 9 and 38 ms in whole sweeps,
// by what else is in the last cache.)
static constexpr int64_t kWorthBlocks = 2;

static std::optional<ChunkAxis> block_rows(const ScheduledKernel& k,
                                           const OperandAxes& axes,
                                           const std::vector<Buffer>& buffers,
                                           const Machine& m, const Tile& tile) {
  if (scatters(k) || m.second.bytes == 0) return std::nullopt;
  int64_t panels = 1, bytes = 0;
  std::optional<AxisId> row;
  for (AxisId a : k.loops.outer) {
    const int64_t extent = k.indices.extent(a);
    if (extent == 1 || (k.has_lane_axis() && a == *k.loops.lane)) continue;
    if (axes.apart(a)) return std::nullopt;
    if (axes.weight[a] && !row) panels *= extent;
    if (axes.data[a] && !row) row = a;
  }
  if (!row || panels == 1) return std::nullopt;
  for (BufferId id : axes.buffers) bytes += buffers[id].bytes();
  if (bytes <= m.second.bytes) return std::nullopt;
  const int64_t extent = k.indices.extent(*row), unit = tile.count(*row);
  // Half for the rows would leave no room for a panel beside them.
  const int64_t rows = m.second.bytes / 4 * extent / bytes / unit * unit;
  if (rows >= extent) return std::nullopt;
  const int64_t block = std::max(rows, unit), blocks = (extent + block - 1) / block;
  if (kWorthBlocks * (bytes + blocks * axes.weight_bytes) > panels * bytes)
    return std::nullopt;
  return ChunkAxis{*row, block};
}

void choose_chunks(ScheduledKernel& k, const std::vector<PackedWeight>& packed,
                   const std::vector<Buffer>& buffers, const Level& level) {
  count_work(k, packed, buffers);
  k.loops.chunks.clear();
  if (!level.has_lanes()) return; // threads take positions, not chunks
  const std::optional<MatrixTiles> tiles = choose_tiles(k, level);
  const int64_t wanted = wanted_chunks(k, level.machine, tiles.has_value());
  const Tile tile = executed_tile(k, level, tiles);
  std::optional<OperandAxes> operands;
  if (reduces(k)) operands = operand_axes(k, packed, buffers);
  std::optional<ChunkAxis> block;
  if (operands) block = block_rows(k, *operands, buffers, level.machine, tile);
  if (block) k.loops.chunks.push_back(*block);
  for (AxisId axis : k.loops.outer) {
    int64_t have = k.chunk_count(), extent = k.indices.extent(axis);
    if (2 * have > wanted || (k.has_lane_axis() && axis == *k.loops.lane) ||
        extent == 1 || (block && axis == block->axis))
      continue;
    int64_t parts = std::min(extent, (wanted + have - 1) / have);
    const bool panels = operands && operands->weight[axis] && !operands->data[axis];
    k.loops.chunks.push_back({axis, pick_block(extent, parts, tile.count(axis), panels)});
  }
}

} // namespace svod::optimize
