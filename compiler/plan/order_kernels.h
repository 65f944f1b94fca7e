// An order of kernels in which fewer bytes are alive at once, or fewer copies are needed
// between a GPU and the processor.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <optional>

namespace svod::plan {

// With kernels, chains and regions in an order in which fewer bytes are alive at once;
// none where none was found. Bodies of regions stay as they are. Alive are temporaries
// that a kernel up to here and one from here on touch; that results may lie on what their
// kernels read is not counted.
std::optional<FusedGraph> order_kernels(const FusedGraph& fused);

// With functions in C++ and kernels in fewer turns, where what they read and write allows
// it; none where that is not fewer. Otherwise each side keeps its order.
std::optional<FusedGraph> gather_calls(const FusedGraph& fused);

} // namespace svod::plan
