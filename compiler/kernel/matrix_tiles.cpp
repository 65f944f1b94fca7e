#include "compiler/kernel/matrix_tiles.h"

#include "compiler/kernel/byte_products.h"

#include <algorithm>
#include <string>

namespace svod {

// Bytes that are read as they lie, from a place that every loop moves evenly.
static bool reads_evenly(const ScheduledKernel& k, const Expr& load) {
  if (load.kind != Expr::Kind::Load || !load.bounds.empty()) return false;
  if (k.indices.has_dynamic(load.index)) return false;
  int64_t step = 0;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    if (!k.indices.affine_in(load.index, a, step)) return false;
  return true;
}

// The innermost loops whose steps continue where those within them end, in both factors.
static void find_run(const ScheduledKernel& k, TileFactors& f) {
  int64_t groups = 1;
  for (bool found = true; found;) {
    found = false;
    for (AxisId a : k.inner(k.stages[0])) {
      const int64_t x = k.indices.coefficient(f.x->index, a),
                    w = k.indices.coefficient(f.w->index, a);
      if (!k.is_loop(a) || contains(f.run, a) || x != groups * kDot || w <= 0 ||
          (groups > 1 && w != groups * f.w_row))
        continue;
      if (f.run.empty()) f.w_row = w;
      f.run.push_back(a);
      groups *= k.indices.extent(a);
      found = true;
      break;
    }
  }
}

std::optional<TileFactors> tile_factors(const ScheduledKernel& k) {
  if (k.stages.size() < 2 || !k.has_lane_axis() || !k.has_dot_axis() ||
      k.loops.lanes * kDot != kTileBytes)
    return std::nullopt;
  const Stage& s = k.stages[0];
  const bool stored =
      std::all_of(k.stages.begin() + 1, k.stages.end(),
                  [](const Stage& x) { return x.kind == StageKind::Store && !x.nested; });
  if (!stored || s.nested || s.keeps || !s.domain.empty() ||
      !contains(k.inner(s), *k.loops.dot) || contains(k.inner(s), *k.loops.lane))
    return std::nullopt;
  const ByteOperands bytes = byte_operands(k, s);
  if (bytes.x == nullptr || bytes.decoded || bytes.both_signed ||
      bytes.x->dtype != DType::U8 || bytes.w->dtype != DType::I8 ||
      !reads_evenly(k, *bytes.x) || !reads_evenly(k, *bytes.w))
    return std::nullopt;
  TileFactors out{.x = bytes.x, .w = bytes.w, .run = {}};
  const auto moves = [&](const Expr* load, AxisId axis) {
    return k.indices.coefficient(load->index, axis);
  };
  if (moves(out.x, *k.loops.lane) != 0 || moves(out.w, *k.loops.lane) != kDot ||
      moves(out.x, *k.loops.dot) != 1 || moves(out.w, *k.loops.dot) != 1)
    return std::nullopt;
  find_run(k, out);
  return out.run.empty() ? std::nullopt : std::optional(std::move(out));
}

std::optional<std::vector<int64_t>> run_steps(const ScheduledKernel& k,
                                              const TileFactors& f, int groups) {
  std::vector<int64_t> out;
  int64_t left = groups;
  for (AxisId a : f.run) {
    const int64_t extent = k.indices.extent(a), step = std::min(left, extent);
    if (extent % step != 0 || left % step != 0) return std::nullopt;
    out.push_back(step);
    left /= step;
  }
  return left == 1 ? std::optional(std::move(out)) : std::nullopt;
}

int64_t block_positions(const MatrixTiles& tiles, const TileAxis& along) {
  return int64_t(along.count) * (along.axis == tiles.axis ? tiles.rows : 1);
}

std::vector<TileAxis> positions_of(const MatrixTiles& tiles) {
  std::vector<TileAxis> out = tiles.block;
  for (TileAxis& t : out) t.count = static_cast<int>(block_positions(tiles, t));
  return out;
}

std::vector<TileAxis> step_of_loops(const LevelSchedule& level) {
  const bool tiles = !level.stages.empty() && level.stages[0].tiles;
  return tiles ? positions_of(*level.stages[0].tiles) : level.tile;
}

bool is_panel_axis(const ScheduledKernel& k, const TileFactors& f, AxisId axis) {
  return k.indices.coefficient(f.w->index, axis) != 0;
}

int TileCounts::w_registers() const {
  return std::min(panels, kTileRegisters - sums() - positions);
}

TileCounts tile_counts(const ScheduledKernel& k, const TileFactors& f,
                       const MatrixTiles& tiles) {
  TileCounts out;
  for (const TileAxis& t : tiles.block)
    (is_panel_axis(k, f, t.axis) ? out.rounds : out.positions) *= t.count;
  out.panels = tiles.at_once;
  out.rounds /= tiles.at_once;
  return out;
}

std::string tiles_misfit(const ScheduledKernel& k, const MatrixTiles& tiles) {
  const std::optional<TileFactors> f = tile_factors(k);
  if (!f) return "tiles of registers for what is no product of tiles";
  if (tiles.rows < 1 || tiles.rows > kTileRows || tiles.groups < 1 ||
      tiles.groups > kTileRows || tiles.at_once < 1 || !run_steps(k, *f, tiles.groups))
    return "tiles of " + std::to_string(tiles.rows) + " rows by " +
           std::to_string(tiles.groups) + " groups";
  std::vector<AxisId> seen;
  int panels = 1, panel_axes = 0;
  for (const TileAxis& t : tiles.block) {
    const bool x = k.indices.coefficient(f->x->index, t.axis) != 0,
               w = k.indices.coefficient(f->w->index, t.axis) != 0;
    if (!contains(k.loops.outer, t.axis) || k.is_lane(t.axis) || contains(seen, t.axis) ||
        x == w || t.count < 1 || block_positions(tiles, t) > k.indices.extent(t.axis))
      return "a block of tiles along i" + std::to_string(t.axis);
    seen.push_back(t.axis);
    if (w) panels *= t.count, ++panel_axes;
  }
  if (!contains(seen, tiles.axis) || is_panel_axis(k, *f, tiles.axis))
    return "rows of tiles that are no positions of the block";
  if (panel_axes > 1 || panels % tiles.at_once != 0)
    return std::to_string(tiles.at_once) + " vectors at once of a block of " +
           std::to_string(panels);
  const TileCounts counts = tile_counts(k, *f, tiles);
  return counts.w_registers() < 1 ? "more tiles than there are registers" : "";
}

} // namespace svod
