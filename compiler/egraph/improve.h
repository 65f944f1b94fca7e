// Graph -> an equal graph that costs less, where the search finds one.
#pragma once

#include "compiler/egraph/cost.h"
#include "compiler/egraph/saturate.h"
#include "compiler/extract/extract.h"
#include "compiler/support/machine.h"

namespace svod::egraph {

struct ImproveOptions {
  SaturateOptions saturate = {};
  int64_t candidates = 200000; // of extraction
  // A cheaper graph is taken when it costs at most this part of the given one: below,
  // what the cost leaves out counts more.
  double worth = 0.99;
  Views views = Views::Free;
};

struct ImproveReport {
  Saturation saturation;
  int64_t candidates = 0;
  size_t parts = 0;
  bool optimal = true;
  int64_t cost_before = 0, cost_after = 0; // picoseconds; equal where nothing is taken
  bool taken = false;
};

// The forms of an e-graph as a problem of extraction. A class that is known when packing
// costs its bytes and reads nothing: it is computed by then.
struct GraphProblem {
  extract::Problem problem;
  std::vector<NodeId> classes;            // of each class of the problem
  std::vector<std::vector<NodeId>> forms; // of each of its forms
};
GraphProblem problem_of(const EGraph& e, const Machine& machine,
                        Views views = Views::Free);
// The graph that a choice stands for.
Graph graph_of(const EGraph& e, const GraphProblem& from, const extract::Choice& choice);

// The graph as it was given, node by node, where nothing is found that is worth it.
// Bodies of regions stay as they are.
Graph improve(const Graph& graph, const Machine& machine, const ImproveOptions& options,
              ImproveReport* report = nullptr);

} // namespace svod::egraph
