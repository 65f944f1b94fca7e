// A scatter on a GPU. Updates of one element have an order; those of different elements
// have none, so that threads may take them side by side.
#pragma once

#include "compiler/kernel/schedule.h"

namespace svod {

// The scatter that all of the kernel is; null: it is no scatter.
const Stage* whole_scatter(const Kernel& kernel);

// Axes of the scatter whose different positions never write one element, whatever its
// data say.
std::vector<AxisId> axes_apart(const Kernel& kernel);

// Where an update goes:  base + stride * place.  `base` is what the axes that are apart
// add, and `place` what all others and the data do. Updates at one position of the axes
// that are apart meet in an element where their places are equal.
struct ScatterTarget {
  Index base, place;
  int64_t stride = 1;
  int64_t places = 1; // at one position of the axes that are apart
};
ScatterTarget scatter_target(const Kernel& kernel, const std::vector<AxisId>& apart);

// All positions of the axes that are apart: those of blocks or threads, and the slices.
std::vector<AxisId> axes_taken_apart(const GpuSchedule& schedule);
// The other axes of the scatter, along which updates keep their order.
std::vector<AxisId> axes_in_order(const ScheduledKernel& kernel,
                                  const GpuSchedule& schedule);
// Whether the data that a place is made of differ along the axis.
bool place_depends_on(const Kernel& kernel, AxisId axis);

// Why the schedule, which is a Scatter's, does not run the kernel; empty: it does.
std::string scatter_misfit(const ScheduledKernel& kernel, const GpuSchedule& schedule);

} // namespace svod
