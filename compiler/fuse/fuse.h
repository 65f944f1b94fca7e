// Graph -> FusedGraph: which values share a kernel, how stored values lie in memory, and
// how each kernel's loops run.
#pragma once

#include "compiler/fuse/fused_graph.h"

namespace svod {

FusedGraph fuse(Graph graph, const Target& target);

} // namespace svod
