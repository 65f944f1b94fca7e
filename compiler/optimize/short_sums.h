// Products of bytes whose sums are short enough to be added in 16 bits.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/ir/value_facts.h"
#include "compiler/kernel/fused_graph.h"

namespace svod::optimize {

// Sets Stage::short_sums of the kernel's first stage, from the values of its weights.
void find_short_sums(ScheduledKernel& kernel, const Graph& graph,
                     const std::vector<PackedWeight>& packed);

// Whether the sums that a fact speaks of fit for its value, too.
bool fits_short_sums(const Tensor& value, const ValueFact& fact);

} // namespace svod::optimize
