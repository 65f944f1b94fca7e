// Simplification across the border of a region and its bodies.
#pragma once

#include "compiler/ir/region.h"

#include <functional>

namespace svod::rewrite {

// What stands for the results of a region.
struct TidyRegion {
  NodeId region = kNoNode;     // kNoNode: it is gone
  std::vector<NodeId> results; // by number in the original; kNoNode where not wanted
};

// `node` is a region whose inputs are nodes of `g`, with the bodies given; `wanted` says
// which results are used. `simplify_body` is applied to every body that it gets.
//  - what is known outside moves into the bodies, where it folds and is packed as weights
//  - what a loop carries unchanged is captured; what nobody uses is not computed
//  - inputs that a body does not read go, equal ones become one
//  - an if with a known condition becomes the branch that is taken
TidyRegion tidy_region(Graph& g, Node node,
                       const std::vector<std::shared_ptr<const Graph>>& bodies,
                       const std::vector<bool>& wanted,
                       const std::function<Graph(const Graph&)>& simplify_body);

} // namespace svod::rewrite
