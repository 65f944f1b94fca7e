// Disjoint sets of nodes. The representative of a set is its lowest node, so that it does
// not depend on the order in which sets were joined.
#pragma once

#include "compiler/ir/graph.h"

#include <algorithm>

namespace svod::egraph {

class UnionFind {
public:
  size_t size() const { return parents_.size(); }
  void add() { parents_.push_back(static_cast<NodeId>(parents_.size())); }

  NodeId find(NodeId id) const {
    while (parents_[id] != id) {
      parents_[id] = parents_[parents_[id]]; // halves the path
      id = parents_[id];
    }
    return id;
  }

  // The representative of both from now on.
  NodeId join(NodeId a, NodeId b) {
    a = find(a), b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
    return std::min(a, b);
  }

private:
  mutable std::vector<NodeId> parents_;
};

} // namespace svod::egraph
