// Whether a schedule fits its kernel. One that the packer chose always does; one that was
// edited by hand or comes from a tuner may not.
#pragma once

#include "compiler/kernel/schedule.h"

namespace svod {

// The reason why the loops do not fit, empty when they do. `chosen` are the kernel's own:
// lanes, dots and parts of chains were cut when it was lowered and cannot change.
std::string misfit(const Kernel& kernel, const Loops& loops, const Loops& chosen);

// Likewise of one level's vectors and tile, with the kernel's loops.
std::string tile_misfit(const ScheduledKernel& kernel, const LevelSchedule& level,
                        const LevelSchedule& chosen);

// Likewise of all of a level. What it says of single expressions (held factors, fetched
// loads, tables) has to be as it was `chosen`, for its tile, or left out.
std::string misfit(const ScheduledKernel& kernel, const LevelSchedule& level,
                   const LevelSchedule& chosen);

} // namespace svod
