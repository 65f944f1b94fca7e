// What threads and blocks of a GPU do. Three kinds of kernels decide its speed: sums of
// products, whose factors a block keeps in shared memory for all of its tile; long rows,
// whose sums a block's threads share; and all others, which wait for memory, so that
// neighbouring threads take neighbouring elements of what is written.
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

namespace {

// By falling distance in memory of what the kernel writes, so that the last axis has the
// neighbours.
std::vector<AxisId> by_distance(const ScheduledKernel& k, std::vector<AxisId> axes) {
  const auto written = std::ranges::find_if(
      k.stages, [](const Stage& s) { return s.kind != StageKind::Reduce; });
  if (written == k.stages.end()) return axes;
  auto distance = [&](AxisId a) {
    const int64_t step = std::abs(k.indices.coefficient(written->index, a));
    return step == 0 ? INT64_MAX : step;
  };
  std::ranges::stable_sort(axes,
                           [&](AxisId a, AxisId b) { return distance(a) > distance(b); });
  return axes;
}

// Whether the step from one position of `axis` to the next is one element of a tensor
// that the value reads.
bool walks_along(const ScheduledKernel& k, ExprId value, AxisId axis) {
  return std::ranges::any_of(loads_below(k, value), [&](ExprId id) {
    int64_t step = 0;
    return k.indices.affine_in(k.exprs[id].index, axis, step) && step == 1;
  });
}

// Larger tiles read each factor less often; smaller ones are more blocks. The table goes
// from large to small: the first of which there are blocks for all multiprocessors.
struct TileShape {
  int rows, columns, steps, thread_rows, thread_columns;
};
constexpr TileShape kTileShapes[] = {
    {128, 128, 8, 8, 8}, {64, 64, 16, 4, 4}, {32, 64, 16, 2, 4}, {32, 32, 16, 2, 2}};

// Fewer products with one element share too little to pay for shared memory.
bool is_matrix(const ScheduledKernel& k, const ProductAxes& axes) {
  constexpr int64_t kFewestOfTile = 8;
  return positions_along(k, axes.rows) >= kFewestOfTile &&
         positions_along(k, axes.columns) >= kFewestOfTile &&
         positions_along(k, k.inner(k.stages[0])) >= kFewestOfTile;
}

ProductTile tile_of(const ScheduledKernel& k, const ProductAxes& axes, const Machine& m) {
  ProductTile out;
  out.rows = by_distance(k, axes.rows);
  out.columns = by_distance(k, axes.columns);
  // Neighbouring threads write along columns.
  auto neighbours = [&](const std::vector<AxisId>& of) {
    return std::ranges::any_of(k.stages, [&](const Stage& s) {
      int64_t step = 0;
      return s.kind == StageKind::Store &&
             k.indices.affine_in(s.index, of.back(), step) && step == 1;
    });
  };
  if (neighbours(out.rows) && !neighbours(out.columns)) {
    std::swap(out.rows, out.columns);
    out.row_factor = 1;
  }
  const std::vector<ExprId>& factors = k.exprs[k.stages[0].value].inputs;
  const AxisId step = k.inner(k.stages[0]).back();
  const ExprId row_value = factors[out.row_factor],
               column_value = factors[1 - out.row_factor];
  auto by_steps = [&](ExprId value, AxisId other) {
    return walks_along(k, value, step) && !walks_along(k, value, other);
  };
  out.rows_by_steps = by_steps(row_value, out.rows.back());
  out.columns_by_steps = by_steps(column_value, out.columns.back());
  for (const TileShape& shape : kTileShapes) {
    out.block_rows = shape.rows, out.block_columns = shape.columns;
    out.steps = shape.steps;
    out.thread_rows = shape.thread_rows, out.thread_columns = shape.thread_columns;
    GpuSchedule schedule{GpuMapping::Products, axes.others, out.threads(), 0, out};
    const bool half_empty = 2 * positions_along(k, out.rows) <= shape.rows ||
                            2 * positions_along(k, out.columns) <= shape.columns;
    if (!half_empty && block_count(k, schedule) >= m.multiprocessors) break;
  }
  return out;
}

// The longest of the loops that the threads of a block can share.
int64_t longest_row(const ScheduledKernel& k) {
  int64_t out = 1;
  for (const Stage& s : k.stages)
    if (!s.nested) out = std::max(out, positions_along(k, k.inner(s)));
  return out;
}

// A block for each row, where rows are long, or too few for a thread each.
bool shares_rows(const ScheduledKernel& k, const Machine& m) {
  if (!has_free_order(k) || k.scratch_bytes != 0) return false;
  const int64_t rows = positions_along(k, k.loops.outer), row = longest_row(k);
  if (row >= m.block_threads / 2) return true;
  return row >= m.warp_threads && rows < int64_t{m.multiprocessors} * m.block_threads;
}

GpuSchedule of_rows(const ScheduledKernel& k, const Machine& m) {
  int threads = m.warp_threads;
  while (threads < m.block_threads && threads < longest_row(k)) threads *= 2;
  return {GpuMapping::Rows, by_distance(k, k.loops.outer), threads, 0, {}};
}

GpuSchedule of_positions(const ScheduledKernel& k, const Machine& m) {
  GpuSchedule out{
      GpuMapping::Positions, by_distance(k, k.loops.outer), m.block_threads, 0, {}};
  const int64_t positions = positions_along(k, k.loops.outer);
  // Few positions are spread over all multiprocessors.
  while (out.threads > m.warp_threads &&
         positions < int64_t{out.threads} * m.multiprocessors)
    out.threads /= 2;
  // Scratch memory is there for as many threads as run at a time.
  if (k.scratch_bytes != 0)
    out.most_blocks = int64_t{m.multiprocessors} * m.resident_threads / m.block_threads;
  return out;
}

bool is_ordered(const ScheduledKernel& k) {
  return std::ranges::any_of(k.stages,
                             [](const Stage& s) { return s.kind == StageKind::Scatter; });
}

} // namespace

GpuSchedule choose_gpu(const ScheduledKernel& k, const Machine& m) {
  if (is_ordered(k)) return {};
  if (const auto axes = product_axes(k); axes && is_matrix(k, *axes)) {
    const ProductTile tile = tile_of(k, *axes, m);
    GpuSchedule out{GpuMapping::Products, axes->others, tile.threads(), 0, tile};
    if (gpu_misfit(k, out).empty() &&
        shared_of_tile(tile, byte_size(k.stages[0].dtype)) <= m.shared_bytes)
      return out;
  }
  GpuSchedule out = shares_rows(k, m) ? of_rows(k, m) : of_positions(k, m);
  // What 31 bits do not number is run in order by threads that go on.
  if (!gpu_misfit(k, out).empty()) {
    out = of_positions(k, m);
    out.most_blocks = int64_t{m.multiprocessors} * m.resident_threads / m.block_threads;
  }
  return out;
}

} // namespace svod::optimize
