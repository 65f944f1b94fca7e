#include "compiler/rewrite/double_sums.h"

#include "compiler/ir/graph_copy.h"

#include <ranges>

namespace svod::rewrite {

namespace {

class DoubleSums {
public:
  explicit DoubleSums(const Graph& from) : from_(from) {}
  Graph run() {
    copy_.run();
    return std::move(to_);
  }

private:
  NodeId make(NodeId id);
  NodeId summand(NodeId id);
  NodeId widened(NodeId id);

  const Graph& from_;
  Graph to_;
  GraphCopy copy_{to_, from_, [this](NodeId id) { return make(id); }};
};

// A node of the given graph as f64. Contractions are looked for as products of views, so
// the cast is below those.
NodeId DoubleSums::widened(NodeId id) {
  std::vector<NodeId> views;
  for (; info(from_[id].op).op_class == OpClass::View && from_[id].op != Op::Pad;
       id = from_[id].inputs[0])
    views.push_back(id);
  NodeId out = to_.intern({Op::Cast, DType::F64, from_[id].shape, {}, {copy_.copy(id)}});
  for (const NodeId at : std::views::reverse(views)) {
    Node view = from_[at];
    view.dtype = DType::F64;
    view.inputs = {out};
    out = to_.intern(std::move(view));
  }
  return out;
}

NodeId DoubleSums::summand(NodeId id) {
  if (from_[id].op != Op::Mul) return widened(id);
  Node product = from_[id];
  product.dtype = DType::F64;
  for (NodeId& factor : product.inputs) factor = widened(factor);
  return to_.intern(std::move(product));
}

NodeId DoubleSums::make(NodeId id) {
  const Node& node = from_[id];
  if (node.op != Op::ReduceSum || node.dtype != DType::F32)
    return to_.intern(copy_.over_copies(id, [](const std::shared_ptr<const Graph>& body) {
      return std::make_shared<const Graph>(DoubleSums(*body).run());
    }));
  Node sum = node;
  sum.dtype = DType::F64;
  sum.inputs = {summand(node.inputs[0])};
  const NodeId wide = to_.intern(std::move(sum));
  return to_.intern({Op::Cast, DType::F32, node.shape, {}, {wide}});
}

} // namespace

bool quantises(const Graph& graph) {
  bool rounds = false, narrows = false;
  for (const NodeId id : graph.live_nodes()) {
    const Node& node = graph[id];
    rounds |= node.op == Op::Round;
    narrows |= node.op == Op::Cast && is_integer(node.dtype) &&
               byte_size(node.dtype) <= 2 && is_float(graph[node.inputs[0]].dtype);
    for (size_t b = 0; b < body_count(node.op); ++b)
      if (quantises(*graph.body(static_cast<uint32_t>(node.payload[b])))) return true;
  }
  return rounds && narrows;
}

Graph sums_in_double(const Graph& graph) { return DoubleSums(graph).run(); }

} // namespace svod::rewrite
