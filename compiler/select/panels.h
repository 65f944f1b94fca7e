// Panels of a factor that the run computes, as weights have them when packing.
#pragma once

#include "compiler/contraction/contraction.h"
#include "compiler/kernel/group.h"
#include "compiler/kernel/layout.h"
#include "compiler/kernel/schedule.h"
#include "compiler/select/group.h"
#include "compiler/support/machine.h"

#include <map>

namespace svod::select {

// Values of a product of two tensors that are stored in another order than they lie, and
// that order. The factor that has the columns of the result lies in panels: `lanes`
// columns, one row of them for each step of the sum. The other one has the steps of the
// sum as neighbours. Of a convolution only the filters are copied. Empty where nothing is
// gained.
std::map<NodeId, Layout> panels_of(const Graph& g, const Grouping& grouping,
                                   const Users& users, const Group& group,
                                   const ScheduledKernel& kernel, const Machine& machine,
                                   int lanes);

} // namespace svod::select
