#include "compiler/rewrite/scaled_sums.h"

#include "compiler/rewrite/known_values.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace svod::rewrite {

namespace {

// A bias misses a whole number of scales by its own rounding and that of a scale.
constexpr double kWhole = 0x1p-22;
// Of 255 * 255 a product, and such a bias: together they stay within 32 bits.
constexpr int64_t kLongestBiased = 16384;
constexpr double kMostBias = 0x1p30;

// A small tensor that stands for one with the shape of the outermost view, as one below
// the views; kNoNode where it cannot.
NodeId below_views(Graph& g, NodeId small, const std::vector<NodeId>& views) {
  for (const NodeId view : views) {
    const Node& node = g[view];
    const Shape& before = g[node.inputs[0]].shape;
    if (node.op == Op::Permute) {
      std::vector<int64_t> back(before.size());
      for (size_t i = 0; i < back.size(); ++i)
        back[static_cast<size_t>(node.payload[i])] = static_cast<int64_t>(i);
      small = permute(g, small, back);
      continue;
    }
    const auto shape = shape_through_reshape(g[small].shape, node.shape, before);
    if (!shape) return kNoNode;
    small = reshape(g, small, *shape);
  }
  return small;
}

// value / unit where every quotient is an integer, but for what floats round; as I32.
NodeId whole_ratio(Graph& g, NodeId value, NodeId unit) {
  const Shape channels = g[value].shape;
  const auto all = [&](double x) { return constant(g, DType::F64, channels, x); };
  const NodeId given = cast(g, value, DType::F64), one = cast(g, unit, DType::F64);
  const NodeId count = map(g, Op::Round, {map(g, Op::Div, {given, one})});
  const NodeId missed =
      map(g, Op::Abs, {map(g, Op::Sub, {given, map(g, Op::Mul, {count, one})})});
  const NodeId allowed = map(g, Op::Mul, {map(g, Op::Abs, {given}), all(kWhole)});
  const NodeId fits = map(g, Op::Less, {map(g, Op::Abs, {count}), all(kMostBias)});
  const NodeId whole =
      map(g, Op::And, {map(g, Op::Not, {map(g, Op::Less, {allowed, missed})}), fits});
  std::vector<int64_t> axes(channels.size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto is_whole =
      known_ints(g, reduce(g, Op::ReduceMin, cast(g, whole, DType::I32), axes));
  if (!is_whole || is_whole->at(0) != 1) return kNoNode;
  return cast(g, count, DType::I32);
}

NodeId bias_in_sum(Graph& g, const Node& add, size_t side, const ScaledSums& sums) {
  const NodeId bias = add.inputs[1 - side];
  std::vector<NodeId> views; // outermost first
  NodeId product = add.inputs[side];
  for (; g[product].op == Op::Reshape || g[product].op == Op::Permute;
       product = g[product].inputs[0])
    views.push_back(product);
  const auto terms = sums.find(product);
  if (terms == sums.end() || terms->second > kLongestBiased || g.depends_on_input(bias))
    return kNoNode;
  const Node scaled = g[product]; // of a cast sum and known scales, in this order
  const NodeId small = below_views(g, base_of(g, bias), views);
  if (small == kNoNode) return kNoNode;
  const NodeId scale = base_of(g, scaled.inputs[1]);
  Shape channels = g[small].shape;
  for (size_t axis = 0; axis < channels.size(); ++axis)
    channels[axis] = std::max(channels[axis], g[scale].shape[axis]);
  if (element_count(channels) > kFoldElements) return kNoNode;
  const NodeId count =
      whole_ratio(g, expand(g, small, channels), expand(g, scale, channels));
  if (count == kNoNode) return kNoNode;
  const NodeId sum = g[scaled.inputs[0]].inputs[0];
  const NodeId added = expand(g, count, g[sum].shape);
  const NodeId total = cast(g, map(g, Op::Add, {sum, added}), DType::F32);
  NodeId out = map(g, Op::Mul, {total, scaled.inputs[1]});
  for (const NodeId at : std::views::reverse(views)) {
    Node view = g[at];
    view.inputs = {out};
    out = rebuild(g, view);
  }
  return out;
}

// value / divisor with the division moved to what is known: scales and biases. kNoNode
// where there is none.
NodeId merged(Graph& g, NodeId value, NodeId divisor, int depth) {
  const Node node = g[value];
  if (depth > 8 || node.dtype != DType::F32) return kNoNode;
  if (!g.depends_on_input(value)) {
    NodeId base = base_of(g, value);
    NodeId quotient = map(g, Op::Div, {base, over_result(g, divisor, g[base].shape)});
    return expand(g, quotient, node.shape);
  }
  switch (node.op) {
  case Op::Mul: {
    size_t known = g.depends_on_input(node.inputs[1]) ? 0 : 1;
    if (g.depends_on_input(node.inputs[known])) return kNoNode;
    NodeId factor = merged(g, node.inputs[known], divisor, depth + 1);
    return map(g, Op::Mul, {node.inputs[1 - known], factor});
  }
  case Op::Div: { // of a softmax: its sum takes the divisor, once per row
    const NodeId sum = softmax_sum(g, value);
    if (sum == kNoNode) return kNoNode;
    NodeId scaled = map(g, Op::Mul, {sum, over_result(g, divisor, g[sum].shape)});
    NodeId inverse = expand(g, map(g, Op::Reciprocal, {scaled}), node.shape);
    return map(g, Op::Mul, {node.inputs[0], inverse});
  }
  case Op::Add:
  case Op::Sub:
  case Op::Min:
  case Op::Max: {
    NodeId a = merged(g, node.inputs[0], divisor, depth + 1);
    NodeId b = a == kNoNode ? a : merged(g, node.inputs[1], divisor, depth + 1);
    return b == kNoNode ? b : map(g, node.op, {a, b});
  }
  case Op::Reshape:
  case Op::Permute: {
    Node again = node;
    again.inputs = {merged(g, node.inputs[0], divisor, depth + 1)};
    return again.inputs[0] == kNoNode ? kNoNode : rebuild(g, again);
  }
  default:
    return kNoNode;
  }
}

} // namespace

NodeId whole_bias(Graph& g, NodeId add, const ScaledSums& sums) {
  const Node node = g[add];
  const NodeId first = bias_in_sum(g, node, 0, sums);
  return first != kNoNode ? first : bias_in_sum(g, node, 1, sums);
}

NodeId merge_scales(Graph& g, NodeId round) {
  const Node quotient = g[g[round].inputs[0]];
  if (quotient.op != Op::Div) return kNoNode;
  if (quotient.dtype != DType::F32) return kNoNode;
  NodeId divisor = one_element(g, quotient.inputs[1]);
  if (divisor == kNoNode || g.depends_on_input(divisor)) return kNoNode;
  std::optional<std::vector<double>> scale = known_floats(g, divisor);
  // Quotients by anything smaller could leave the range of floats.
  if (!scale || !(scale->at(0) > 1e-30 && scale->at(0) < 1e30)) return kNoNode;
  NodeId value = merged(g, quotient.inputs[0], divisor, 0);
  return value == kNoNode ? kNoNode : map(g, Op::Round, {value});
}

} // namespace svod::rewrite
