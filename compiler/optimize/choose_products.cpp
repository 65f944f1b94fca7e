// Tiles of sums of products on a GPU: how large they are, who multiplies, and how many
// blocks share a sum. Of a table of tiles the one that is predicted to take the least
// time is taken: large ones read each factor less often, small ones are more blocks, and
// where those are still too few for all multiprocessors, several share one sum.
#include "compiler/optimize/choose_products.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/support/divide.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

namespace {

// Whether the step from one position of `axis` to the next is one element of a tensor
// that the value reads.
bool walks_along(const ScheduledKernel& k, ExprId value, AxisId axis) {
  return std::ranges::any_of(loads_below(k, value), [&](ExprId id) {
    int64_t step = 0;
    return k.indices.affine_in(k.exprs[id].index, axis, step) && step == 1;
  });
}

// A block's rows and columns, bytes of steps for numbers of the type that is in shared
// memory, the part of a thread or a warp, and how much longer than what is counted it
// takes.
struct TileShape {
  int rows, columns, step_bytes, part_rows, part_columns;
  double longer = 1;
};
constexpr TileShape kThreadTiles[] = {
    {128, 128, 32, 8, 8, 0.93}, {128, 128, 64, 8, 8, 0.91}, {64, 128, 32, 8, 8, 0.95},
    {128, 64, 32, 8, 8},        {64, 64, 64, 8, 8, 1.04},   {64, 64, 64, 8, 4, 0.94},
    {64, 64, 64, 4, 4, 1.14},   {32, 128, 32, 4, 8, 1.1},   {32, 64, 64, 4, 8},
    {32, 64, 64, 4, 4, 1.08},   {64, 32, 64, 4, 4, 1.08},   {32, 32, 64, 4, 4, 1.05},
    {16, 64, 64, 4, 4, 1.04},   {16, 128, 64, 4, 4, 1.04}};
constexpr TileShape kWarpTiles[] = {
    {128, 128, 64, 64, 64}, {128, 128, 64, 32, 64}, {128, 128, 64, 64, 32},
    {128, 64, 64, 32, 32},  {64, 128, 64, 32, 32},  {64, 64, 128, 32, 32},
    {64, 64, 64, 32, 32},   {32, 64, 128, 16, 32},  {32, 64, 64, 16, 32},
    {32, 32, 128, 16, 16},  {32, 32, 64, 16, 16},   {16, 64, 128, 16, 16}};
// Tiles of steps on their way.
constexpr int kAhead[] = {2, 3, 5};
// Shares of a sum, each of at least some turns.
constexpr int kFewestTurns = 4;
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// Fitted, as the shapes' last column, to 2500 tiles of products that ran on an H200
// (tests/bench/gpu_tiles.py).
// Instructions to find out where a run lies and what bounds it, and to read and store it
// or to have it copied; waits for memory until parts of a sum are stored, counted and
// read again; shares of the peaks of multiply-adds and of the second cache; and how much
// of a wait each tile ahead hides.
constexpr double kInstructionsOfRun = 60, kInstructionsOfCopy = 50, kWaitsOfJoin = 5,
                 kProductsReached = 0.84, kCacheReached = 0.4, kHidden = 0.47;
constexpr double kSumBytes = 4;
// Registers of a thread beside its sums, and those that a multiprocessor has for each of
// the threads that it may hold (PTX: 64 Ki of 32 bits).
constexpr double kRegistersBeside = 64, kRegistersOfThread = 32;

// Fewer products with one element share too little to pay for shared memory.
bool is_matrix(const ScheduledKernel& k, const ProductAxes& axes) {
  constexpr int64_t kFewestOfTile = 8;
  return positions_along(k, axes.rows) >= kFewestOfTile &&
         positions_along(k, axes.columns) >= kFewestOfTile &&
         positions_along(k, k.inner(k.stages[0])) >= kFewestOfTile;
}

class ProductChooser {
public:
  ProductChooser(const ScheduledKernel& k, const ProductAxes& axes, const Machine& m)
      : k_(k), axes_(axes), m_(m), steps_(positions_along(k, k.inner(k.stages[0]))) {}
  std::optional<GpuSchedule> choose();
  double least() const { return least_; }

private:
  ProductTile plain_tile() const;
  void fill(FactorTile& f, ExprId value, int steps, int positions) const;
  double clocks(const GpuSchedule& s) const;
  void consider(ProductTile tile, const TileShape& shape);
  void split(ProductTile tile, double longer);

