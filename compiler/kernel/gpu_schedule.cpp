#include "compiler/kernel/gpu_schedule.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod {

int64_t positions_along(const Kernel& kernel, const std::vector<AxisId>& axes) {
  int64_t out = 1;
  for (AxisId a : axes) out *= kernel.indices.extent(a);
  return out;
}

static int64_t parts_of(int64_t all, int64_t part) { return (all + part - 1) / part; }

int64_t block_count(const Kernel& kernel, const GpuSchedule& s) {
  const int64_t positions = positions_along(kernel, s.positions);
  switch (s.mapping) {
  case GpuMapping::Serial:
    return 1;
  case GpuMapping::Positions: {
    const int64_t blocks = parts_of(positions, s.threads);
    return s.most_blocks == 0 ? blocks : std::min(blocks, s.most_blocks);
  }
  case GpuMapping::Rows:
    return positions;
  case GpuMapping::Products:
    break;
  }
  const ProductTile& t = s.product;
  return positions * parts_of(positions_along(kernel, t.rows), t.block_rows) *
         parts_of(positions_along(kernel, t.columns), t.block_columns);
}

int64_t scratch_of_launch(const Kernel& kernel, const GpuSchedule& s) {
  return kernel.scratch_bytes * block_count(kernel, s) * s.threads;
}

int64_t shared_of_tile(const ProductTile& t, int64_t element) {
  return element * t.steps * (t.block_rows + 1 + t.block_columns + 1);
}

bool has_free_order(const Kernel& k) {
  return std::ranges::all_of(k.stages, [](const Stage& s) {
    return s.kind == StageKind::Reduce || s.kind == StageKind::Store;
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

static bool same_axes(std::vector<AxisId> a, std::vector<AxisId> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

static std::string product_misfit(const Kernel& k, const GpuSchedule& s) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes) return "a tile of products where its first stage is no plain sum of them";
  const ProductTile& t = s.product;
  const bool first = t.row_factor == 0;
  if (t.row_factor > 1 || !same_axes(t.rows, first ? axes->rows : axes->columns) ||
      !same_axes(t.columns, first ? axes->columns : axes->rows) ||
      !same_axes(s.positions, axes->others))
    return "rows and columns that are not what the factors depend on";
  if (t.block_rows < 1 || t.block_columns < 1 || t.steps < 1 || t.thread_rows < 1 ||
      t.thread_columns < 1 || t.block_rows % t.thread_rows != 0 ||
      t.block_columns % t.thread_columns != 0 || t.threads() != s.threads)
    return "a tile that its threads do not share evenly";
  constexpr int64_t kMostShared = 49152;
  constexpr int kMostSums = 256;
  if (t.thread_rows > kMostSums || t.thread_rows * t.thread_columns > kMostSums)
    return "more sums of a thread than there are registers";
  if (shared_of_tile(t, byte_size(k.stages[0].dtype)) > kMostShared)
    return "a tile that shared memory does not hold";
  return "";
}

std::string gpu_misfit(const Kernel& k, const GpuSchedule& s) {
  constexpr int64_t kMostNumbered = INT32_MAX;
  constexpr int kMostThreads = 1024;
  if (s.threads < 1 || s.threads > kMostThreads)
    return "blocks of " + std::to_string(s.threads) + " threads";
  if (block_count(k, s) * s.threads > kMostNumbered)
    return "more threads than 31 bits number";
  if (s.mapping == GpuMapping::Products) return product_misfit(k, s);
  if (s.mapping == GpuMapping::Serial)
    return s.positions.empty() && s.threads == 1 ? "" : "more than one thread, in order";
  if (!same_axes(s.positions, k.outer))
    return "positions that are not those of the kernel's outer loops";
  const bool scatters = std::ranges::any_of(
      k.stages, [](const Stage& stage) { return stage.kind == StageKind::Scatter; });
  if (scatters) return "threads side by side where a scatter has an order";
  if (s.mapping == GpuMapping::Rows && (s.threads & (s.threads - 1)) != 0)
    return "threads that are no power of two, which halve what they have summed";
  if (s.mapping == GpuMapping::Rows && !has_free_order(k))
    return "stages shared by threads where one of them has an order";
  return "";
}

} // namespace svod
