// Chains: neighbouring kernels whose parts belong together run part by part.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod {

// Finds the chains of a graph whose kernels are final and cuts their kernels into the
// chain's parts, by the caches of `machine`. Kernels that a chain has nothing to do with
// may move in front of it.
void find_chains(FusedGraph& fused, const Machine& machine);

} // namespace svod
