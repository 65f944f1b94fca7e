// How stored tensors lie in memory.
#pragma once

#include "compiler/select/group.h"

namespace svod {

using LayoutHints = std::map<NodeId, Layout>;

// A layout per stored node. Inputs and outputs of the model are row-major. What
// convolutions make keeps its channels in blocks of `lanes`, and so does what is computed
// from that; zero pads of such values become borders in memory.
std::map<NodeId, Layout> assign_layouts(const Graph& g, const Grouping& grouping,
                                        const LayoutHints& hints, int lanes);

// The factors of a contraction below expands and added unit axes.
struct Factor {
  NodeId node;
  std::vector<int64_t>
      domain_axis; // of the reduction's input, per axis of node; -1: extent 1
  bool varies_along(int64_t axis) const;
};
Factor factor_of(const Graph& g, NodeId product, size_t which);

} // namespace svod
