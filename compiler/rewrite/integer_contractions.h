// Quantised contractions on integers. A model in QDQ form multiplies dequantised tensors:
//
//   sum_k (sx (x - zx)) (sw[n] (w - zw[n]))  =  sx sw[n] (sum_k x w' - zx sum_k w'),
//
// with w' = w - zw, which fits 8 bits again. The sum of products of 8-bit numbers is
// exact in 32 bits, a quarter of the bytes, and one instruction on CPUs with dot
// products. So w' is brought to signed bytes and x to what those instructions take:
// unsigned ones on x86, signed ones on Arm, as they are where each is widened. The second
// sum is known when packing, and the scales join the epilogue. MatMulInteger, ConvInteger
// and the QLinear operators are the same sum without scales.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/target.h"

namespace svod::rewrite {

struct IntegerOptions {
  // A quantisation after a contraction divides by its scale. The scale may go into the
  // factors before it: closer to the real quotient than dividing afterwards, but not the
  // same float.
  bool merge_scales = true;
  // There are dot products. They pay for weights of nine bits, taken as two bytes each,
  // and for the sums that two varying factors need.
  bool dot_products = true;
  ByteFactors factors = ByteFactors::Unsigned; // of what is multiplied with weights
};

// The graph with every contraction of 8-bit tensors taken on integers: one of them known
// when packing, or both quantised by the graph itself. Other nodes stay as they are.
Graph integer_contractions(const Graph& graph, const IntegerOptions& options = {});

// Whether the graph has bytes that a contraction may take.
bool multiplies_bytes(const Graph& graph);

} // namespace svod::rewrite
