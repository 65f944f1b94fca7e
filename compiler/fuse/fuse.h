// Graph -> FusedGraph: which values share a kernel, how stored values lie in memory, and
// how each kernel's loops run.
#pragma once

#include "compiler/fuse/fused_graph.h"

namespace svod {

// `exact`: no algorithm that changes rounding beyond the order of sums.
FusedGraph fuse(const Graph& graph, const Target& target, bool exact = false);

} // namespace svod
