// What rules work on: the graph being built, and what they may ask about its nodes.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/rewrite/match.h"

namespace svod::rewrite {

class Rewriter : public Forms {
public:
  Graph g;
  int64_t fold_bytes = 0; // left of the budget

  // Of the node the rules look at. Its rounding must stay: the user asked for it, or a
  // rounding to integers follows, where the last bit decides between two of them.
  bool keep_rounding = false;
  // What is known is folded where it meets what is not, rather than at every step before.
  bool meets_unknown = false;

  const Node& node(NodeId form) const override { return g[form]; }
  bool known(NodeId id) const override { return !g.depends_on_input(id); }
  // At most one live user. A rule that moves work must not do it twice.
  bool used_once(NodeId id) const override {
    return id >= uses_.size() || uses_[id] <= 1;
  }
  void add_uses(NodeId id, int64_t count) {
    if (id >= uses_.size()) uses_.resize(id + 1);
    uses_[id] += count;
  }

private:
  std::vector<int64_t> uses_;
};

} // namespace svod::rewrite
