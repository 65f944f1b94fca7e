// Which threads of a GPU share a scatter. Where updates of one element keep their order,
// what takes time is waiting: a thread that walks them waits for where each goes, for
// what it adds to and for the sum before. So there are threads for all positions that are
// apart, and where these are few, blocks of owners, which read all updates of a position
// and divide what they wait for. Both are predicted, with more and more owners.
#include "compiler/optimize/choose_scatter.h"

#include "compiler/kernel/gpu_scatter.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/choose_products.h"

#include <algorithm>
#include <cmath>

namespace svod::optimize {

namespace {

constexpr double kInstructionsOfPlace = 3, kInstructionsOfUpdate = 20;

// Whether an update waits for the element that it is combined with.
double waits_of(const Stage& s) { return s.combiner == 0 ? 0 : 1; }

double clocks_of_positions(const ScheduledKernel& k, const GpuSchedule& s,
                           const Machine& m) {
  const double steps = double(positions_along(k, axes_in_order(k, s))),
               threads = double(block_count(k, s)) * s.threads,
               rounds =
                   std::ceil(threads / (double(m.multiprocessors) * m.resident_threads));
  // Those of a batch wait for their places at the same time, and for their values.
  return rounds * m.memory_clocks *
         (2 * std::ceil(steps / kScatterBatch) + steps * waits_of(k.stages[0]));
}

double clocks_of_owners(const ScheduledKernel& k, const GpuSchedule& s,
                        const Machine& m) {
  const ScatterShare& share = s.scatter;
  const double steps = double(positions_along(k, axes_in_order(k, s))),
               parts = std::ceil(double(positions_along(k, share.slices)) / share.beside),
               places = double(scatter_target(k, axes_taken_apart(s)).places);
  // Blocks of one multiprocessor, and how often they fill it.
  const double blocks = std::ceil(double(block_count(k, s)) / m.multiprocessors),
               rounds = std::ceil(blocks * s.threads / m.resident_threads);
  // Warps of a position, and the updates that the threads of one apply one by one.
  const double warps =
      double(share.owners) * s.threads / std::max(m.warp_threads, share.beside);
  const double own = std::ceil(steps / std::min(warps, places));
  const double instructions =
      blocks * s.threads / m.warp_threads *
      (steps * kInstructionsOfPlace + own * parts * kInstructionsOfUpdate);
  const double waits =
      2 * std::ceil(steps / kScatterTile) + own * (1 + parts * waits_of(k.stages[0]));
  return instructions / m.instructions_per_clock + rounds * waits * m.memory_clocks;
}

GpuSchedule with_positions(const ScheduledKernel& k, const Machine& m) {
  GpuSchedule out{.mapping = GpuMapping::Scatter,
                  .positions = by_distance(k, axes_apart(k))};
  out.threads = threads_of_positions(positions_along(k, out.positions), m);
  return out;
}

// As many threads side by side as a warp has, or as fill a slice.
GpuSchedule with_owners(const ScheduledKernel& k, const Machine& m, int owners) {
  GpuSchedule out{
      .mapping = GpuMapping::Scatter, .positions = {}, .threads = m.block_threads};
  for (AxisId a : by_distance(k, axes_apart(k)))
    (place_depends_on(k, a) ? out.positions : out.scatter.slices).push_back(a);
  out.scatter.owners = owners;
  const int64_t slices = positions_along(k, out.scatter.slices);
  while (out.scatter.beside < std::min<int64_t>(slices, m.warp_threads))
    out.scatter.beside *= 2;
  return out;
}

} // namespace

double scatter_clocks(const ScheduledKernel& k, const GpuSchedule& s,
                      const Level& level) {
  return s.scatter.owners == 0 ? clocks_of_positions(k, s, level.machine)
                               : clocks_of_owners(k, s, level.machine);
}

GpuSchedule choose_scatter(const ScheduledKernel& k, const Level& level) {
  const Machine& m = level.machine;
  GpuSchedule best = with_positions(k, m);
  // More threads than 31 bits number walk some axes, too.
  while (!gpu_misfit(k, best).empty() && !best.positions.empty())
    best.positions.erase(best.positions.begin());
  double least = scatter_clocks(k, best, level);
  const int64_t most = int64_t{m.multiprocessors} * m.resident_threads;
  for (int owners = 1;; owners *= 2) {
    const GpuSchedule s = with_owners(k, m, owners);
    if (!gpu_misfit(k, s).empty() || (owners > 1 && block_count(k, s) * s.threads > most))
      return best;
    if (const double clocks = scatter_clocks(k, s, level); clocks < least)
      least = clocks, best = s;
  }
}

} // namespace svod::optimize
