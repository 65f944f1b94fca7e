// Which kernels of a fused graph write and read each of its buffers.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod {

struct BufferUse {
  std::vector<size_t> writers, readers; // kernels, ascending
  bool outside = false; // an input, an output or an operand of a region, too
};

// By buffer.
std::vector<BufferUse> buffer_uses(const FusedGraph& fused);

} // namespace svod
