// Tiles of sums of products on a GPU: how large they are, who multiplies, and how many
// blocks share a sum. Of a table of tiles the one that is predicted to take the least
// time is taken: large ones read each factor less often, small ones are more blocks, and
// where those are still too few for all multiprocessors, several share one sum.
#include "compiler/optimize/choose_products.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/support/divide.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

namespace svod::optimize {

namespace {

// What a warp's threads read of memory at once (CUDA C++ Programming Guide, "Device
// Memory Accesses").
constexpr int64_t kLineBytes = 128;

// Lines of memory that the threads of a warp read, which are neighbours along the axes.
int64_t lines_of_warp(const ScheduledKernel& k, ExprId value,
                      const std::vector<AxisId>& axes, const Machine& m) {
  int64_t out = 0;
  for (const ExprId id : loads_below(k, value)) {
    const Expr& load = k.exprs[id];
    std::set<int64_t> lines;
    for (int thread = 0; thread < m.warp_threads; ++thread) {
      int64_t at = 0, number = thread;
      for (size_t i = axes.size(); i-- > 0; number /= k.indices.extent(axes[i]))
        at += number % k.indices.extent(axes[i]) *
              k.indices.coefficient(load.index, axes[i]);
      lines.insert(floor_div(at * int64_t(byte_size(load.dtype)), kLineBytes));
    }
    out += std::ssize(lines);
  }
  return out;
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
    {64, 128, 64, 8, 8, 0.84},  {128, 64, 64, 8, 8, 0.9},   {128, 64, 32, 8, 8},
    {64, 64, 64, 8, 8, 1.04},   {64, 64, 64, 8, 4, 0.94},   {64, 64, 64, 4, 4, 1.14},
    {32, 128, 32, 4, 8, 1.1},   {32, 64, 64, 4, 8},         {32, 64, 64, 4, 4, 1.08},
    {64, 32, 64, 4, 4, 1.08},   {32, 32, 64, 4, 4, 1.05},   {16, 64, 64, 4, 4, 1.04},
    {16, 128, 64, 4, 4, 1.04}};
constexpr TileShape kWarpTiles[] = {
    {128, 128, 64, 64, 64}, {128, 128, 64, 32, 64}, {128, 128, 64, 64, 32},
    {128, 64, 64, 32, 32},  {64, 128, 64, 32, 32},  {64, 64, 128, 32, 32},
    {64, 64, 64, 32, 32},   {32, 64, 128, 16, 32},  {32, 64, 64, 16, 32},
    {32, 32, 128, 16, 16},  {32, 32, 64, 16, 16},   {16, 64, 128, 16, 16}};
constexpr TileShape kGroupTiles[] = {
    {128, 256, 128, 64, 256}, {256, 128, 128, 128, 128}, {128, 192, 128, 64, 192},
    {192, 128, 128, 64, 128}, {256, 128, 128, 64, 128},  {192, 192, 128, 64, 192},
    {128, 128, 128, 64, 128}, {64, 256, 128, 64, 256},   {64, 128, 128, 64, 128},
    {128, 64, 128, 64, 64},   {64, 64, 128, 64, 64},     {256, 64, 128, 64, 64}};
// Tiles of steps on their way.
constexpr int kAhead[] = {2, 3, 5};
constexpr int kGroupAhead[] = {1, 2, 3};
// Shares of a sum, each of at least some turns.
constexpr int kFewestTurns = 4;
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// Fitted to 2500 tiles by threads that ran on an H200, as their shapes' last column, and
// to 1422 by warps and 1758 by groups that ran on an H100 (tests/bench/gpu_tiles.py).
struct Fitted {
  // Of a run: to find out where it lies and what bounds it, and to read and store it, or
  // to have it copied.
  double run_instructions, copy_instructions;
  double wait_hidden;   // by each tile of steps that is ahead
  double cache_reached; // share of what the second cache hands out
  // Of a sum that several blocks share: waits for memory until its parts are stored,
  // counted and read again, and the share of what the second cache hands out then.
  double join_waits, join_reached;
  // Waits for memory before the first products and behind the last ones, and clocks of a
  // sum on its way to memory. Threads' times are told without.
  double other_waits, sum_clocks;
};
constexpr Fitted kOfThreads = {60, 50, 0.47, 1, 5, 0.4, 0, 0},
                 kOfWarps = {13, 49, 2, 0.89, 1.4, 0.53, 3.1, 0.13},
                 kOfGroups = {0, 11, 1, 0.91, 1.4, 0.53, 4.8, 0.11};
// Share of the peak of multiply-adds that threads reach.
constexpr double kProductsReached = 0.84;
constexpr double kSumBytes = 4;
// How much longer a group takes for more than so many columns that lie by position, as
// 4096^3 on an H100: 219 us by 128 rows and 256 columns, 196 by 256 rows and 128 columns;
// of columns that lie by steps 216 and 227.
constexpr int kMostTurned = 128;
constexpr double kTurnedLonger = 1.15;
// Registers of a thread beside its sums, and those that a multiprocessor has for each of
// the threads that it may hold (PTX: 64 Ki of 32 bits).
constexpr double kRegistersBeside = 64, kRegistersOfThread = 32;
// All that a thread can name, those of a run on its way at least, and those of a matrix
// of a warp.
constexpr int64_t kMostRegisters = 255, kRegisterBytes = 4, kRegistersOfMatrix = 4;

// Fewer products with one element share too little to pay for shared memory.
bool is_matrix(const ScheduledKernel& k, const ProductAxes& axes) {
  constexpr int64_t kFewestOfTile = 8;
  return positions_along(k, axes.rows) >= kFewestOfTile &&
         positions_along(k, axes.columns) >= kFewestOfTile &&
         positions_along(k, k.inner(k.stages[0])) >= kFewestOfTile;
}

class ProductChooser {
public:
  ProductChooser(const ScheduledKernel& k, const ProductAxes& axes, const Level& level)
      : k_(k), axes_(axes), m_(level.machine), may_round_(level.tf32),
        steps_(positions_along(k, k.inner(k.stages[0]))) {}
  std::optional<GpuSchedule> choose();
  double least() const { return least_; }

private:
  ProductTile plain_tile() const;
  void fill(FactorTile& f, ExprId value, int steps, int positions) const;
  bool spills(const ProductTile& t) const;
  double resident_blocks(const GpuSchedule& s, double rounds) const;
  double rate(const ProductTile& t) const;
  double read_of_turn(const ProductTile& t) const;
  double clocks_of_turn(const GpuSchedule& s, double resident) const;
  int64_t further_bytes() const;
  double clocks_behind(const GpuSchedule& s, double rounds, double resident,
                       double before) const;
  double clocks(const GpuSchedule& s) const;
  void consider(ProductTile tile, const TileShape& shape);
  void split(ProductTile tile, double longer);

