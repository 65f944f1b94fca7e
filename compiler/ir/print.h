// The text form of a graph, one node per line:
//
//   %0 = input "x" : f32[4,4]
//   %1 = weight #0 {1, -0.5, 3, 4} : f32[1,4]
//   %2 = pad %0 low=[0,1] high=[0,1] value=0 : f32[4,6]
//   output "y" %2
//
// An input or output whose caller sees another type than its node's says so:
//
//   %0 = input "w" seen=i4 dims=[3,5] : u8[8]
//
// Live nodes and all inputs are printed, renumbered from 0; payloads by the names in
// ops.def. The body of a region stands between "body 0" and "end" before its first use.
// Weights of more than kPrintedWeight elements print the digest of their blob
// instead of values.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

inline constexpr int64_t kPrintedWeight = 64;

struct PrintOptions {
  bool sources = false; // each node's ONNX nodes, as a comment
};
std::string print_graph(const Graph& g, const PrintOptions& options = {});

} // namespace svod
