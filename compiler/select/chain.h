// Chains: neighbouring kernels whose parts belong together run part by part.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod::select {

// Finds the chains of a graph whose kernels are final and cuts their kernels into the
// chain's parts, by the caches of `machine`. Kernels that a chain has nothing to do with
// may move in front of it.
void find_chains(FusedGraph& fused, const Machine& machine);

// Whether kernels that pass on so many bytes in all, in equal parts, would be a chain, as
// far as that is known before they are: `flops` are those of all parts, and `weights` the
// bytes that each of them reads.
bool may_chain(const Machine& machine, int64_t parts, double passed, double flops,
               double weights);

} // namespace svod::select
