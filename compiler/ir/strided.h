// Views as strides: what permutations, slices and most reshapes of a dense tensor are
// until somebody needs their elements laid out.
#pragma once

#include "compiler/ir/evaluate.h"

#include <memory>
#include <optional>

namespace svod {

// A dense tensor read with other strides (in elements, from element `start`).
struct Strided {
  std::shared_ptr<const Tensor> base;
  Shape shape, strides;
  int64_t start = 0;
};
Strided whole(std::shared_ptr<const Tensor> dense);
bool is_whole(const Strided& view);
// `view` of `in`, when strides can say it: neither a pad, nor every reshape. Elements are
// not looked at.
std::optional<Strided> seen_through(const Node& view, const Strided& in);

} // namespace svod
