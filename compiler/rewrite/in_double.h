// A graph in double precision: what it would compute if floats hardly rounded.
#pragma once

#include "compiler/ir/evaluate.h"

#include <optional>

namespace svod::rewrite {

// The graph with f64 wherever it has f16, bf16 or f32: inputs, weights, all between them,
// and outputs. What a cast to such a type rounds is not rounded; floats of eight bits and
// less, and integers, which quantise, stay. A graph of f32 whose answers are compared
// with this one's tells what its own roundings are worth.
//
// Nothing where a node is the user's own code, which is written for its types.
std::optional<Graph> in_double(const Graph& graph);
// An input of it: the same numbers.
Tensor in_double(Tensor value);

} // namespace svod::rewrite
