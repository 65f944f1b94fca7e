// Graph -> FusedGraph: which values share a kernel, how stored values lie in memory, and
// how each kernel's loops run.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod {

// `direct_only`: contractions are computed as written, which keeps rounding and weights
// as they are.
FusedGraph fuse(const Graph& graph, const Target& target, bool direct_only = false);

} // namespace svod
