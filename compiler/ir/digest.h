// The content digest of a graph: equal for graphs that compute the same by the same
// nodes, whatever order they were built in and whatever their tensors are called.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

struct GraphDigestOptions {
  // Off: only which weights share a blob counts, not the values, so that the same
  // architecture with other weights has the same digest.
  bool weight_values = true;
};
Digest graph_digest(const Graph& g, const GraphDigestOptions& options = {});
// What that is the digest of.
std::string graph_encoding(const Graph& g, const GraphDigestOptions& options = {});

// The order in which it numbers the nodes: live ones, each after its inputs, as a
// depth-first walk from the outputs leaves them.
std::vector<NodeId> walk_order(const Graph& g);

} // namespace svod
