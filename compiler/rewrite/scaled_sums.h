// What follows an integer sum of products: the scale that makes it a float, the bias, and
// the division by the next layer's scale.
#pragma once

#include "compiler/ir/graph.h"

#include <map>

namespace svod::rewrite {

// Products cast(sum) * scale of integer sums and known scales, in this order, by the
// number of products of bytes that each sum has.
using ScaledSums = std::map<NodeId, int64_t>;

// scale * sum + bias where the bias is so many scales, as quantisers make it: the integer
// is added to the sum, as operators that quantise have it. The float is rounded less
// often then, and a kernel has one addition less. kNoNode: the node is something else.
NodeId whole_bias(Graph& g, NodeId add, const ScaledSums& sums);

// round(value / scale), the scale one known positive number, with the division moved to
// what is known: scales and biases. kNoNode where there is nothing.
NodeId merge_scales(Graph& g, NodeId round);

} // namespace svod::rewrite
