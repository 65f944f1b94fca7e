// Elements of less than a byte. Files and callers pack them, lowest bits first and the
// last byte filled up; inside a graph each has a byte of its own, so that a tensor of
// them can be sliced and transposed like any other. Both ways are ordinary nodes, which
// fusion takes into the kernels that read or write the bytes.
#pragma once

#include "importer/formula/expression.h"

namespace svod::importer {

// [.., n] of U8 -> [.., n * 8 / bits] of I32, each element by itself.
Expr unpacked_bits(Expr bytes, int64_t bits, bool is_signed = false);
// [.., n] of U8 -> [.., n, 8 / bits] of U8.
Expr unpacked_bytes(Expr bytes, int64_t bits);

// A tensor of the model, as the bytes that files and callers have, as a value of `dtype`;
// and back. Both return types of a byte and more as they are.
struct StoredForm {
  DType dtype;
  Shape shape;
};
StoredForm stored_as(DType dtype, const Shape& shape);
NodeId unpacked(Graph& g, NodeId stored, DType dtype, const Shape& shape);
NodeId packed(Graph& g, NodeId value);

// The model's own tensors and its inputs and outputs, packed outside and unpacked inside.
// `exact`: denormal weights stay what they are.
NodeId weight_of(Graph& g, const ModelTensor& tensor, DType dtype, bool exact);
NodeId add_tensor_input(Graph& g, const std::string& name, DType dtype,
                        const Shape& shape);
void add_tensor_output(Graph& g, const std::string& name, NodeId value);

} // namespace svod::importer
