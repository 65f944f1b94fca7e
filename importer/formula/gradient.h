// Derivatives in the lazy graph.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::importer {

// The derivative of the sum of y by each of xs, as nodes of the graph. Empty, and why in
// `failure`, when an op between them has none.
std::vector<NodeId> gradients(Graph& g, NodeId y, const std::vector<NodeId>& xs,
                              std::string& failure);

} // namespace svod::importer
