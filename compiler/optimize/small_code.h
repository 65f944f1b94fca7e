// What is chosen otherwise where code is to be small (-Os). The registers still decide
// how large a tile may be; but what is written out for each of its positions is counted,
// ends of rows have no text of their own, and what a function computes is called.
#pragma once

#include "compiler/kernel/lowered.h"

namespace svod::optimize {

// How far loops are written out.
Unroll small_unroll();

// Whether the kernel, with a lane axis that is no vector, had better have none. A copy
// keeps it: four elements at a time are a third of the instructions, and little text.
bool drops_lanes(const ScheduledKernel& kernel, const Level& level);

// The most positions that a register tile of the kernel has.
int most_points(const ScheduledKernel& kernel, const Level& level);

} // namespace svod::optimize
