// Values known at pack time, and the one way of making a node that folds it when it is
// known.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/value_facts.h"

namespace svod {

// The value of a weight, a constant, an iota, or of any node over such with at most
// `limit` elements in it and everything it is computed from.
std::optional<Tensor> known_tensor(const Graph& g, NodeId id,
                                   int64_t limit = kFoldElements);

// The same for who notes a weaker fact of it, or keeps its recipe.
std::optional<Tensor> unnoted_tensor(const Graph& g, NodeId id,
                                     int64_t limit = kFoldElements);

// Whether a question of the elements of a known node is true of each; false where there
// are too many. `dtype`: that of ValueQuestion::PowersOfTwo. The answer is noted.
bool all_elements(const Graph& g, NodeId id, ValueQuestion question, DType dtype);
// The same of values, which nobody notes.
bool holds_for_all(const Tensor& values, ValueQuestion question, DType dtype);

// Elements as numbers.
std::vector<double> doubles_of(const Tensor& tensor);

// Whether a known node is left to the kernels that read it: 8-bit weights made wider.
bool stays_narrow(const Graph& g, NodeId id);

// The tensor as a node: a constant when all its elements have equal bits, else a weight.
NodeId tensor_node(Graph& g, Tensor tensor);

// The same where the tensor is the value of a node over known ones, whose recipe it
// keeps.
NodeId folded_node(Graph& g, const Node& node, Tensor value);
// The value of a known node as a weight or a constant; kNoNode where it is too large.
NodeId fold_known(Graph& g, NodeId id, int64_t limit);

// Completes the node's type (SVOD_CHECK that it is valid), folds it when its value is
// known and small, and interns it.
NodeId make(Graph& g, Node node);

} // namespace svod
