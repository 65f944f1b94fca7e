// Scatters on a GPU.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/target.h"

namespace svod::optimize {

// Of a kernel that is one.
GpuSchedule choose_scatter(const ScheduledKernel& kernel, const Level& level);
// What it is predicted to take.
double scatter_clocks(const ScheduledKernel& kernel, const GpuSchedule& schedule,
                      const Level& level);

} // namespace svod::optimize
