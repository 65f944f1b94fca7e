// Horizontal fusion: contractions of one input with several known weights, as the query,
// key and value of an attention, are slices of one contraction with all of the weights
// side by side. The terms of each sum stay as they were, so the rounding is kept.
//
// An equality with several roots, which patterns do not say, so it stands beside
// equalities.def.
#pragma once

#include "compiler/egraph/egraph.h"

namespace svod::egraph {

// Joins what the classes given hold; returns the contractions that became slices.
std::vector<Site> join_contractions(EGraph& e, const std::vector<NodeId>& live);

} // namespace svod::egraph
