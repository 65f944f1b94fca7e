// One group to one kernel: lowered as often as it takes until its axes are cut as its
// indices, its lanes and its dot products want them, then its loops are ordered and its
// weights packed.
#pragma once

#include "compiler/kernel/lowered.h"
#include "compiler/support/target.h"

namespace svod {

struct MadeKernel {
  ScheduledKernel kernel;
  // Whether all that is to be written out is; else the kernel is no use, and what it
  // computes needs another cut.
  bool written_out = true;
};

// `lanes` of the first level; `strongest` is the level to whose tiles chunks fit.
// `lower` lowers this group.
MadeKernel make_kernel(const Group& group, Stored stored, const Lower& lower, int lanes,
                       const Level& strongest);

} // namespace svod
