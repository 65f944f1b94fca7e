// Sizes that a run decides are numbers that kernels make, which others ask.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod::select {

// Puts kernels that make the sizes of outputs in front of all others, so that these may
// ask them, where they are made of nothing else.
void put_sizes_first(FusedGraph& fused);

} // namespace svod::select
