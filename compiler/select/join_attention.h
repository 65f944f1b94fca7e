// Attention as one kernel: a product's scores, their softmax and the product with the
// values, where nothing else needs the scores.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <functional>

namespace svod::select {

// Whether the joined kernel is as good as the kernels that it is made of.
using JoinPays = std::function<bool(const ScheduledKernel& joined,
                                    const std::vector<const ScheduledKernel*>& apart)>;

// Of a graph whose kernels are final, its regions' bodies included. Kernels are plain:
// their loops have neither lanes nor chunks.
void join_attention(FusedGraph& fused, const JoinPays& pays);

} // namespace svod::select
