// The bytes that a kernel moves between the levels of memory.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/machine.h"

namespace svod::cost {

// Bytes that come into a level, or leave it, beyond what a nearer one serves.
struct Traffic {
  double first = 0;     // between the first cache and the second
  double second = 0;    // between the second and the last
  double last = 0;      // between the last and memory
  double unfetched = 0; // of `second`: weights that no schedule fetches ahead
  double streams = 1;   // that a stage reads side by side and that share a set of lines
};

// Of all positions on one thread. A loop's data stays in a cache from step to step where
// all that one of its steps touches fits. What is met for the first time comes from where
// it was left: a value that another kernel has just written from the nearest cache with
// room for it, a weight from the nearest one with room for all of a run (`run_bytes`).
Traffic traffic_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                   const Machine& machine, double run_bytes);

} // namespace svod::cost
