// Which algorithm computes a contraction: as written, or an equal composition with fewer
// multiplications. The composition is graph nodes like any other, so the evaluator checks
// it.
#pragma once

#include "compiler/kernel/fused_graph.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/support/target.h"

namespace svod::select {

struct Algorithms {
  Graph graph;
  FormSums sums;
  std::set<NodeId> stored;  // values that are stored in any case
  LayoutHints layouts;      // and how
  std::set<NodeId> results; // of fast forms: stored where what follows asks for it
  int64_t winograd = 0;     // convolutions that were replaced
  int64_t strassen = 0;     // matrix products that were
  // Every contraction of the graph, in its order: what it is and what computes it.
  std::vector<ChosenAlgorithm> chosen;
};

// Which other algorithms may replace what is written: they change rounding beyond the
// order of sums and make weights larger.
struct FormOptions {
  FormOptions(bool direct = false) : direct_only(direct) {}
  bool direct_only; // nothing is replaced
  // Bytes that they may add to the weights in all; none: as many as they take. Bodies of
  // regions then stay as they are written.
  std::optional<uint64_t> most_growth = std::nullopt;
};

Algorithms choose_algorithms(const Graph& graph, const Target& target,
                             const FormOptions& forms);

} // namespace svod::select
