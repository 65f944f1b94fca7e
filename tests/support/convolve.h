// A convolution as the importer writes it: pad, windows, product, sum.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

namespace svod::test {

// x [N, C, H, W] under weights [OC, C, rows, columns]; an axis with more than one tap has
// `low` zeros before it and one behind.
NodeId convolve(Graph& g, NodeId x, const Tensor& weights, int64_t low,
                int64_t column_stride = 1);

} // namespace svod::test
