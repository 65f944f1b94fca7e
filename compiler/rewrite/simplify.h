// Simplification: the rules of rules.def, constant folding and the builder's own algebra,
// applied until nothing changes. The result computes the same outputs from the same
// inputs; rounding may differ by the order of operations on values known at pack time (a
// batch normalisation becomes part of the weights before it).
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/pass_end.h"

namespace svod::rewrite {

struct SimplifyOptions {
  // Bytes of new weights that folding may make.
  int64_t fold_bytes = int64_t{256} << 20;
  // Off: no rule may change a rounding.
  bool change_rounding = true;
  // Far above what rules that lead to something smaller need: a graph that reaches one
  // shows that two rules undo each other. The result is right then, but not the simplest.
  int most_rounds = 100;
  int most_steps = 1000; // at one node in one round
};

struct SimplifyReport {
  PassEnd end;                // bodies of regions included
  std::vector<int64_t> fired; // how often, by the rule's row in rules.def
};

// Adds what happened to the report.
Graph simplify(const Graph& graph, const SimplifyOptions& options = {},
               SimplifyReport* report = nullptr);

// The names of the rows of rules.def.
std::vector<std::string_view> rule_names();

} // namespace svod::rewrite
