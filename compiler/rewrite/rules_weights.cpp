// Helpers of the rules on weights. Views of weights are not folded: they cost a kernel
// nothing, since weights are packed in the order it reads them.
#include "compiler/ir/fold.h"
#include "compiler/rewrite/known_values.h"
#include "compiler/rewrite/rule_parts.h"

#include <set>

namespace svod::rewrite {

using pattern::Helper;
using pattern::Nodes;

namespace {

// Elements that any step of folding may hold, so that folding a product of matrices
// written as expands stays within memory.
constexpr int64_t kFoldStep = int64_t{1} << 26;
// What is computed from weights may be this much larger than they are: 8-bit weights to
// floats.
constexpr int64_t kFoldGrowth = 4;

int64_t bytes_of(const Graph& g, NodeId id) {
  return element_count(g[id].shape) * byte_size(g[id].dtype);
}

// A sum of products with a known factor, under views that only rename elements.
struct Contraction {
  std::vector<NodeId> views; // outermost first
  NodeId sum = kNoNode, product = kNoNode, x = kNoNode, weights = kNoNode;
};

std::optional<Contraction> find_contraction(Rewriter& r, NodeId id) {
  Contraction found;
  const Graph& g = r.g;
  while ((g[id].op == Op::Reshape || g[id].op == Op::Permute) && r.used_once(id)) {
    found.views.push_back(id);
    id = g[id].inputs[0];
  }
  if (g[id].op != Op::ReduceSum || !r.used_once(id)) return std::nullopt;
  found.sum = id;
  found.product = g[id].inputs[0];
  const Node& product = g[found.product];
  if (product.op != Op::Mul || !r.used_once(found.product)) return std::nullopt;
  bool right = r.known(product.inputs[1]);
  if (right == r.known(product.inputs[0])) return std::nullopt;
  found.weights = product.inputs[right ? 1 : 0];
  found.x = product.inputs[right ? 0 : 1];
  return found;
}

// The scale as the sum sees it: taken back through the views. kNoNode where that needs a
// copy.
NodeId scale_below(Graph& g, NodeId scale, const std::vector<NodeId>& views) {
  for (NodeId view : views) {
    const Node node = g[view];
    if (node.op == Op::Reshape) {
      auto shape =
          shape_through_reshape(g[scale].shape, node.shape, g[node.inputs[0]].shape);
      if (!shape) return kNoNode;
      scale = reshape(g, scale, *shape);
      continue;
    }
    std::vector<int64_t> inverse(node.payload.size());
    for (size_t i = 0; i < inverse.size(); ++i)
      inverse[static_cast<size_t>(node.payload[i])] = static_cast<int64_t>(i);
    scale = permute(g, scale, inverse);
  }
  return scale;
}

} // namespace

Condition is_contraction(pattern::Letter y) {
  return Condition(
      [=](const Match& m) { return find_contraction(m.r, m[y]).has_value(); });
}

const Helper with_scaled_weights{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const auto found = find_contraction(m.r, in[0]);
  if (!found) return kNoNode;
  const NodeId scale = scale_below(g, base_of(g, in[1]), found->views);
  if (scale == kNoNode) return kNoNode;
  const NodeId weights = base_of(g, found->weights);
  for (size_t i = 0; i < g[scale].shape.size(); ++i)
    if (g[scale].shape[i] != 1 && g[scale].shape[i] != g[weights].shape[i])
      return kNoNode;
  if (bytes_of(g, weights) > m.r.fold_bytes) return kNoNode;

  m.replaced = found->views;
  m.replaced.insert(m.replaced.end(), {found->sum, found->product});
  NodeId scaled = map(g, Op::Mul, {weights, expand(g, scale, g[weights].shape)});
  scaled = expand(g, scaled, g[found->product].shape);
  NodeId product = map(g, Op::Mul, {found->x, scaled});
  NodeId result = reduce(g, Op::ReduceSum, product, g[found->sum].payload);
  for (auto view = found->views.rbegin(); view != found->views.rend(); ++view) {
    Node again = g[*view];
    again.inputs = {result};
    result = rebuild(g, again);
  }
  return result;
}};

// Bytes of the distinct weights below a node.
static int64_t weight_bytes(const Graph& g, NodeId id) {
  std::set<NodeId> seen{id};
  std::vector<NodeId> stack{id};
  int64_t bytes = 0;
  while (!stack.empty()) {
    NodeId next = stack.back();
    stack.pop_back();
    if (g[next].op == Op::Weight) bytes += bytes_of(g, next);
    for (NodeId input : g[next].inputs)
      if (seen.insert(input).second) stack.push_back(input);
  }
  return bytes;
}

const Condition worth_folding([](const Match& m) {
  const Graph& g = m.r.g;
  const NodeId id = m.found.root;
  const OpClass kind = info(g[id].op).op_class;
  if (kind == OpClass::Source || kind == OpClass::View || !m.r.meets_unknown ||
      !m.r.known(id) || stays_narrow(g, id))
    return false;
  const int64_t bytes = bytes_of(g, id);
  return bytes <= m.r.fold_bytes && bytes < kFoldGrowth * weight_bytes(g, id);
});

const Helper folded{[](const Match& m, Nodes in) {
  const int64_t bytes = bytes_of(m.r.g, in[0]);
  const NodeId value = fold_known(m.r.g, in[0], kFoldStep);
  if (value != kNoNode) m.r.fold_bytes -= bytes;
  return value;
}};

} // namespace svod::rewrite
