// The choices of one CPU level for a kernel whose loops, lanes and chunks are settled.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/target.h"

namespace svod::optimize {

// `joined`: the kernel is a part of a sequence, whose text has vectors of one length.
LevelSchedule schedule_kernel(const ScheduledKernel& kernel, const Level& level,
                              bool joined = false);

// One schedule for each level of the target, of the kernel and of the parts of a
// sequence.
void schedule_levels(ScheduledKernel& kernel, const Target& target);

} // namespace svod::optimize
