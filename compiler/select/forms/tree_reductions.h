// Sums, minima and the like of what walks down trees reach.
#pragma once

#include "compiler/select/forms/algorithms.h"

namespace svod::select {

// Whether a node is a reduction of what walks down trees reach, over blocks of trees and
// over the trees of a block.
bool reduces_trees(const Graph& g, const Node& node);

// Reduces x in two steps, block by block: the trees of a block stay in the first cache
// while rows pass, which one loop over all trees would not allow.
NodeId reduce_by_blocks(Algorithms& out, const Node& node, NodeId x);

} // namespace svod::select
