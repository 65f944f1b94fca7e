// Finding a pattern in a graph.
#pragma once

#include "compiler/rewrite/pattern.h"

#include <array>
#include <functional>

namespace svod::rewrite {

// What patterns are held against. Of a graph a node is what it is; a search that keeps
// several forms of one value (an e-graph) says here which they are.
class Forms {
public:
  virtual ~Forms() = default;
  virtual const Node& node(NodeId form) const = 0;
  // The nodes that have the value `id`. The span may refer to `id`.
  virtual std::span<const NodeId> of(const NodeId& id) const { return {&id, 1}; }
  virtual bool known(NodeId id) const = 0; // when packing
  virtual bool used_once(NodeId) const { return true; }
  // Whether two nodes have one value.
  virtual bool same(NodeId a, NodeId b) const { return a == b; }
};

class GraphForms : public Forms {
public:
  explicit GraphForms(const Graph& graph) : graph_(graph) {}
  const Node& node(NodeId form) const override { return graph_[form]; }
  bool known(NodeId id) const override { return !graph_.depends_on_input(id); }

private:
  const Graph& graph_;
};

// What the letters of a pattern stand for, and the nodes of its ops below the root. A
// letter at an op is the form in which the op was found.
struct Found {
  NodeId root = kNoNode;
  std::array<NodeId, pattern::kLetters> letters{};
  std::vector<NodeId> below;
};

// Calls `accept` for each way in which the pattern fits the node, until it says yes. The
// node itself is not replaced by other forms of its value: rules read its payload.
bool match(const Forms& forms, const pattern::Pattern& pattern, NodeId root,
           const std::function<bool(const Found&)>& accept);

// The bits that every element of a constant has where the pattern (Number, AllOnes) fits
// it.
uint64_t bits_of(const pattern::Pattern& number, DType dtype);

} // namespace svod::rewrite
