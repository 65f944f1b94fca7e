// A weight in the order in which its kernel reads it.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/kernel/fused_graph.h"

namespace svod {

// Its elements; `source` is the value of the node that it is packed from.
std::vector<std::byte> pack_weight(const PackedWeight& weight, const Tensor& source);

} // namespace svod
