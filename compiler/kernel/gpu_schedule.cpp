#include "compiler/kernel/gpu_schedule.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/gpu_attention.h"
#include "compiler/kernel/gpu_runs.h"
#include "compiler/kernel/gpu_scatter.h"
#include "compiler/kernel/schedule.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/support/divide.h"

#include <algorithm>

namespace svod {

int64_t positions_along(const Kernel& kernel, const std::vector<AxisId>& axes) {
  int64_t out = 1;
  for (AxisId a : axes) out *= kernel.indices.extent(a);
  return out;
}

int64_t block_count(const Kernel& kernel, const GpuSchedule& s) {
  const int64_t positions = positions_along(kernel, s.positions);
  switch (s.mapping) {
  case GpuMapping::Positions: {
    const int64_t blocks = ceil_div(positions / s.near, s.threads);
    return s.most_blocks == 0 ? blocks : std::min(blocks, s.most_blocks);
  }
  case GpuMapping::Rows:
    return positions * s.splits;
  case GpuMapping::Attention:
    return positions * attention_blocks(kernel, s.attention);
  case GpuMapping::Scatter:
    return s.scatter.owners == 0 ? ceil_div(positions, s.threads)
                                 : positions * s.scatter.owners;
  case GpuMapping::Products:
    break;
  }
  const ProductTile& t = s.product;
  return positions * t.splits *
         ceil_div(positions_along(kernel, t.rows.axes), t.block_rows) *
         ceil_div(positions_along(kernel, t.columns.axes), t.block_columns);
}

// Blocks that share one sum.
static int splits_of(const GpuSchedule& s) {
  return s.mapping == GpuMapping::Products ? s.product.splits : s.splits;
}

int64_t part_bytes_of_row(const Kernel& k, const GpuSchedule& s) {
  int64_t lists = 0;
  for (const Stage& stage : k.stages)
    if (stage.kind == StageKind::Reduce) lists += is_arg_reduce(stage) ? 2 : 1;
  return lists * s.splits * kPartBytes;
}

int64_t scratch_of_launch(const Kernel& kernel, const GpuSchedule& s) {
  if (splits_of(s) == 1) return kernel.scratch_bytes * block_count(kernel, s) * s.threads;
  if (s.mapping == GpuMapping::Rows)
    return positions_along(kernel, s.positions) * part_bytes_of_row(kernel, s);
  return block_count(kernel, s) * s.product.block_rows * s.product.block_columns *
         byte_size(kernel.stages[0].dtype);
}

int64_t counters_of_launch(const Kernel& kernel, const GpuSchedule& s) {
  return splits_of(s) == 1 ? 0 : block_count(kernel, s) / splits_of(s);
}

int threads_of(Multiplier by) {
  static constexpr int kThreads[] = {1, kWarpThreads, kGroupThreads};
  return kThreads[size_t(by)];
}

int threads_of(const ProductTile& t) {
  return t.parts_down() * t.parts_across() * threads_of(t.by);
}

int sums_of_thread(const ProductTile& t) {
  return t.part_rows * t.part_columns / threads_of(t.by);
}

ExprId factor_of(const Kernel& k, const ProductTile& t, bool rows) {
  return k.exprs[k.stages[0].value].inputs[rows ? t.row_factor : 1 - t.row_factor];
}

// What follows a run: the next one starts in other banks, still aligned to what a thread
// reads at once.
static constexpr int64_t kPitchBytes = 16;

void lay_out(SharedTile& tile, bool by_steps, int64_t positions, int64_t steps) {
  tile.by_steps = by_steps;
  tile.pitch = (by_steps ? steps : positions) + kPitchBytes / byte_size(tile.dtype);
  tile.elements = tile.pitch * (by_steps ? positions : steps);
}

void lay_out_for_groups(SharedTile& tile, bool by_steps, int64_t positions,
                        int64_t steps) {
  tile.by_steps = by_steps, tile.swizzled = true;
  tile.pitch = kSwizzledBytes / byte_size(tile.dtype);
  tile.runs = by_steps ? positions : steps;
  tile.elements =
      ceil_div(by_steps ? steps : positions, tile.pitch) * tile.pitch * tile.runs;
}

SharedTile shared_tile(const Kernel& k, const ProductTile& t, bool rows) {
  SharedTile out;
  const DType sum = k.stages[0].dtype;
  out.dtype = t.matrices() ? narrow_type(k, factor_of(k, t, rows)).value_or(sum) : sum;
  const int64_t size = byte_size(out.dtype),
                positions = rows ? t.block_rows : t.block_columns;
  // Threads take numbers of neighbouring positions at once; of matrices the steps follow
  // each other, unless shared memory turns them: it does so in units of 16 bits.
  const bool filled_by_steps = rows ? t.rows.by_steps : t.columns.by_steps;
  const bool by_steps = t.matrices() && (filled_by_steps || size != 2);
  if (t.by == Multiplier::Group)
    lay_out_for_groups(out, by_steps, positions, t.steps);
  else
    lay_out(out, by_steps, positions, t.steps);
  return out;
}

int64_t turns_of(const Kernel& k, const ProductTile& t) {
  return ceil_div(ceil_div(positions_along(k, k.stages[0].inner), t.steps), t.splits);
}

// What groups multiply of one tile of steps is still being read while the next one is
// multiplied.
int64_t buffers_of(const Kernel& k, const ProductTile& t) {
  const int all = t.by == Multiplier::Group ? t.ahead + 2
                  : t.ahead == 0            ? 2
                                            : t.ahead + 1;
  return std::min<int64_t>(all, turns_of(k, t));
}

int64_t shared_of_tiles(const Kernel& k, const ProductTile& t) {
  int64_t out = 0;
  for (const bool rows : {true, false}) {
    const SharedTile tile = shared_tile(k, t, rows);
    out += buffers_of(k, t) * tile.elements * byte_size(tile.dtype);
  }
  if (!t.matrices()) return out;
  return std::max(out, t.block_rows * sums_pitch(t) * byte_size(k.stages[0].dtype));
}

// The two neighbours that a thread has of one row are eight rows further in the banks
// that follow those of the row's eight columns.
int64_t sums_pitch(const ProductTile& t) {
  constexpr int64_t kBanks = 32, kColumns = 8;
  return ceil_div(t.block_columns, kBanks) * kBanks + kColumns;
}

int64_t shared_of_launch(const Kernel& kernel, const GpuSchedule& s) {
  if (s.mapping == GpuMapping::Attention) return shared_of_attention(kernel, s.attention);
  return s.mapping == GpuMapping::Products ? shared_of_tiles(kernel, s.product) : 0;
}

std::optional<CopiedFactor> copied_value(const Kernel& k, ExprId value, DType lies_as) {
  CopiedFactor out;
  const Expr* e = &k.exprs[value];
  for (; e->kind == Expr::Kind::Guard || e->kind == Expr::Kind::Cast;
       e = &k.exprs[e->inputs[0]]) {
    const bool casts = e->kind == Expr::Kind::Cast;
    if (casts ? k.exprs[e->inputs[0]].dtype != lies_as : e->bits != 0)
      return std::nullopt;
    out.bounds.insert(out.bounds.end(), e->bounds.begin(), e->bounds.end());
  }
  if (e->kind != Expr::Kind::Load || e->bits != 0 || e->dtype != lies_as)
    return std::nullopt;
  out.load = e;
  for (const Bound& b : e->bounds)
    if (std::ranges::find(out.bounds, b) == out.bounds.end()) out.bounds.push_back(b);
  return out;
}

std::optional<CopiedFactor> copied_factor(const Kernel& k, const ProductTile& t,
                                          bool rows) {
  const SharedTile tile = shared_tile(k, t, rows);
  const FactorTile& f = rows ? t.rows : t.columns;
  std::optional<CopiedFactor> out = copied_value(k, factor_of(k, t, rows), tile.dtype);
  if (!out) return std::nullopt;
  // Of PTX ("cp.async"): 4, 8 or 16 bytes.
  const bool runs = tile.by_steps == f.by_steps;
  out->bytes = static_cast<int>(byte_size(tile.dtype)) * (runs ? f.near : 1);
  if (out->bytes != 4 && out->bytes != 8 && out->bytes != 16) return std::nullopt;
  return out;
}

bool has_free_order(const Kernel& k) {
  return std::ranges::all_of(k.stages, [](const Stage& s) {
    return s.kind == StageKind::Reduce || s.kind == StageKind::Store;
  });
}

// Whether a value is made of what stages before have computed.
static bool reads_stages(const Kernel& k, ExprId id) {
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Local) return true;
  std::vector<ExprId> below = e.inputs;
  k.indices.collect_dynamic(e.index, below);
  for (const Bound& b : e.bounds) k.indices.collect_dynamic(b.index, below);
  return std::ranges::any_of(below, [&](ExprId in) { return reads_stages(k, in); });
}

