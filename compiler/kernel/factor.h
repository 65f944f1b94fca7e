// What the two factors of a sum of products are, below the views that repeat them.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// A cast of bytes to 32 bits: whoever reads them widens them as it loads.
bool widens_bytes(const Graph& g, NodeId n);

// The factors of a contraction below expands and added unit axes.
struct Factor {
  NodeId node;
  std::vector<int64_t>
      domain_axis; // of the reduction's input, per axis of node; -1: extent 1
  bool varies_along(int64_t axis) const;
};
Factor factor_of(const Graph& g, NodeId product, size_t which);

} // namespace svod
