// Convolutions that read the model's picture where it lies, past its edges too.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::select {

// Whether windows of the contraction that reads `pad` through its factor `which` leave
// what is padded at the first and last position of each axis only, and these positions
// are few: loops then emit them apart (ends_apart), and no padded copy is needed.
bool edges_apart(const Graph& g, NodeId contraction, size_t which, NodeId pad, int lanes);

} // namespace svod::select
