// Whether a model whose steps run on both sides of a GPU's plan is worth it.
#pragma once

#include "compiler/plan/plan.h"
#include "compiler/support/target.h"

namespace svod {

// Predicted, of one run, without the functions in C++, which the processor runs either
// way.
struct MixedCost {
  double here_ns = 0;  // of the processor alone
  double there_ns = 0; // of the GPU's kernels, and of copies and waits beside them
  bool pays = false;
};

// `here`: the processor's plan, with so many threads. `there`: a placed plan of the same
// model. Of several architectures the mean counts, since all have the same kernels.
MixedCost mixed_cost(const plan::Plan& here, const Target& host, int threads,
                     const plan::Plan& there, const Target& device);

} // namespace svod
