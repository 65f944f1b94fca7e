// Where the last bit of a float decides between two integers, its rounding must stay.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::rewrite {

// Whether the op's result jumps where an operand crosses an integer.
bool rounds_to_integer(Op op, DType result);

// Whether the node's result has the rounding of its operands, element by element.
bool passes_rounding(const Node& node);

// Of each node: what reads it rounds it to an integer, at once or later.
std::vector<bool> rounded_later(const Graph& graph);

} // namespace svod::rewrite
