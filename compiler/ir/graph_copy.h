// Copying a graph node by node into another: the one driver of the passes that rewrite
// one, and of what moves single nodes between a region's bodies and the graph around.
#pragma once

#include "compiler/ir/graph.h"

#include <functional>

namespace svod {

class GraphCopy {
public:
  // Makes what stands for node `id` of `from` in `to`; that of its inputs is there.
  using Make = std::function<NodeId(NodeId id)>;
  using Body =
      std::function<std::shared_ptr<const Graph>(const std::shared_ptr<const Graph>&)>;

  // Without `make`, every node is made again by the builder, which folds what it can.
  GraphCopy(Graph& to, const Graph& from, Make make = {})
      : to_(to), from_(from), make_(std::move(make)), now_(from.size(), kNoNode) {}

  void set(NodeId from, NodeId to) { now_.at(from) = to; }
  // What stands for a node; kNoNode before there is anything.
  NodeId operator[](NodeId from) const { return now_[from]; }

  // The node over inputs, blob and bodies of `to`, the bodies as `body` turns them into.
  Node over_copies(NodeId id, const Body& body = {}) const;
  // Copies a node and what it is computed from. Set where inputs go before.
  NodeId copy(NodeId id);
  // Copies inputs, live nodes and outputs of the whole graph, with the names of the ONNX
  // nodes they came from. What is made for a node is credited to its ONNX nodes.
  void run();

private:
  NodeId make(NodeId id) const;

  Graph& to_;
  const Graph& from_;
  Make make_;
  std::vector<NodeId> now_;
};

} // namespace svod
