// Which values are stored, and what each kernel computes inline.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <map>
#include <set>

namespace svod {

// Who reads each node, by node: live ones.
using Users = std::vector<std::vector<NodeId>>;
Users users_of(const Graph& g);

// A kernel to be, or a region (which is its root alone): it computes `root` over root's
// shape and writes it to `target`.
struct Group {
  Group() = default;
  explicit Group(NodeId root) : root(root) {}
  Group(NodeId root, NodeId target, Shape start)
      : root(root), target(target), target_start(std::move(start)) {}

  NodeId root = kNoNode;
  NodeId target =
      kNoNode;           // stored node; differs from root when root is a part of a concat
  Shape target_start;    // where root's element 0 lies in target
  NodeId base = kNoNode; // one reduction, evaluated once per element of root
  // A sum of products of bytes that `base` sums on, each once: the blocks of a sum whose
  // weights have a scale per block.
  NodeId nested = kNoNode;
  std::set<NodeId> rows; // reductions over row_axes of root's own domain
  std::vector<int64_t> row_axes;
  bool unrolled = false; // some of its loops are written out

  // The reduction that reads the operands.
  NodeId innermost() const { return nested != kNoNode ? nested : base; }
};

struct Grouping {
  std::vector<bool> live, known, stored; // by node; known: depends on no input
  std::set<NodeId> unrolled; // reductions over known numbers, computed in place
  std::vector<Group> groups; // in dependency order
};

// Cuts the graph. `forced` nodes are stored in any case (a scheduling need found later).
// The rule: a value is stored when it is an output, when recomputing it for each reader
// costs more than a store and a load, or when it is a reduction that no reader can take
// in.
// `unrolled` reductions are inlined as if they were maps.
Grouping group_nodes(const Graph& g, const std::set<NodeId>& forced,
                     const std::set<NodeId>& unrolled);

// A cast of bytes to 32 bits: whoever reads them widens them as it loads.
bool widens_bytes(const Graph& g, NodeId n);

// Values that lie row-major because others than kernels of ours read or write them:
// inputs and outputs of the graph, operands and results of regions and of the user's
// functions.
std::set<NodeId> fixed_layouts(const Graph& g);

// A reduction over a product in which both factors are reused.
bool is_contraction(const Graph& g, NodeId reduce);

} // namespace svod
