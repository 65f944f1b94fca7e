// What a rule sees: the graph being built, and what it may ask about its nodes.
#pragma once

#include "compiler/ir/build.h"

#include <utility>

namespace svod::rewrite {

class Rewriter {
public:
  Graph g;
  int64_t fold_bytes = 0; // left of the budget

  // Of the node the rules look at. Its rounding must stay: the user asked for it, or a
  // rounding to integers follows, where the last bit decides between two of them.
  bool keep_rounding = false;
  // What is known is folded where it meets what is not, rather than at every step before.
  bool meets_unknown = false;

  // At most one live user. A rule that moves work must not do it twice.
  bool used_once(NodeId id) const { return id >= uses_.size() || uses_[id] <= 1; }
  void add_uses(NodeId id, int64_t count);
  // Depends on no input of the graph.
  bool known(NodeId id);
  // Marks a node below the root as part of what the rule replaces: the result is credited
  // with the ONNX nodes it came from.
  void absorb(NodeId id) { absorbed_.push_back(id); }
  std::vector<NodeId> take_absorbed() { return std::exchange(absorbed_, {}); }

private:
  std::vector<int64_t> uses_;
  std::vector<char> known_; // by id: 0 or 1
  std::vector<NodeId> absorbed_;
};

// Returns what to use instead of the node, kNoNode where the rule does not apply.
using RewriteRule = NodeId (*)(Rewriter& r, NodeId id);

// Declares every rule's function once, however many roots it has.
namespace rules {
#define RULE(name, root, pattern, replacement, condition)                                \
  NodeId name(Rewriter& r, NodeId id);
#define RULE_ANY(name, pattern, replacement, condition)                                  \
  NodeId name(Rewriter& r, NodeId id);
#include "compiler/rewrite/rules.def"
} // namespace rules

// The extents of a tensor that has extent 1 or from[i] on each axis, once its full form
// is reshaped from `from` to `to`. Nothing where an axis that repeats is merged with one
// that does not.
std::optional<Shape> shape_through_reshape(const Shape& small, const Shape& from,
                                           const Shape& to);

// Under an expand, if there is one; a constant is one element per axis.
NodeId base_of(Graph& g, NodeId id);

// The sum that a softmax divides by: of e / sum(e) with e = exp(x - max(x)). At least 1.
// kNoNode for other quotients.
NodeId softmax_sum(const Graph& g, const Node& quotient);

// op(c, d) of two known nodes of one shape, computed before they repeat. kNoNode where
// the result would hold more elements than both.
NodeId join_known(Graph& g, Op op, NodeId c, NodeId d);

} // namespace svod::rewrite
