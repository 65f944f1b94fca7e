// The cut of a graph: which values are stored, and what each kernel computes.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/kernel/store_reason.h"

#include <map>
#include <set>
#include <string>

namespace svod {

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
  // Dimensions of root that its readers see as several, from the outermost on: loops
  // over each end where a run needs no more of it (select/run_ends.h).
  std::map<int64_t, Shape> read_as;

  // The reduction that reads the operands.
  NodeId innermost() const { return nested != kNoNode ? nested : base; }
};

// A value that the cut may as well treat the other way: stored, or computed where it is
// read.
struct CutChoice {
  NodeId node = kNoNode;
  bool stored = false;
  double evaluations = 1; // of each element, where it is computed by its readers
};

// Reductions of fast forms.
struct FormSums {
  std::set<NodeId> unrolled;  // over a few known numbers, computed in place
  std::set<NodeId> amplified; // Stage::amplified
};

struct Grouping {
  std::vector<bool> live, known, stored; // by node; known: depends on no input
  std::map<NodeId, StoreReason> reasons; // of all that is stored
  FormSums sums;
  std::vector<Group> groups;      // in dependency order
  std::vector<CutChoice> choices; // highest node first
};

// One line per group: what it computes, where to, and which reductions it has.
std::string print(const Grouping& grouping);
// SVOD_CHECKs: groups name live nodes, reductions are reductions, and every stored value
// that is computed is the target of a group.
void verify(const Grouping& grouping, const Graph& graph);

} // namespace svod
