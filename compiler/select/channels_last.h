// Pictures whose channels follow each other, for a GPU.
#pragma once

#include "compiler/kernel/group.h"
#include "compiler/kernel/layout.h"

#include <map>

namespace svod::select {

// Lays pictures so that convolutions read or write: the sums over channels then read
// neighbours, whichever place of a window they are at, and so do the threads that write
// them. What only maps or pools such pictures follows them. Of `layouts`, which has all
// that is stored, those that are row-major and not fixed.
void lay_channels_last(const Graph& g, const Grouping& grouping,
                       std::map<NodeId, Layout>& layouts);

} // namespace svod::select
