// Chooses which values are stored, and what each kernel computes inline.
#pragma once

#include "compiler/contraction/contraction.h"
#include "compiler/kernel/group.h"

#include <set>

namespace svod::select {

// Who reads each node, by node: live ones.
using Users = std::vector<std::vector<NodeId>>;
Users users_of(const Graph& g);

// Choices of the cut that are not the rules' own.
struct CutDecisions {
  std::set<NodeId> stored, inlined;
  auto operator<=>(const CutDecisions&) const = default;
  bool empty() const { return stored.empty() && inlined.empty(); }
};

// Cuts the graph. `forced` nodes are stored in any case (a scheduling need found later).
// The rule: a value is stored when it is an output, when recomputing it for each reader
// costs more than a store and a load, or when it is a reduction that no reader can take
// in.
// Unrolled reductions are inlined as if they were maps.
// `decisions` say otherwise for values that the rules leave a choice; for others nothing.
Grouping group_nodes(const Graph& g, const std::set<NodeId>& forced, const FormSums& sums,
                     const CutDecisions& decisions = {});

// Visits the nodes that the kernel of `root` computes, each once, from the root on; what
// is below a node only where `visit` says so.
template <class Visit>
void visit_kernel(const Graph& g, const Grouping& grouping, NodeId root,
                  const Visit& visit) {
  std::vector<NodeId> open = {root};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!seen.insert(n).second || (grouping.stored[n] && n != root) || !visit(n))
      continue;
    open.insert(open.end(), g[n].inputs.begin(), g[n].inputs.end());
  }
}

// Values that lie row-major because others than kernels of ours read or write them:
// inputs and outputs of the graph, operands and results of regions and of the user's
// functions.
std::set<NodeId> fixed_layouts(const Graph& g);

} // namespace svod::select
