// What quantised operators share: scales and zero points laid out against their tensor,
// the two conversions exactly as the specification defines them, and integer matrix
// products.
#pragma once

#include "importer/formula/movement.h"

namespace svod::importer {

// A scale or zero point that broadcasts against `shape`: one number, one per index of
// `axis`, or (block > 0) one per block of `block` indices of `axis`.
Expr quantization_parameter(NodeImport& node, Expr parameter, const Shape& shape,
                            int64_t axis, int64_t block = 0);

// (x - zero_point) * scale in F32. The difference is exact. Parameters already broadcast.
Expr dequantize(Expr x, Expr scale, std::optional<Expr> zero_point);

// saturate(round(x) + zero_point), ties to even; x is in units of the scale. Result:
// `to`, an integer of at most 16 bits or a float of at most 8; only floats may not
// saturate.
Expr requantize(Expr x, std::optional<Expr> zero_point, DType to, bool saturate = true);

// Inputs i, i + 1, i + 2: a quantised tensor with one scale and zero point, as F32.
Expr dequantized_input(NodeImport& node, size_t i);
// The result is y / scale, quantised by the scale and zero point that are inputs i and
// i + 1; without a zero point it is of type `to`.
void give_quantized(NodeImport& node, Expr y, size_t i, DType to);

// x - zero_point in I32, the form in which integer products are taken.
Expr centered(Expr x, std::optional<Expr> zero_point);

struct Quantized {
  Expr values, scale, zero; // U8, F32, U8
};
// As DynamicQuantizeLinear does: the whole range of x, zero included, in 8 bits.
Quantized quantized_whole(Expr x);

} // namespace svod::importer
