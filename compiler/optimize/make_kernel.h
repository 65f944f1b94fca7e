// A kernel with its axes cut to a kernel with its loops.
#pragma once

#include "compiler/optimize/cut_axes.h"
#include "compiler/support/target.h"

namespace svod::optimize {

struct MadeKernel {
  ScheduledKernel kernel;
  // Whether all that is to be written out is; else the kernel is no use, and what it
  // computes needs another cut.
  bool written_out = true;
};

// Chunks fit the tiles of the target's strongest level. `lower` lowers this group.
MadeKernel make_kernel(CutKernel cut, const Group& group, Stored stored,
                       const Lower& lower, const Target& target);

} // namespace svod::optimize