bool has_sums_apart(const ScheduledKernel& k) {
  const auto sums_end = std::ranges::find_if(
      k.stages, [](const Stage& s) { return s.kind != StageKind::Reduce; });
  const bool apart = std::all_of(k.stages.begin(), sums_end, [&](const Stage& s) {
    return !s.nested && !s.keeps && !reads_stages(k, s.value);
  });
  return apart && sums_end != k.stages.begin() &&
         std::all_of(sums_end, k.stages.end(), [&](const Stage& s) {
           return s.kind == StageKind::Store && positions_along(k, k.inner(s)) == 1;
         });
}

static bool is_sum_of_products(const Kernel& k, const Stage& s) {
  if (s.kind != StageKind::Reduce || s.op != Op::ReduceSum || s.nested || s.keeps ||
      s.inner.empty())
    return false;
  const Expr& v = k.exprs[s.value];
  return v.kind == Expr::Kind::Map && v.op == Op::Mul && v.dtype == s.dtype &&
         (s.dtype == DType::F32 || s.dtype == DType::I32);
}

// Positions that do not count are left out of both factors: where they are does not
// depend on rows and columns.
static bool counts_by_step(const Kernel& k, const Stage& s) {
  return std::ranges::all_of(s.domain, [&](const Bound& b) {
    return !k.indices.has_dynamic(b.index) &&
           std::ranges::none_of(
               k.outer, [&](AxisId a) { return k.indices.depends_on(b.index, a); });
  });
}

