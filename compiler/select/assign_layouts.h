// How stored tensors lie in memory.
#pragma once

#include "compiler/kernel/group.h"
#include "compiler/kernel/layout.h"

#include <map>

namespace svod::select {

using LayoutHints = std::map<NodeId, Layout>;

// A layout per stored node. Inputs and outputs of the model are row-major. What
// convolutions make keeps its channels in blocks of `lanes`, and so does what is computed
// from that; zero pads of such values become borders in memory.
std::map<NodeId, Layout> assign_layouts(const Graph& g, const Grouping& grouping,
                                        const LayoutHints& hints, int lanes);

} // namespace svod::select
