// Values known at pack time, and the one way of making a node that folds it when it is
// known.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

namespace svod {

// The value of a weight, a constant, an iota, or of any node over such with at most
// `limit` elements in it and everything it is computed from.
std::optional<Tensor> known_tensor(const Graph& g, NodeId id,
                                   int64_t limit = kFoldElements);

// Whether a known node is left to the kernels that read it: 8-bit weights made wider.
bool stays_narrow(const Graph& g, NodeId id);

// The tensor as a node: a constant when all its elements have equal bits, else a weight.
NodeId tensor_node(Graph& g, Tensor tensor);

// Completes the node's type (SVOD_CHECK that it is valid), folds it when its value is
// known and small, and interns it.
NodeId make(Graph& g, Node node);

} // namespace svod