std::optional<ProductAxes> product_axes(const Kernel& k) {
  if (k.stages.empty() || !is_sum_of_products(k, k.stages[0]) ||
      !counts_by_step(k, k.stages[0]))
    return std::nullopt;
  for (size_t i = 1; i < k.stages.size(); ++i)
    if (k.stages[i].kind != StageKind::Store || !k.stages[i].inner.empty())
      return std::nullopt;
  const Dependence dependence = dependence_of(k);
  const Expr& product = k.exprs[k.stages[0].value];
  ProductAxes out;
  for (AxisId a : k.outer) {
    const bool first = dependence[product.inputs[0]][a],
               second = dependence[product.inputs[1]][a];
    (first == second ? out.others : first ? out.rows : out.columns).push_back(a);
  }
  return out;
}

std::optional<DType> narrow_type(const Kernel& k, ExprId factor) {
  const Expr& e = k.exprs[factor];
  if (e.kind == Expr::Kind::Guard && e.bits == 0) return narrow_type(k, e.inputs[0]);
  if (e.kind != Expr::Kind::Cast) return std::nullopt;
  const DType from = k.exprs[e.inputs[0]].dtype;
  const bool widens =
      e.dtype == DType::I32 ? is_byte(from) : e.dtype == DType::F32 && is_half(from);
  return widens ? std::optional(from) : std::nullopt;
}

