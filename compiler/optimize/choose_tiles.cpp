// Tiles of registers for products of bytes. A product of tiles takes its rows' clocks
// however few bytes they hold, so what decides is how full they are: rows, by how many
// positions follow each other at equal distances, and bytes, by how many neighbours are
// summed. Where neither is much, vectors are faster and keep the sum (a first layer of
// three channels).
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/tile_facts.h"

#include <algorithm>

namespace svod::optimize {

namespace {

// Vectors that are narrowed together, and tiles of one axis that are tried.
constexpr int kTogether = 4;

// The axis of a block whose vectors follow each other in what is stored.
std::optional<AxisId> neighbours(const ScheduledKernel& k, const MatrixTiles& tiles) {
  for (const TileAxis& along : tiles.block)
    if (block_positions(tiles, along) % kTogether == 0 &&
        k.indices.coefficient(k.stages.back().index, along.axis) == k.loops.lanes)
      return along.axis;
  return std::nullopt;
}

class TileChoice {
public:
  TileChoice(const ScheduledKernel& k, const TileFactors& factors, const Machine& machine)
      : k_(k), f_(factors), m_(machine) {}
  std::optional<MatrixTiles> run();

private:
  void try_rows(AxisId axis);
  void try_blocks(const MatrixTiles& start);
  void look_at(const MatrixTiles& tiles);
  int64_t extent(AxisId a) const { return k_.indices.extent(a); }
  int64_t run_of(AxisId a) const;
  double groups() const;
  double far_clocks(double bytes, double of) const;
  double narrow_clocks(const MatrixTiles& tiles) const;
  double clocks(const MatrixTiles& tiles) const;
  double vector_clocks() const;

