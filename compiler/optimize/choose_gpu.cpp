// What threads and blocks of a GPU do. Five kinds of kernels decide its speed: attention,
// and other sums of products, whose factors a block keeps in shared memory for all of its
// tile; long rows, whose sums a block's threads share; scatters, whose order
// is kept; and all others, which wait for
// memory, so that neighbouring threads take neighbouring elements of what is written.
#include "compiler/kernel/gpu_runs.h"
#include "compiler/kernel/gpu_scatter.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/choose_attention.h"
#include "compiler/optimize/choose_products.h"
#include "compiler/optimize/choose_scatter.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

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

int threads_of_positions(int64_t positions, const Machine& m) {
  int out = m.block_threads;
  while (out > m.warp_threads && positions < int64_t{out} * m.multiprocessors) out /= 2;
  return out;
}

namespace {

// The longest of the loops that the threads of a block can share.
int64_t longest_row(const ScheduledKernel& k) {
  int64_t out = 1;
  for (const Stage& s : k.stages)
    if (!s.nested) out = std::max(out, positions_along(k, k.inner(s)));
  return out;
}

// A block for each row, where rows are long, or too few for a thread each. Running sums
// stay with threads where these fill the GPU, which hide what each waits for.
bool shares_rows(const ScheduledKernel& k, const Machine& m) {
  const int64_t rows = positions_along(k, k.loops.outer), row = longest_row(k);
  const bool few =
      row >= m.warp_threads && rows < int64_t{m.multiprocessors} * m.block_threads;
  if (is_scan(k)) return few;
  return has_free_order(k) && k.scratch_bytes == 0 && (few || row >= m.block_threads / 2);
}

// Blocks that share a row where rows are fewer than multiprocessors, which read so many
// bytes each. Those of a row wait for each other and for their parts.
int splits_of_rows(const ScheduledKernel& k, const GpuSchedule& s, const Machine& m) {
  constexpr double kWaitsOfParts = 3;
  const int64_t rows = positions_along(k, k.loops.outer), row = longest_row(k);
  const double ns = double(k.bytes) / double(rows) / m.memory_bytes_per_ns,
               wait = kWaitsOfParts * m.memory_clocks / m.clock_ghz;
  if (!has_sums_apart(k)) return 1;
  int out = 1;
  while (2 * out <= s.threads && rows * 2 * out <= m.multiprocessors &&
         int64_t{2} * out * s.threads * s.near <= row)
    out *= 2;
  return ns / out + wait < ns ? out : 1;
}

// As many threads as read a row at once, while those of all rows are no more than the
// multiprocessors hold: fewer threads of a row wait for each other less. Runs that all
// threads have as many of stay in their registers from stage to stage.
GpuSchedule of_rows(const ScheduledKernel& k, const Machine& m) {
  const int64_t rows = positions_along(k, k.loops.outer), row = longest_row(k);
  GpuSchedule out{.mapping = GpuMapping::Rows,
                  .positions = by_distance(k, k.loops.outer)};
  out.near = near_rows(k);
  out.threads = m.warp_threads;
  while (out.threads < m.block_threads && out.threads * out.near < row &&
         rows * out.threads < int64_t{m.multiprocessors} * m.resident_threads)
    out.threads *= 2;
  if (out.near > 2 && row / out.near % out.threads != 0 &&
      row / (out.near / 2) % out.threads == 0)
    out.near /= 2;
  out.splits = splits_of_rows(k, out, m);
  return out;
}

GpuSchedule of_positions(const ScheduledKernel& k, const Machine& m) {
  GpuSchedule out{.mapping = GpuMapping::Positions,
                  .positions = by_distance(k, k.loops.outer)};
  const int64_t positions = positions_along(k, k.loops.outer);
  // As many bytes at once as an instruction reads, if there are threads enough.
  if (!out.positions.empty()) out.near = near_positions(k, out.positions.back());
  while (out.near > 1 &&
         positions / out.near < int64_t{m.multiprocessors} * m.block_threads)
    out.near /= 2;
  out.threads = threads_of_positions(positions / out.near, m);
  // Scratch memory is there for as many threads as run at a time.
  if (k.scratch_bytes != 0)
    out.most_blocks = int64_t{m.multiprocessors} * m.resident_threads / m.block_threads;
  return out;
}

} // namespace

GpuSchedule choose_gpu(const ScheduledKernel& k, const Level& level) {
  const Machine& m = level.machine;
  if (whole_scatter(k) != nullptr) return choose_scatter(k, level);
  if (std::optional<GpuSchedule> attention = choose_attention(k, level))
    return *attention;
  if (std::optional<GpuSchedule> products = choose_products(k, level)) return *products;
  GpuSchedule out = shares_rows(k, m) ? of_rows(k, m) : of_positions(k, m);
  // What 31 bits do not number is run in order by threads that go on.
  if (!gpu_misfit(k, out).empty()) {
    out = of_positions(k, m);
    out.most_blocks = int64_t{m.multiprocessors} * m.resident_threads / m.block_threads;
  }
  return out;
}

} // namespace svod::optimize
