// A weight in the order in which its kernel reads it.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/kernel/fused_graph.h"

namespace svod {

// The value of the node that a weight is packed from: its elements one by one.
struct PackSource {
  DType dtype;
  std::span<const std::byte> bytes;
};

// Whether the weight is its source as it lies.
bool is_packed_already(const PackedWeight& weight, const PackSource& source);
// Its elements, in memory for weight.bytes() of them or in a vector of its own.
void pack_weight(const PackedWeight& weight, const PackSource& source, std::byte* out);
std::vector<std::byte> pack_weight(const PackedWeight& weight, const PackSource& source);
inline std::vector<std::byte> pack_weight(const PackedWeight& weight,
                                          const Tensor& source) {
  return pack_weight(weight, PackSource{source.dtype, source.bytes});
}

} // namespace svod
