// Maps, casts, and what is made of them. The algebra here is exact but for one case: x +
// 0 is x, which keeps a negative zero that IEEE addition would make positive. x * 0
// stays, for NaN and infinity.
#include "compiler/ir/fold.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

static bool is_splat_of(const Graph& g, NodeId id, double value) {
  auto bits = splat_bits(g, id);
  return bits && *bits == scalar_bits(g[id].dtype, value);
}

// Known at pack time, seen through an expand.
static bool is_known_operand(const Graph& g, NodeId id) {
  if (g[id].op == Op::Expand) id = g[id].inputs[0];
  return is_known(g, id);
}

static bool commutes(Op op) {
  switch (op) {
  case Op::Add:
  case Op::Mul:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Equal:
    return true;
  default:
    return false;
  }
}

// The result where a map of these inputs is one of them, or of their inputs.
static std::optional<NodeId> trivial_map(const Graph& g, Op op,
                                         std::span<const NodeId> in) {
  switch (op) {
  case Op::Add:
  case Op::Sub:
    if (is_splat_of(g, in[1], 0.0) || is_splat_of(g, in[1], -0.0)) return in[0];
    break;
  case Op::Mul:
  case Op::Div:
    if (is_splat_of(g, in[1], 1)) return in[0];
    break;
  case Op::Neg:
  case Op::Not:
  case Op::BitNot:
    if (g[in[0]].op == op) return g[in[0]].inputs[0];
    break;
  case Op::And:
  case Op::Or:
  case Op::Min:
  case Op::Max:
    if (in[0] == in[1]) return in[0];
    break;
  case Op::Select:
    if (auto bits = splat_bits(g, in[0])) return *bits ? in[1] : in[2];
    if (in[1] == in[2]) return in[1];
    break;
  default:
    break;
  }
  return std::nullopt;
}

// A map of values that all repeat along the same axes is computed once, then repeated:
// scale / sqrt(variance + epsilon) stays a vector. kNoNode where the inputs differ.
static NodeId map_before_expand(Graph& g, Op op, const std::vector<NodeId>& inputs) {
  const Shape* small = nullptr;
  for (NodeId input : inputs) {
    if (splat_bits(g, input)) continue;
    if (g[input].op != Op::Expand) return kNoNode;
    const Shape& shape = g[g[input].inputs[0]].shape;
    if (small && *small != shape) return kNoNode;
    small = &shape;
  }
  if (!small) return kNoNode;
  const Shape inner_shape = *small, outer_shape = g[inputs[0]].shape;
  std::vector<NodeId> inner;
  for (NodeId input : inputs) {
    auto bits = splat_bits(g, input);
    inner.push_back(bits ? constant_bits(g, g[input].dtype, inner_shape, *bits)
                         : g[input].inputs[0]);
  }
  return expand(g, map(g, op, std::move(inner)), outer_shape);
}

NodeId map(Graph& g, Op op, std::vector<NodeId> inputs) {
  SVOD_CHECK(is_map(op) && static_cast<int>(inputs.size()) == info(op).arity)
      << info(op).name;
  for (NodeId input : inputs)
    SVOD_CHECK(g[input].shape == g[inputs[0]].shape) << info(op).name << " shapes";
  if (commutes(op) && is_known_operand(g, inputs[0]) && !is_known_operand(g, inputs[1]))
    std::swap(inputs[0], inputs[1]); // rules look for what is known on the right
  if (auto result = trivial_map(g, op, inputs)) return *result;
  if (NodeId id = map_before_expand(g, op, inputs); id != kNoNode) return id;
  return make(g, {op, {}, {}, {}, std::move(inputs)});
}

static Shape broadcast_shape(const Graph& g, std::span<const NodeId> inputs) {
  Shape shape;
  for (NodeId input : inputs) {
    Shape other = g[input].shape;
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    size_t skip = shape.size() - other.size();
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t& extent = shape[skip + i];
      SVOD_CHECK(extent == other[i] || extent == 1 || other[i] == 1) << "no broadcast";
      if (extent == 1) extent = other[i];
    }
  }
  return shape;
}

