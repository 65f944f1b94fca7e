// Simplification: the rules of rules.def, constant folding and the builder's own algebra,
// applied until nothing changes. The result computes the same outputs from the same
// inputs; rounding may differ by the order of operations on values known at pack time (a
// batch normalisation becomes part of the weights before it).
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

struct SimplifyOptions {
  // Bytes of new weights that folding may make.
  int64_t fold_bytes = int64_t{256} << 20;
  // Off: no rule may change a rounding.
  bool change_rounding = true;
  // Counts how often each rule fired, by its row in rules.def.
  std::vector<int64_t>* fired = nullptr;
};
Graph simplify(const Graph& graph, const SimplifyOptions& options = {});

// The names of the rows of rules.def.
std::vector<std::string_view> rule_names();

} // namespace svod
