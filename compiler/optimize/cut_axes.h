// The axes of a kernel, as far as its indices ask for them.
#pragma once

#include "compiler/kernel/lowered.h"

namespace svod::optimize {

struct CutKernel {
  LowerSpec spec;
  Lowered lowered; // with this spec
};

// Lowers the group until no quotient of an axis is left that a cut could take away, all
// is written out that can be, and neighbours that are crossed as one are one axis.
CutKernel cut_axes(const Group& group, const Graph& graph, const Lower& lower);

} // namespace svod::optimize