NodeId broadcast_map(Graph& g, Op op, std::vector<NodeId> inputs) {
  Shape shape = broadcast_shape(g, inputs);
  for (NodeId& input : inputs) input = broadcast_to(g, input, shape);
  return map(g, op, std::move(inputs));
}

static NodeId convert(Graph& g, Op op, NodeId x, DType dtype) {
  const Node& node = g[x];
  if (node.dtype == dtype) return x;
  if (node.op == Op::Expand) { // before the expand, as maps are
    const Shape outer_shape = node.shape;
    return expand(g, convert(g, op, node.inputs[0], dtype), outer_shape);
  }
  return make(g, {op, dtype, {}, {}, {x}});
}

// To an integer of less than a byte. High bits are lost, those of a float's whole part,
// too (the specification leaves that open, its tests ask for it): a shift up and down
// within the byte that holds the element.
static NodeId cast_to_packed(Graph& g, NodeId x, DType dtype) {
  DType byte = info(dtype).kind == DTypeKind::Int ? DType::I8 : DType::U8;
  if (is_float(g[x].dtype)) x = cast(g, x, DType::I32);
  x = cast(g, x, byte);
  const Shape shape = g[x].shape;
  NodeId shift = constant_int(g, byte, shape, 8 - info(dtype).bits);
  x = map(g, Op::ShiftLeft, {x, shift});
  return bitcast(g, map(g, Op::ShiftRight, {x, shift}), dtype);
}

NodeId cast(Graph& g, NodeId x, DType dtype) {
  if (g[x].dtype == dtype) return x;
  if (is_packed(dtype) && !is_float(dtype)) return cast_to_packed(g, x, dtype);
  return convert(g, Op::Cast, x, dtype);
}

NodeId bitcast(Graph& g, NodeId x, DType dtype) {
  return convert(g, Op::Bitcast, x, dtype);
}

NodeId simple_power(Graph& g, NodeId x, double exponent) {
  const auto inverse = [&](NodeId y) { return map(g, Op::Reciprocal, {y}); };
  const auto root = [&](NodeId y) { return map(g, Op::Sqrt, {y}); };
  const auto product = [&](NodeId a, NodeId b) { return map(g, Op::Mul, {a, b}); };
  if (exponent == 0) return constant(g, g[x].dtype, g[x].shape, 1);
  if (exponent == 1) return x;
  if (exponent == 2) return product(x, x);
  if (exponent == 3) return product(product(x, x), x);
  if (exponent == 4) return product(product(x, x), product(x, x));
  if (exponent == 0.25) return root(root(x));
  if (exponent == 0.5) return root(x);
  if (exponent == 0.75) return product(root(x), root(root(x)));
  if (exponent == 1.5) return product(x, root(x));
  // x^0.75 is as far from overflow and underflow as its inverse.
  if (exponent == -1 || exponent == -0.5 || exponent == -0.75)
    return inverse(simple_power(g, x, -exponent));
  return kNoNode;
}

NodeId matmul(Graph& g, NodeId a, NodeId b) {
  bool row = g[a].shape.size() == 1, column = g[b].shape.size() == 1;
  if (row) a = unsqueeze(g, a, 0);
  if (column) b = unsqueeze(g, b, 1);
  const Shape left = g[a].shape, right = g[b].shape;
  SVOD_CHECK(left.size() >= 2 && right.size() >= 2) << "matmul of a scalar";
  int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  SVOD_CHECK(right[right.size() - 2] == k) << "matmul: inner extents differ";

  // [batch.., M, 1, K] times [batch.., 1, N, K], summed over K: what is multiplied lies
  // along the last axis of both.
  NodeId lhs = unsqueeze(g, a, static_cast<int64_t>(left.size()) - 1);
  NodeId rhs = permute_last_two(g, b);
  rhs = unsqueeze(g, rhs, static_cast<int64_t>(right.size()) - 2);
  NodeId product = broadcast_map(g, Op::Mul, {lhs, rhs});
  Shape full = g[product].shape;
  int64_t rank = static_cast<int64_t>(full.size());
  NodeId sum = reduce(g, Op::ReduceSum, product, {rank - 1});

  Shape shape(full.begin(), full.end() - 3);
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  return reshape(g, sum, std::move(shape));
}

} // namespace svod