  const ScheduledKernel& k_;
  const ProductAxes& axes_;
  const Machine& m_;
  int64_t steps_;
  double least_ = 0;
  std::optional<GpuSchedule> best_;
};

// Who has rows and columns, and in which order.
ProductTile ProductChooser::plain_tile() const {
  ProductTile out;
  out.rows.axes = by_distance(k_, axes_.rows);
  out.columns.axes = by_distance(k_, axes_.columns);
  // Neighbouring threads write along columns.
  auto neighbours = [&](const std::vector<AxisId>& of) {
    return std::ranges::any_of(k_.stages, [&](const Stage& s) {
      int64_t step = 0;
      return s.kind == StageKind::Store &&
             k_.indices.affine_in(s.index, of.back(), step) && step == 1;
    });
  };
  if (neighbours(out.rows.axes) && !neighbours(out.columns.axes)) {
    std::swap(out.rows, out.columns);
    out.row_factor = 1;
  }
  out.matrices = m_.matrix_products_per_clock > 0 && has_matrices(k_);
  return out;
}

// How a factor comes to shared memory.
void ProductChooser::fill(FactorTile& f, ExprId value, int steps, int positions) const {
  const std::vector<AxisId>& inner = k_.inner(k_.stages[0]);
  const int along_steps = near_elements(k_, value, inner),
            along_axes = near_elements(k_, value, f.axes);
  f.by_steps = along_steps != along_axes ? along_steps > along_axes
                                         : walks_along(k_, value, inner.back()) &&
                                               !walks_along(k_, value, f.axes.back());
  f.near = f.by_steps ? along_steps : along_axes;
  const int run = f.by_steps ? steps : positions;
  while (run % f.near != 0) f.near /= 2;
}

// Predicted clocks of one multiprocessor. Blocks that it runs at a time hide each other's
// waits for memory; few threads leave it idle in between.
double ProductChooser::clocks(const GpuSchedule& s) const {
  const ProductTile& t = s.product;
  const auto blocks = double(block_count(k_, s));
  const double rounds = std::ceil(blocks / m_.multiprocessors);
  const double resident = std::max(
      1.0, std::min({rounds, std::floor(double(m_.resident_threads) / s.threads),
                     std::floor(double(m_.first.bytes) / double(shared_of_tiles(k_, t))),
                     std::floor(double(m_.resident_threads) * kRegistersOfThread /
                                (s.threads * (sums_of_thread(t) + kRegistersBeside)))}));
  const double busy = std::min(1.0, resident * s.threads / m_.busy_threads);
  const double turns = std::ceil(std::ceil(double(steps_) / t.splits) / t.steps);
  const double rate = t.matrices ? m_.matrix_products_per_clock
                                 : kProductsReached * m_.flops_per_clock / 2;
  // Each element of shared memory is read by all threads or warps that share a row or a
  // column; of threads many are in one warp, which reads it once.
  const double products = double(t.block_rows) * t.block_columns * t.steps;
  const double read = (t.matrices ? 1 : 0.5) * double(t.steps) *
                      double(byte_size(shared_tile(k_, t, true).dtype)) *
                      (double(t.block_rows) * t.parts_across() +
                       double(t.block_columns) * t.parts_down());
  const double multiplied = std::max(products / rate, read / m_.first.bytes_per_clock);
  const double filled =
      (double(t.block_rows) / t.rows.near + double(t.block_columns) / t.columns.near) *
      t.steps * (t.ahead == 0 ? kInstructionsOfRun : kInstructionsOfCopy) /
      (m_.instructions_per_clock * m_.warp_threads);
  const double waits = std::ceil(rounds / resident) * m_.memory_clocks;
  double out = turns * std::max(rounds * (multiplied + filled) / busy,
                                waits / (1 + kHidden * t.ahead));
  // The last block of a tile reads what all have written.
  if (t.splits > 1)
    out += kWaitsOfJoin * m_.memory_clocks +
           (1 + std::max(double(t.splits), 2 * rounds)) * t.block_rows * t.block_columns *
               kSumBytes / (kCacheReached * m_.second.bytes_per_clock);
  return out;
}

void ProductChooser::consider(ProductTile t, const TileShape& shape) {
  t.block_rows = shape.rows, t.block_columns = shape.columns;
  t.thread_rows = shape.part_rows, t.thread_columns = shape.part_columns;
  t.steps =
      shape.step_bytes / static_cast<int>(byte_size(shared_tile(k_, t, true).dtype));
  fill(t.rows, factor_of(k_, t, true), t.steps, t.block_rows);
  fill(t.columns, factor_of(k_, t, false), t.steps, t.block_columns);
  split(t, shape.longer);
  // Short copies take longer than registers on the way.
  constexpr int kWholeCopy = 16;
  for (const bool rows : {true, false}) {
    const std::optional<CopiedFactor> copied = copied_factor(k_, t, rows);
    if (!m_.copies_ahead || !copied || copied->bytes != kWholeCopy) return;
  }
  for (const int ahead : kAhead) {
    t.ahead = ahead;
    split(t, shape.longer);
  }
}

void ProductChooser::split(ProductTile t, double longer) {
  GpuSchedule s{GpuMapping::Products, axes_.others, threads_of(t), 0, t};
  if (shared_of_tiles(k_, t) > m_.shared_bytes || !gpu_misfit(k_, s).empty()) return;
  for (const int splits : kSplits) {
    // Each share has some tiles of steps, and none has nothing.
    const int64_t turns = ceil_div(steps_, t.steps), each = ceil_div(turns, splits);
    if (splits > 1 && (each < kFewestTurns || (splits - 1) * each >= turns)) continue;
    s.product.splits = splits;
    const double time = longer * clocks(s);
    if (best_ && time >= least_) continue;
    least_ = time, best_ = s;
  }
}

std::optional<GpuSchedule> ProductChooser::choose() {
  const ProductTile tile = plain_tile();
  for (const TileShape& shape : kThreadTiles)
    if (!tile.matrices) consider(tile, shape);
  for (const TileShape& shape : kWarpTiles)
    if (tile.matrices) consider(tile, shape);
  return std::move(best_);
}

} // namespace

std::optional<double> product_clocks(const ScheduledKernel& k, const Machine& m) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes || !is_matrix(k, *axes)) return std::nullopt;
  ProductChooser chooser(k, *axes, m);
  if (!chooser.choose()) return std::nullopt;
  return chooser.least();
}

std::optional<GpuSchedule> choose_products(const ScheduledKernel& k, const Machine& m) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes || !is_matrix(k, *axes)) return std::nullopt;
  return ProductChooser(k, *axes, m).choose();
}

} // namespace svod::optimize