  const ScheduledKernel& k_;
  const ProductAxes& axes_;
  const Machine& m_;
  bool may_round_;
  int64_t steps_;
  const int64_t further_bytes_ = further_bytes();
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
  if (m_.matrix_products_per_clock == 0 || !has_matrices(k_)) return out;
  const DType factor = narrow_type(k_, factor_of(k_, out, true)).value_or(DType::F32);
  const bool known =
      m_.multiplies_bf16 || (factor != DType::BF16 && factor != DType::F32);
  if (known && (may_round_ || !rounds_factors(k_))) out.by = Multiplier::Warp;
  return out;
}

// How a factor comes to shared memory.
void ProductChooser::fill(FactorTile& f, ExprId value, int steps, int positions) const {
  const std::vector<AxisId>& inner = k_.inner(k_.stages[0]);
  const int along_steps = near_elements(k_, value, inner),
            along_axes = near_elements(k_, value, f.axes);
  f.by_steps = along_steps != along_axes ? along_steps > along_axes
                                         : lines_of_warp(k_, value, inner, m_) <
                                               lines_of_warp(k_, value, f.axes, m_);
  f.near = f.by_steps ? along_steps : along_axes;
  const int run = f.by_steps ? steps : positions;
  while (run % f.near != 0) f.near /= 2;
}

// Whether sums, matrices and what is on its way to shared memory are more than the
// registers of a thread. Threads that add up products have few of each.
bool ProductChooser::spills(const ProductTile& t) const {
  if (t.by != Multiplier::Warp) return false;
  int64_t out = static_cast<int64_t>(kRegistersBeside) + sums_of_thread(t) +
                (t.part_rows + t.part_columns) / kMatrixSide * kRegistersOfMatrix;
  const int64_t size = byte_size(shared_tile(k_, t, true).dtype);
  for (const auto& [factor, positions] :
       {std::pair(&t.rows, t.block_rows), std::pair(&t.columns, t.block_columns)})
    if (t.ahead == 0)
      out +=
          ceil_div(int64_t{positions} * t.steps, int64_t{factor->near} * threads_of(t)) *
          ceil_div(factor->near * size, kRegisterBytes);
  return out > kMostRegisters;
}

// Blocks that a multiprocessor runs at a time, of `rounds` that it runs in all.
double ProductChooser::resident_blocks(const GpuSchedule& s, double rounds) const {
  const ProductTile& t = s.product;
  return std::max(
      1.0, std::min({rounds, std::floor(double(m_.resident_threads) / s.threads),
                     std::floor(double(m_.first.bytes) / double(shared_of_tiles(k_, t))),
                     std::floor(double(m_.resident_threads) * kRegistersOfThread /
                                (s.threads * (sums_of_thread(t) + kRegistersBeside)))}));
}

const Fitted& fitted_to(Multiplier by) {
  static constexpr const Fitted* kOf[] = {&kOfThreads, &kOfWarps, &kOfGroups};
  return *kOf[size_t(by)];
}

// Multiply-adds of a clock. Tensor cores take as many bytes of factors of any type.
double ProductChooser::rate(const ProductTile& t) const {
  if (!t.matrices()) return kProductsReached * m_.flops_per_clock / 2;
  constexpr double kHalfBytes = 2;
  return (t.by == Multiplier::Group ? m_.group_products_per_clock
                                    : m_.matrix_products_per_clock) *
         kHalfBytes / double(byte_size(shared_tile(k_, t, true).dtype));
}

// Bytes of shared memory that are read to multiply a tile of steps. Each element is read
// by all threads or warps that share a row or a column; of threads many are in one warp,
// which reads it once. A group reads its columns for as many rows as it multiplies at
// once.
double ProductChooser::read_of_turn(const ProductTile& t) const {
  const int down = t.by == Multiplier::Group ? t.block_rows / kGroupRows : t.parts_down();
  return (t.matrices() ? 1 : 0.5) * double(t.steps) *
         double(byte_size(shared_tile(k_, t, true).dtype)) *
         (double(t.block_rows) * t.parts_across() + double(t.block_columns) * down);
}

// Clocks of one multiprocessor for a tile of steps of each of its blocks, of which
// `resident` run at a time. Groups multiply while their threads have the next steps
// copied.
double ProductChooser::clocks_of_turn(const GpuSchedule& s, double resident) const {
  const ProductTile& t = s.product;
  const Fitted& fitted = fitted_to(t.by);
  // Columns that lie by position are turned as groups read them.
  const bool turned =
      t.by == Multiplier::Group && !t.columns.by_steps && t.part_columns > kMostTurned;
  const double multiplied =
      (turned ? kTurnedLonger : 1) *
      std::max(double(t.block_rows) * t.block_columns * t.steps / rate(t),
               read_of_turn(t) / m_.first.bytes_per_clock);
  const double filled =
      (double(t.block_rows) / t.rows.near + double(t.block_columns) / t.columns.near) *
      t.steps * (t.ahead == 0 ? fitted.run_instructions : fitted.copy_instructions) /
      (m_.instructions_per_clock * m_.warp_threads);
  if (t.by == Multiplier::Thread)
    return (multiplied + filled) / std::min(1.0, resident * s.threads / m_.busy_threads);
  const double brought = double(t.block_rows + t.block_columns) * t.steps *
                         double(byte_size(shared_tile(k_, t, true).dtype)) /
                         (fitted.cache_reached * m_.second.bytes_per_clock);
  if (t.by == Multiplier::Group) return std::max({multiplied, filled, brought});
  return std::max(multiplied + filled, brought) /
         std::min(1.0, resident * s.threads / m_.busy_threads);
}

// What the stages behind a sum read and write for each of them, beside a half.
int64_t ProductChooser::further_bytes() const {
  const Dependence depends = dependence_of(k_);
  auto varies = [&](ExprId id, const std::vector<AxisId>& axes) {
    return std::ranges::any_of(axes, [&](AxisId a) { return depends[id][a]; });
  };
  int64_t out = -byte_size(DType::F16);
  for (size_t i = 1; i < k_.stages.size(); ++i) {
    const Stage& s = k_.stages[i];
    out += byte_size(s.dtype);
    for (const ExprId id : loads_below(k_, s.value))
      if (varies(id, axes_.rows) && varies(id, axes_.columns))
        out += byte_size(k_.exprs[id].dtype);
  }
  return std::max<int64_t>(out, 0);
}

// Clocks for these bytes. A block that has the multiprocessor for itself waits for them;
// others multiply meanwhile, for `before` clocks in all.
double ProductChooser::clocks_behind(const GpuSchedule& s, double rounds, double resident,
                                     double before) const {
  const double all = rounds * double(s.product.block_rows) * s.product.block_columns *
                     double(further_bytes_) * m_.clock_ghz / m_.memory_bytes_per_ns;
  return std::max(all / resident, all - before * (resident - 1) / resident);
}

// Predicted clocks of one multiprocessor. Blocks that run at a time hide each other's
// waits for memory.
double ProductChooser::clocks(const GpuSchedule& s) const {
  const ProductTile& t = s.product;
  const Fitted& fitted = fitted_to(t.by);
  const double rounds = std::ceil(double(block_count(k_, s)) / m_.multiprocessors);
  const double resident = resident_blocks(s, rounds);
  const auto turns = double(turns_of(k_, t));
  const double waits = std::ceil(rounds / resident) * m_.memory_clocks;
  const double turn = rounds * clocks_of_turn(s, resident),
               wait = waits / (1 + fitted.wait_hidden * t.ahead);
  const double sums = double(t.block_rows) * t.block_columns;
  double out = turns * (t.matrices() ? turn + wait : std::max(turn, wait)) +
               fitted.other_waits * waits + rounds * sums * fitted.sum_clocks;
  if (t.by == Multiplier::Group) out += clocks_behind(s, rounds, resident, out);
  // The last block of a tile reads what all have written.
  if (t.splits > 1)
    out += fitted.join_waits * m_.memory_clocks +
           (1 + std::max(double(t.splits), 2 * rounds)) * sums * kSumBytes /
               (fitted.join_reached * m_.second.bytes_per_clock);
  return out;
}

void ProductChooser::consider(ProductTile t, const TileShape& shape) {
  t.block_rows = shape.rows, t.block_columns = shape.columns;
  t.part_rows = shape.part_rows, t.part_columns = shape.part_columns;
  t.steps =
      shape.step_bytes / static_cast<int>(byte_size(shared_tile(k_, t, true).dtype));
  fill(t.rows, factor_of(k_, t, true), t.steps, t.block_rows);
  fill(t.columns, factor_of(k_, t, false), t.steps, t.block_columns);
  if (t.by != Multiplier::Group) split(t, shape.longer);
  // Short copies take longer than registers on the way.
  constexpr int kWholeCopy = 16;
  for (const bool rows : {true, false}) {
    const std::optional<CopiedFactor> copied = copied_factor(k_, t, rows);
    if (!m_.copies_ahead || !copied || copied->bytes != kWholeCopy) return;
  }
  for (const int ahead : t.by == Multiplier::Group ? std::span<const int>(kGroupAhead)
                                                   : std::span<const int>(kAhead)) {
    if (t.ahead != 0 && t.ahead >= turns_of(k_, t)) break; // all of it is on its way
    t.ahead = ahead;
    split(t, shape.longer);
  }
}

void ProductChooser::split(ProductTile t, double longer) {
  GpuSchedule s{.mapping = GpuMapping::Products,
                .positions = axes_.others,
                .threads = threads_of(t),
                .product = t};
  if (shared_of_tiles(k_, t) > m_.shared_bytes || spills(t) || !gpu_misfit(k_, s).empty())
    return;
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
  ProductTile tile = plain_tile();
  for (const TileShape& shape : kThreadTiles)
    if (!tile.matrices()) consider(tile, shape);
  for (const TileShape& shape : kWarpTiles)
    if (tile.matrices()) consider(tile, shape);
  if (!tile.matrices() || m_.group_products_per_clock == 0) return std::move(best_);
  tile.by = Multiplier::Group;
  for (const TileShape& shape : kGroupTiles) consider(tile, shape);
  return std::move(best_);
}

} // namespace

std::optional<double> product_clocks(const ScheduledKernel& k, const Level& level) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes || !is_matrix(k, *axes)) return std::nullopt;
  ProductChooser chooser(k, *axes, level);
  if (!chooser.choose()) return std::nullopt;
  return chooser.least();
}

std::optional<GpuSchedule> choose_products(const ScheduledKernel& k, const Level& level) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes || !is_matrix(k, *axes)) return std::nullopt;
  return ProductChooser(k, *axes, level).choose();
}

} // namespace svod::optimize
