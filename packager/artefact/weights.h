// The weight section: every packed weight at its slot's offset, in exactly the layout its
// kernels read, produced one weight at a time.
#pragma once

#include "compiler/kernel/pack_weight.h"
#include "compiler/plan/plan.h"

#include <functional>

namespace svod::packager {

using ByteSink = std::function<void(std::span<const std::byte>)>;

// Hands plan.weight_bytes bytes to `sink`, in order.
void produce_weights(const plan::Plan& plan, const ByteSink& sink);

} // namespace svod::packager
