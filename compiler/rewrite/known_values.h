// What passes ask about values that are known when packing, and about the views over
// them.
#pragma once

#include "compiler/ir/build.h"

namespace svod::rewrite {

// Under an expand, if there is one; a constant is one element per axis.
NodeId base_of(Graph& g, NodeId id);

// The one value that all elements of a node share, as a node of shape []; kNoNode where
// they may differ.
NodeId one_element(Graph& g, NodeId id);
// A scalar for every element of `shape`.
NodeId over_result(Graph& g, NodeId scalar, const Shape& shape);

// op(c, d) of two known nodes of one shape, computed before they repeat. kNoNode where
// the result would hold more elements than both.
NodeId join_known(Graph& g, Op op, NodeId c, NodeId d);

// The extents of a tensor that has extent 1 or from[i] on each axis, once its full form
// is reshaped from `from` to `to`. Nothing where an axis that repeats is merged with one
// that does not.
std::optional<Shape> shape_through_reshape(const Shape& small, const Shape& from,
                                           const Shape& to);

// The sum that a softmax divides by: of e / sum(e) with e = exp(x - max(x)). At least 1.
// kNoNode for other quotients.
NodeId softmax_sum(const Graph& g, NodeId quotient);

} // namespace svod::rewrite
