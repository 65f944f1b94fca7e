// A convolution as the importer writes it: pad, windows, product, sum.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

#include <array>

namespace svod::test {

// x [N, C, H, W] under weights [OC, C, rows, columns]; an axis with more than one tap has
// `low` zeros before it and one behind. Strides are those of rows and columns.
NodeId convolve(Graph& g, NodeId x, const Tensor& weights, int64_t low,
                std::array<int64_t, 2> strides = {1, 1});
// The same under filters that are no constants.
NodeId convolve(Graph& g, NodeId x, NodeId filters, int64_t low,
                std::array<int64_t, 2> strides = {1, 1});

} // namespace svod::test