bool same_axes(std::vector<AxisId> a, std::vector<AxisId> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

// Whether tensor cores multiply these types, whose sums are of type `sum`.
static bool multiplies(DType a, DType b, DType sum) {
  if (sum == DType::I32) return is_byte(a) && is_byte(b);
  return a == b && (is_half(a) || a == sum);
}

bool has_matrices(const Kernel& k) {
  const DType sum = k.stages[0].dtype;
  const std::vector<ExprId>& factors = k.exprs[k.stages[0].value].inputs;
  return multiplies(narrow_type(k, factors[0]).value_or(sum),
                    narrow_type(k, factors[1]).value_or(sum), sum);
}

bool rounds_factors(const Kernel& k) {
  const DType sum = k.stages[0].dtype;
  const std::vector<ExprId>& factors = k.exprs[k.stages[0].value].inputs;
  return sum == DType::F32 && std::ranges::none_of(factors, [&](ExprId f) {
           return narrow_type(k, f).has_value();
         });
}

static std::string group_misfit(const Kernel& k, const ProductTile& t) {
  if (t.steps * byte_size(shared_tile(k, t, true).dtype) != kSwizzledBytes)
    return "steps that are no row of shared memory as groups read it";
  if (t.part_rows % kGroupRows != 0 || t.part_columns % kMatrixSide != 0 ||
      t.part_columns > kGroupColumns)
    return "a group's part that is no multiple of what it multiplies";
  for (const bool rows : {true, false}) {
    const SharedTile tile = shared_tile(k, t, rows);
    if (!tile.by_steps && (rows ? t.part_rows : t.part_columns) % tile.pitch != 0)
      return "a group's part that is no whole rows of shared memory";
    const std::optional<CopiedFactor> copied = copied_factor(k, t, rows);
    constexpr int kUnitBytes = 16; // that are exchanged
    if (t.ahead == 0 || !copied || copied->bytes != kUnitBytes)
      return "groups of warps, whose factors are not copied by whole units";
  }
  return "";
}

static std::string matrix_misfit(const Kernel& k, const ProductTile& t) {
  if (!has_matrices(k)) return "tensor cores where its factors are no narrow numbers";
  if (t.by == Multiplier::Group) return group_misfit(k, t);
  const int64_t steps = kMatrixBytes / byte_size(shared_tile(k, t, true).dtype);
  if (t.part_rows % kMatrixSide != 0 || t.part_columns % kMatrixSide != 0 ||
      t.steps % steps != 0)
    return "a warp's part that is no multiple of what tensor cores multiply";
  return "";
}

static std::string product_misfit(const ScheduledKernel& k, const GpuSchedule& s) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes) return "a tile of products where its first stage is no plain sum of them";
  const ProductTile& t = s.product;
  const bool first = t.row_factor == 0;
  if (t.row_factor > 1 || !same_axes(t.rows.axes, first ? axes->rows : axes->columns) ||
      !same_axes(t.columns.axes, first ? axes->columns : axes->rows) ||
      !same_axes(s.positions, axes->others))
    return "rows and columns that are not what the factors depend on";
  if (t.block_rows < 1 || t.block_columns < 1 || t.steps < 1 || t.part_rows < 1 ||
      t.part_columns < 1 || t.block_rows % t.part_rows != 0 ||
      t.block_columns % t.part_columns != 0 || threads_of(t) != s.threads)
    return "a tile that its threads do not share evenly";
  constexpr int kMostAhead = 7;
  constexpr int kMostSums = 256;
  if (t.part_rows > kMostSums || sums_of_thread(t) > kMostSums)
    return "more sums of a thread than there are registers";
  if (t.splits < 1 || t.splits > positions_along(k, k.stages[0].inner))
    return "more parts of a sum than it has steps";
  if (t.matrices())
    if (std::string why = matrix_misfit(k, t); !why.empty()) return why;
  for (const bool rows : {true, false}) {
    const FactorTile& f = rows ? t.rows : t.columns;
    const int64_t run = f.by_steps ? t.steps : rows ? t.block_rows : t.block_columns;
    if (f.near < 1 || run % f.near != 0 ||
        f.near > near_elements(k, factor_of(k, t, rows),
                               f.by_steps ? k.inner(k.stages[0]) : f.axes))
      return "elements read at once that are no neighbours";
  }
  if (t.ahead < 0 || t.ahead > kMostAhead ||
      (t.ahead != 0 && (!copied_factor(k, t, true) || !copied_factor(k, t, false))))
    return "copies ahead of what is not as it lies in memory";
  if (shared_of_tiles(k, t) > kMostShared)
    return "a tile that shared memory does not hold";
  return "";
}

static bool has_neighbours(const ScheduledKernel& k, const GpuSchedule& s) {
  if (s.near <= 1) return s.near == 1;
  if (s.mapping == GpuMapping::Rows) return near_rows(k) % s.near == 0;
  return s.mapping == GpuMapping::Positions && !s.positions.empty() &&
         near_positions(k, s.positions.back()) % s.near == 0;
}

// `splits` of rows.
static std::string split_misfit(const ScheduledKernel& k, const GpuSchedule& s) {
  if (s.splits == 1) return "";
  if (s.mapping != GpuMapping::Rows || !has_sums_apart(k))
    return "blocks that share more than sums by themselves";
  return s.splits >= 1 && s.splits <= s.threads
             ? ""
             : "more parts of a sum than threads that combine them";
}

std::string gpu_misfit(const ScheduledKernel& k, const GpuSchedule& s) {
  constexpr int64_t kMostNumbered = INT32_MAX;
  constexpr int kMostThreads = 1024;
  if (s.threads < 1 || s.threads > kMostThreads)
    return "blocks of " + std::to_string(s.threads) + " threads";
  if (block_count(k, s) * s.threads > kMostNumbered)
    return "more threads than 31 bits number";
  if (std::string why = split_misfit(k, s); !why.empty()) return why;
  if (s.mapping == GpuMapping::Products) return product_misfit(k, s);
  if (s.mapping == GpuMapping::Attention) return attention_misfit(k, s);
  if (s.mapping == GpuMapping::Scatter) return scatter_misfit(k, s);
  if (!same_axes(s.positions, k.outer))
    return "positions that are not those of the kernel's outer loops";
  const bool scatters = std::ranges::any_of(
      k.stages, [](const Stage& stage) { return stage.kind == StageKind::Scatter; });
  if (scatters) return "threads side by side where a scatter has an order";
  if (!has_neighbours(k, s))
    return "neighbours of a thread that are not read and written at once";
  if (s.mapping == GpuMapping::Rows && (s.threads & (s.threads - 1)) != 0)
    return "threads that are no power of two, which halve what they have summed";
  if (s.mapping == GpuMapping::Rows && !has_free_order(k) && !is_scan(k))
    return "stages shared by threads where one of them has an order";
  return "";
}

} // namespace svod
