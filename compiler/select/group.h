// Chooses which values are stored, and what each kernel computes inline.
#pragma once

#include "compiler/kernel/group.h"

namespace svod::select {

// Who reads each node, by node: live ones.
using Users = std::vector<std::vector<NodeId>>;
Users users_of(const Graph& g);

// Cuts the graph. `forced` nodes are stored in any case (a scheduling need found later).
// The rule: a value is stored when it is an output, when recomputing it for each reader
// costs more than a store and a load, or when it is a reduction that no reader can take
// in.
// `unrolled` reductions are inlined as if they were maps.
Grouping group_nodes(const Graph& g, const std::set<NodeId>& forced,
                     const std::set<NodeId>& unrolled);

// Values that lie row-major because others than kernels of ours read or write them:
// inputs and outputs of the graph, operands and results of regions and of the user's
// functions.
std::set<NodeId> fixed_layouts(const Graph& g);

// A reduction over a product in which both factors are reused.
bool is_contraction(const Graph& g, NodeId reduce);

} // namespace svod::select
