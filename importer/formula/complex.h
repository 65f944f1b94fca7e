// Complex tensors. A graph has no complex numbers: a complex tensor is a compound value
// around one float tensor with a last axis of two, the real and the imaginary part. So it
// lies in the caller's memory, and operators that move or add elements are imported once
// for each part (complex_values.cpp).
#pragma once

#include "importer/formula/compound.h"
#include "importer/formula/movement.h"

namespace svod::importer {

// A compound value around `pairs`, a float tensor whose last extent is 2.
NodeId complex_value(CompoundTable& compounds, NodeId pairs);
// A complex tensor of the model; `part` is the type of its parts.
NodeId complex_weight(Graph& g, CompoundTable& compounds, const ModelTensor& tensor,
                      DType part);

// Part 0 or 1 of pairs, and pairs of two parts.
Expr part_of_pairs(Expr pairs, int64_t which);
Expr pairs_of(Expr real, Expr imaginary);

// The tensor inside a complex value, any other value itself; and a tensor as the kind of
// value that `model` is.
NodeId inside(const CompoundTable& compounds, NodeId value);
bool is_complex(const CompoundTable& compounds, NodeId value);
NodeId wrapped_if(CompoundTable& compounds, bool complex, NodeId tensor);

} // namespace svod::importer
