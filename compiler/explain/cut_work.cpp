// Nodes have higher numbers than what they read, so one walk from the highest down meets
// every reader before what it reads.
#include "compiler/explain/cut_work.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod::explain {

namespace {

// Operations of a function that is a polynomial and what reduces its argument.
constexpr double kCostlyOperations = 16;

double count(const Graph& g, NodeId n) {
  return double(std::max<int64_t>(element_count(g[n].shape), 1));
}

// How often the input is evaluated for so many evaluations of the reader.
double evaluations_below(const Graph& g, NodeId reader, NodeId input, double evaluations,
                         bool by_rows) {
  const Op op = g[reader].op;
  const bool by_parts = is_reduce(op) || op == Op::Concat ||
                        info(op).op_class == OpClass::Scan || op == Op::ArgSort;
  if (by_parts) return evaluations / count(g, reader) * count(g, input);
  if (op == Op::Expand && by_rows) return std::min(evaluations, count(g, input));
  return evaluations;
}

double operations_of(const Graph& g, NodeId n, double evaluations) {
  const Node& node = g[n];
  if (node.op == Op::Pad || node.op == Op::Concat) return evaluations; // a guard each
  if (is_view(node.op)) return 0;
  if (is_reduce(node.op))
    return evaluations_below(g, n, node.inputs[0], evaluations, false);
  return evaluations * (is_costly(node.op) ? kCostlyOperations : 1);
}

} // namespace

int64_t bytes_of(const Graph& g, NodeId n) {
  return element_count(g[n].shape) * byte_size(g[n].dtype);
}

bool lies_as_viewed(const Graph& g, NodeId view) {
  const Node& node = g[view];
  const Shape& from = g[node.inputs[0]].shape;
  if (node.op == Op::Reshape) return true;
  if (node.op == Op::Permute) {
    Payload axes = node.payload;
    std::erase_if(axes, [&](int64_t axis) { return from[size_t(axis)] == 1; });
    return std::ranges::is_sorted(axes);
  }
  if (node.op == Op::Slice) { // at most one axis is cut, inside of it all are whole
    bool cut = false;
    for (size_t i = from.size(); i-- > 0;) {
      const bool one = node.shape[i] == 1, forward = node.payload[from.size() + i] == 1;
      if ((cut && !one) || (!one && !forward)) return false;
      cut |= node.shape[i] != from[i];
    }
    return true;
  }
  return node.shape == from;
}

bool is_computed(const Graph& g, NodeId n) {
  return g.depends_on_input(n) && !is_view(g[n].op) &&
         info(g[n].op).op_class != OpClass::Source &&
         info(g[n].op).op_class != OpClass::Region;
}

bool is_product_of_sum(const Graph& g, NodeId sum, NodeId product) {
  return g[sum].op == Op::ReduceSum && g[product].op == Op::Mul &&
         g[sum].inputs[0] == product;
}

int64_t CutWork::touched_bytes() const {
  int64_t bytes = result_bytes;
  for (const auto& [node, read] : reads) bytes += read;
  return bytes;
}

CutWork cut_work(const Graph& g, NodeId root, bool by_rows,
                 const std::function<bool(NodeId)>& stored) {
  CutWork out;
  out.result_bytes = bytes_of(g, root);
  std::map<NodeId, double, std::greater<>> open{{root, count(g, root)}};
  std::map<NodeId, bool> only_in_products;
  while (!open.empty()) {
    const auto [n, evaluations] = *open.begin();
    open.erase(open.begin());
    const Node& node = g[n];
    const OpClass kind = info(node.op).op_class;
    const bool known = !g.depends_on_input(n) && !is_view(node.op);
    if (n != root && (stored(n) || known || kind == OpClass::Region)) {
      const bool counted = node.op == Op::Constant || node.op == Op::Iota;
      const double elements = std::min(evaluations, count(g, n));
      if (!counted) out.reads[n] = static_cast<int64_t>(elements) * byte_size(node.dtype);
      continue;
    }
    out.evaluations[n] = evaluations;
    const auto product = only_in_products.find(n);
    if (product == only_in_products.end() || !product->second)
      out.operations += operations_of(g, n, evaluations);
    for (NodeId in : node.inputs) {
      const double there = evaluations_below(g, n, in, evaluations, by_rows);
      double& most = open[in];
      most = std::max(most, there);
      const auto [known_reader, first] = only_in_products.emplace(in, true);
      known_reader->second &= is_product_of_sum(g, n, in);
    }
  }
  return out;
}

} // namespace svod::explain
