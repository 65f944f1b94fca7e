// Tiles of sums of products on a GPU.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/target.h"

#include <optional>

namespace svod::optimize {

// By falling distance in memory of what the kernel writes, so that the last axis has the
// neighbours.
std::vector<AxisId> by_distance(const ScheduledKernel& kernel, std::vector<AxisId> axes);

// Threads of a block, which spread so many positions over all multiprocessors.
int threads_of_positions(int64_t positions, const Machine& machine);

// Of a kernel whose first stage sums up products of enough rows and columns.
std::optional<GpuSchedule> choose_products(const ScheduledKernel& kernel,
                                           const Level& level);
// What that is predicted to take.
std::optional<double> product_clocks(const ScheduledKernel& kernel, const Level& level);

} // namespace svod::optimize
