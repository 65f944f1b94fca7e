// Which algorithm computes a contraction: as written, or an equal composition with fewer
// multiplications. The composition is graph nodes like any other, so the evaluator checks
// it.
#pragma once

#include "compiler/select/assign_layouts.h"
#include "compiler/support/target.h"

namespace svod::select {

struct Algorithms {
  Graph graph;
  std::set<NodeId> unrolled; // reductions over a few known numbers, computed in place
  std::set<NodeId> stored;   // values that are stored in any case
  LayoutHints layouts;       // and how
  std::set<NodeId> results;  // of fast forms: stored where what follows asks for it
  int64_t winograd = 0;      // convolutions that were replaced
  int64_t strassen = 0;      // matrix products that were
};

// `direct_only`: nothing is replaced. Other algorithms change rounding beyond the order
// of sums and make weights larger.
Algorithms choose_algorithms(const Graph& graph, const Target& target, bool direct_only);

} // namespace svod::select