  const ScheduledKernel& k_;
  const TileFactors& f_;
  const Machine& m_;
  std::vector<AxisId> positions_, panels_;
  int groups_ = 1; // of a product
  double best_ = 0;
  std::optional<MatrixTiles> found_;
};

// Positions that follow each other: of a chunk, no more than it has.
int64_t TileChoice::run_of(AxisId a) const {
  for (const ChunkAxis& c : k_.loops.chunks)
    if (c.axis == a) return std::min(extent(a), c.block);
  return extent(a);
}

// Groups of kDot bytes that each sum is made of.
double TileChoice::groups() const {
  double out = 1;
  for (AxisId a : k_.inner(k_.stages[0]))
    if (!k_.is_dot(a)) out *= double(extent(a));
  return out;
}

// Of bytes of a factor that does not stay in the first cache, of which a share is left to
// other data.
double TileChoice::far_clocks(double bytes, double of) const {
  return of > double(m_.first.bytes) / 2 ? bytes / m_.second.bytes_per_clock : 0;
}

// Of what is stored as bytes, for each vector.
double TileChoice::narrow_clocks(const MatrixTiles& t) const {
  const Stage& s = k_.stages.back();
  const Expr& value = k_.exprs[s.value];
  if (value.kind != Expr::Kind::Cast || value.dtype != DType::U8 ||
      k_.exprs[value.inputs[0]].dtype != DType::F32)
    return 0;
  const bool rows = neighbours(k_, t).has_value();
  return (rows ? kNarrowFour / kTogether : kNarrowOne) / m_.fmas_per_clock;
}

// All of the kernel's, without what follows the sums but for its last instructions. The
// registers wait for their first products as long as some others take, with the loops
// around them, and their tiles go through the first cache.
double TileChoice::clocks(const MatrixTiles& t) const {
  constexpr int kWaiting = 4;
  const double round = kWaiting * kTileRows * m_.tile_product_clocks;
  const TileCounts counts = tile_counts(k_, f_, t);
  const double steps = groups() / t.groups;
  const double products =
      counts.sums() * std::max(m_.tile_least_clocks, t.rows * m_.tile_product_clocks);
  const double rows =
      double(counts.positions) * t.rows + double(counts.panels) * t.groups;
  const double panel = groups() * kTileBytes * counts.panels * counts.rounds;
  const double far = far_clocks(double(counts.panels) * t.groups * kTileBytes, panel);
  const double step = std::max({products, rows * m_.tile_row_clocks, far});
  const double vectors = double(counts.sums()) * counts.rounds * t.rows;
  // Written as rows of tiles, and read as vectors.
  const double after = vectors * (3 * m_.tile_row_clocks + narrow_clocks(t));
  double blocks = 1;
  for (AxisId a : k_.loops.outer) {
    if (k_.is_lane(a)) continue;
    int64_t block = 1;
    for (const TileAxis& along : t.block)
      if (along.axis == a) block = block_positions(t, along);
    const int64_t run = run_of(a), in_run = (run + block - 1) / block;
    blocks *= double(in_run) * double(extent(a)) / double(run);
  }
  return blocks * (counts.rounds * (steps * step + round) + after);
}

// By dot products of vectors, which tiles of them reach nearly; four neighbours of what
// they store are narrowed together.
double TileChoice::vector_clocks() const {
  constexpr double kReached = 0.9;
  double out = groups() / (m_.fmas_per_clock * kReached) + narrow_clocks({});
  for (AxisId a : k_.loops.outer)
    if (!k_.is_lane(a)) out *= double(extent(a));
  return out;
}

void TileChoice::look_at(const MatrixTiles& tiles) {
  if (!tiles_misfit(k_, tiles).empty()) return;
  for (const TileAxis& along : tiles.block)
    if (block_positions(tiles, along) > run_of(along.axis)) return;
  const double cost = clocks(tiles);
  if (cost < best_ * 0.999) best_ = cost, found_ = tiles;
}

// Up to four tiles along the positions, and along the vectors, of which the registers
// hold all or a half at once.
void TileChoice::try_blocks(const MatrixTiles& start) {
  for (int down = 1; down <= kTogether; ++down)
    for (AxisId beside : positions_) {
      MatrixTiles t = start;
      t.block = {{t.axis, beside == t.axis ? down : 1}};
      if (beside != t.axis) t.block.insert(t.block.begin(), {beside, down});
      look_at(t);
      for (AxisId panel : panels_)
        for (int n = 2; n <= kTogether; ++n) {
          MatrixTiles wide = t;
          wide.block.insert(wide.block.begin(), {panel, n});
          for (wide.at_once = n; wide.at_once > 0; wide.at_once /= 2) look_at(wide);
        }
    }
}

// Rows of equal tiles that leave the fewest positions to be computed twice.
void TileChoice::try_rows(AxisId axis) {
  const int64_t tiles = (run_of(axis) + kTileRows - 1) / kTileRows;
  const auto rows = static_cast<int>((run_of(axis) + tiles - 1) / tiles);
  for (int n : {rows, kTileRows})
    if (n <= run_of(axis)) try_blocks({axis, n, groups_, 1, {}});
}

std::optional<MatrixTiles> TileChoice::run() {
  for (AxisId a : k_.loops.outer) {
    if (k_.is_lane(a) || extent(a) == 1) continue;
    const bool x = k_.indices.coefficient(f_.x->index, a) != 0,
               w = k_.indices.coefficient(f_.w->index, a) != 0;
    if (x && !w) positions_.push_back(a);
    if (w && !x) panels_.push_back(a);
  }
  // What lies nearest in memory first, which takes less of it at a time.
  std::ranges::reverse(positions_);
  std::ranges::reverse(panels_);
  for (int n = 2; n <= kTileRows; ++n)
    if (run_steps(k_, f_, n)) groups_ = n;
  best_ = vector_clocks();
  for (AxisId a : positions_) try_rows(a);
  return found_;
}

} // namespace

std::optional<MatrixTiles> choose_tiles(const ScheduledKernel& k, const Level& level) {
  if (!level.has_tiles() || level.small || k.stages.empty()) return std::nullopt;
  const std::optional<TileFactors> factors = tile_factors(k);
  return factors ? TileChoice(k, *factors, level.machine).run() : std::nullopt;
}

// Neighbours of bytes that are stored together, a square where lanes lie apart in what is
// stored, or as many positions as hide what each waits for.
std::vector<TileAxis> tile_after(const ScheduledKernel& k, const MatrixTiles& tiles) {
  if (const std::optional<AxisId> axis = neighbours(k, tiles))
    return {{*axis, kTogether}};
  const bool swaps = k.indices.coefficient(k.stages.back().index, tiles.axis) == 1;
  return {{tiles.axis, std::min(swaps ? kTileRows : kTogether, tiles.rows)}};
}

} // namespace svod::optimize
