// An e-graph: many equal graphs in one. A class is a value, its forms are the nodes that
// compute it, over any form of the classes of their inputs.
//
// The nodes are those of a Graph, so that the builder, the pattern matcher and the rules
// of simplify work on it as they are: a node refers to its inputs by one node of their
// class. Two nodes are one form where op, type, payload and the classes of the inputs are
// equal; when classes are joined, their users may become one form, which joins the users'
// classes in turn (congruence). `rebuild` does this for many joins at once, as in
// Willsey et al., "egg: Fast and Extensible Equality Saturation", POPL 2021.
#pragma once

#include "compiler/egraph/union_find.h"
#include "compiler/rewrite/rewriter.h"

#include <unordered_map>

namespace svod::egraph {

// A class, and a form of it that was found.
struct Site {
  NodeId at = kNoNode, form = kNoNode;
};

class EGraph : public rewrite::Rewriter {
public:
  // The live nodes of the graph, each a class of its own. Its inputs, outputs, bodies and
  // the ONNX nodes that its nodes came from are those of `g`.
  explicit EGraph(const Graph& graph);

  // The class of a node is named by its lowest node. Of the classes of the graph this is
  // the graph's own node, so the lowest nodes together are the graph as it was given. A
  // node that was not absorbed yet, as a rule asks for them, is a class of its own.
  NodeId find(NodeId id) const { return id < classes_.size() ? classes_.find(id) : id; }
  bool same(NodeId a, NodeId b) const override { return find(a) == find(b); }
  // Its forms, ascending.
  std::span<const NodeId> of(const NodeId& id) const override {
    if (id >= classes_.size()) return {&id, 1};
    return forms_[find(id)];
  }
  // Some form of it does not depend on an input.
  bool known(NodeId id) const override {
    return id < classes_.size() ? known_form(id) != kNoNode : !g.depends_on_input(id);
  }
  // That form, the lowest one; kNoNode where there is none.
  NodeId known_form(NodeId id) const { return known_[find(id)]; }
  // The cost of a graph says what is done twice.
  bool used_once(NodeId) const override { return true; }

  // Takes in the nodes that were made in `g` since; each is a class of its own or a form
  // that there is already.
  void absorb();
  // Says that two nodes have one value; absorbs first. Whether that was news. Until the
  // next rebuild(), equal forms may be in different classes.
  bool merge(NodeId a, NodeId b);
  // Restores congruence.
  void rebuild();

  // The classes that outputs are computed from through any form, ascending.
  std::vector<NodeId> live_classes() const;
  // Of each node: its class is rounded to an integer later, at once or through others.
  std::vector<bool> rounded_classes(const std::vector<NodeId>& live) const;

  size_t node_count() const { return classes_.size(); }
  size_t blob_bytes(); // of all weights, folded ones included

private:
  Node canonical(NodeId id) const;
  // The form of the table that this node is one with, which is the node itself where it
  // is new.
  NodeId enter(NodeId id);
  void drop_form(NodeId id);

  UnionFind classes_;
  std::vector<std::vector<NodeId>> forms_;          // by class
  std::vector<std::vector<NodeId>> users_;          // by class: nodes that read it
  std::vector<NodeId> known_;                       // by class
  std::vector<bool> dropped_;                       // nodes that are one with a lower one
  std::unordered_multimap<uint64_t, NodeId> table_; // by hash of the canonical node
  std::vector<NodeId> joined_;                      // classes, since the last rebuild
  uint32_t counted_blobs_ = 0;
  size_t blob_bytes_ = 0;
};

} // namespace svod::egraph
