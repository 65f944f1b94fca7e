// An order of kernels in which fewer bytes are alive at once.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <optional>

namespace svod::plan {

// Whether all that the kernel writes are parts that no other kernel writes, if this holds
// for the other as well: where a scatter writes, and in a function of the user's, the
// order counts.
bool only_stores(const ScheduledKernel& kernel);

// With kernels, chains and regions in an order in which fewer bytes are alive at once;
// none where none was found. Bodies of regions stay as they are. Alive are temporaries
// that a kernel up to here and one from here on touch; that results may lie on what their
// kernels read is not counted.
std::optional<FusedGraph> order_kernels(const FusedGraph& fused);

} // namespace svod::plan
