// From a group of graph nodes to a kernel: views become index arithmetic, maps
// expressions, reductions stages.
#pragma once

#include "compiler/kernel/lowered.h"

namespace svod::lower {

Lowered lower(const Group& group, const LowerSpec& spec, Stored& stored);

// Writes the border of a buffer.
ScheduledKernel lower_border(BufferId id, const Buffer& buffer, int lanes);

// Calls the function of a call node. `call` is any of its outputs that are used: one
// kernel gives them all.
ScheduledKernel lower_call(NodeId call, Stored& stored);
// The nodes of the same call, by output number, `call` among them.
std::vector<NodeId> outputs_of_call(const Graph& g, const Grouping& grouping,
                                    NodeId call);

} // namespace svod::lower
