// First layers, for tensor cores that are filled by whole copies.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::rewrite {

// Convolutions with known weights over a graph's input of few channels, or of channels
// whose padded copy would be wider than the input: the input's copy that they read has as
// many channels as fill 16 bytes, of zeros, and the pads around the picture; so have the
// weights zeros. Sums are the same, bit for bit but for the sign of a zero. `floats`: of
// inputs in f32, too.
Graph widen_channels(const Graph& graph, bool floats);

// Whether the node is such a copy.
bool is_widened_input(const Graph& graph, NodeId node, bool floats);

} // namespace svod::rewrite
