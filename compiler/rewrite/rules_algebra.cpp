// Rules on scalar functions. Which may change the last bits of a float says rules.def.
#include "compiler/rewrite/rewriter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace svod::rewrite {

NodeId base_of(Graph& g, NodeId id) {
  if (g[id].op == Op::Expand) return g[id].inputs[0];
  if (auto bits = splat_bits(g, id))
    return constant_bits(g, g[id].dtype, Shape(g[id].shape.size(), 1), *bits);
  return id;
}

NodeId join_known(Graph& g, Op op, NodeId c, NodeId d) {
  const Shape full = g[c].shape;
  c = base_of(g, c), d = base_of(g, d);
  Shape joined = g[c].shape;
  for (size_t i = 0; i < joined.size(); ++i)
    if (joined[i] == 1) joined[i] = g[d].shape[i];
  int64_t larger = std::max(element_count(g[c].shape), element_count(g[d].shape));
  if (element_count(joined) > larger) return kNoNode;
  return expand(g, map(g, op, {expand(g, c, joined), expand(g, d, joined)}), full);
}

NodeId softmax_sum(const Graph& g, const Node& quotient) {
  const NodeId e = quotient.inputs[0], repeated = quotient.inputs[1];
  if (g[e].op != Op::Exp || g[repeated].op != Op::Expand) return kNoNode;
  const NodeId sum = g[repeated].inputs[0], shifted = g[e].inputs[0];
  if (g[sum].op != Op::ReduceSum || g[sum].inputs[0] != e) return kNoNode;
  if (g[shifted].op != Op::Sub || g[g[shifted].inputs[1]].op != Op::Expand)
    return kNoNode;
  const NodeId most = g[g[shifted].inputs[1]].inputs[0];
  const bool same = g[most].op == Op::ReduceMax &&
                    g[most].inputs[0] == g[shifted].inputs[0] &&
                    g[most].payload == g[sum].payload;
  return same ? sum : kNoNode;
}

namespace {

// A binary node's operands when exactly the second (or, where order does not matter to
// the caller, one of them) is known.
struct Known {
  NodeId x = kNoNode, c = kNoNode;
  explicit operator bool() const { return c != kNoNode; }
};

Known right_known(Rewriter& r, NodeId id) {
  const std::vector<NodeId>& in = r.g[id].inputs;
  if (in.size() != 2 || !r.known(in[1]) || r.known(in[0])) return {};
  return {in[0], in[1]};
}

Known either_known(Rewriter& r, NodeId id) {
  if (Known known = right_known(r, id)) return known;
  const std::vector<NodeId>& in = r.g[id].inputs;
  if (in.size() != 2 || !r.known(in[0]) || r.known(in[1])) return {};
  return {in[1], in[0]};
}

bool is_splat(const Graph& g, NodeId id, double value) {
  auto bits = splat_bits(g, id);
  return bits && *bits == scalar_bits(g[id].dtype, value);
}

bool rounding_stays(const Rewriter& r, NodeId id) {
  return r.keep_rounding && is_float(r.g[id].dtype);
}

// Every value is finite, not zero, and not so small that it has fewer bits.
bool all_normal(const Graph& g, NodeId id) {
  if (byte_size(g[id].dtype) == 1) return false;
  auto values = known_floats(g, id);
  double smallest = std::ldexp(1.0, g[id].dtype == DType::F16   ? -14
                                    : g[id].dtype == DType::F64 ? -1022
                                                                : -126);
  return values && std::all_of(values->begin(), values->end(), [&](double value) {
           return std::isfinite(value) && std::fabs(value) >= smallest;
         });
}

uint64_t all_ones(DType dtype) {
  if (dtype == DType::Bool) return 1;
  return scalar_bits_int(dtype, -1);
}

} // namespace

namespace rules {

NodeId sub_known(Rewriter& r, NodeId id) {
  Known in = right_known(r, id);
  if (!in || r.g[id].dtype == DType::Bool) return kNoNode;
  return map(r.g, Op::Add, {in.x, map(r.g, Op::Neg, {in.c})});
}

NodeId add_negated(Rewriter& r, NodeId id) {
  NodeId a = r.g[id].inputs[0], b = r.g[id].inputs[1];
  // x - c comes back as x + -c.
  if (r.g[b].op == Op::Neg && !r.known(b))
    return map(r.g, Op::Sub, {a, r.g[b].inputs[0]});
  if (r.g[a].op == Op::Neg && !r.known(a) && !r.known(b))
    return map(r.g, Op::Sub, {b, r.g[a].inputs[0]});
  return kNoNode;
}

NodeId sub_negated(Rewriter& r, NodeId id) {
  NodeId a = r.g[id].inputs[0], b = r.g[id].inputs[1];
  if (r.g[b].op != Op::Neg) return kNoNode;
  return map(r.g, Op::Add, {a, r.g[b].inputs[0]});
}

NodeId add_chain(Rewriter& r, NodeId id) {
  Known outer = right_known(r, id);
  if (!outer || r.g[outer.x].op != Op::Add || rounding_stays(r, id)) return kNoNode;
  Known inner = right_known(r, outer.x);
  if (!inner) return kNoNode;
  NodeId sum = join_known(r.g, Op::Add, inner.c, outer.c);
  if (sum == kNoNode) return kNoNode;
  r.absorb(outer.x);
  return map(r.g, Op::Add, {inner.x, sum});
}

NodeId sub_self(Rewriter& r, NodeId id) {
  const Node& node = r.g[id];
  if (node.inputs[0] != node.inputs[1] || !is_integer(node.dtype)) return kNoNode;
  return constant_bits(r.g, node.dtype, node.shape, 0);
}

NodeId mul_chain(Rewriter& r, NodeId id) {
  Known outer = right_known(r, id);
  if (!outer || r.g[outer.x].op != Op::Mul || rounding_stays(r, id)) return kNoNode;
  Known inner = right_known(r, outer.x);
  if (!inner) return kNoNode;
  NodeId product = join_known(r.g, Op::Mul, inner.c, outer.c);
  if (product == kNoNode) return kNoNode;
  if (is_float(r.g[id].dtype) && !all_normal(r.g, base_of(r.g, product))) return kNoNode;
  r.absorb(outer.x);
  return map(r.g, Op::Mul, {inner.x, product});
}

NodeId mul_negated(Rewriter& r, NodeId id) {
  Known in = right_known(r, id);
  if (!in || r.g[in.x].op != Op::Neg) return kNoNode;
  return map(r.g, Op::Mul, {r.g[in.x].inputs[0], map(r.g, Op::Neg, {in.c})});
}

// A product and a choice less per element: sigmoid alone takes e^-|x|, so that it does
// not vanish before e^x does. Here what vanishes is less than 1e-36: below -88 a float's
// e^-x is infinite and the quotient 0.
NodeId mul_sigmoid(Rewriter& r, NodeId id) {
  Graph& g = r.g;
  const DType dtype = g[id].dtype;
  if (r.keep_rounding || (dtype != DType::F32 && dtype != DType::F64)) return kNoNode;
  NodeId x = g[id].inputs[0], gate = g[id].inputs[1];
  if (g[gate].op != Op::Sigmoid) std::swap(x, gate);
  if (g[gate].op != Op::Sigmoid || !r.used_once(gate)) return kNoNode;
  const NodeId inside = g[gate].inputs[0];
  if (inside != x) {
    const Known scaled = either_known(r, inside);
    const auto factors = scaled && g[inside].op == Op::Mul && scaled.x == x
                             ? known_floats(g, base_of(g, scaled.c))
                             : std::nullopt;
    if (!factors || !std::ranges::all_of(*factors, [](double c) { return c > 0; }))
      return kNoNode;
  }
  r.absorb(gate);
  const NodeId e = map(g, Op::Exp, {map(g, Op::Neg, {inside})});
  const NodeId one = constant_bits(g, dtype, g[id].shape, scalar_bits(dtype, 1.0));
  return map(g, Op::Div, {x, map(g, Op::Add, {e, one})});
}

// x times half and 1 + erf(x c), of three factors that come in any order. c is as near
// to 1 / sqrt 2 as exporters write it in f32.
static bool is_gelu(Rewriter& r, NodeId x, NodeId half, NodeId one_more) {
  const Graph& g = r.g;
  if (!is_splat(g, half, 0.5) || g[one_more].op != Op::Add || !r.used_once(one_more))
    return false;
  const Known plus = either_known(r, one_more);
  if (!plus || !is_splat(g, plus.c, 1) || g[plus.x].op != Op::Erf || !r.used_once(plus.x))
    return false;
  const NodeId inside = g[plus.x].inputs[0];
  const Known scaled = either_known(r, inside);
  if (!scaled || g[inside].op != Op::Mul || scaled.x != x) return false;
  const auto bits = splat_bits(g, scaled.c);
  constexpr double kNear = 0x1p-22;
  return bits && std::fabs(scalar_value(DType::F32, *bits) / (std::numbers::sqrt2 / 2) -
                           1) < kNear;
}

NodeId mul_erf(Rewriter& r, NodeId id) {
  if (r.keep_rounding || r.g[id].dtype != DType::F32) return kNoNode;
  for (size_t i = 0; i < 2; ++i) {
    const NodeId product = r.g[id].inputs[i];
    if (r.g[product].op != Op::Mul || !r.used_once(product)) continue;
    std::array<NodeId, 3> f = {r.g[id].inputs[1 - i], r.g[product].inputs[0],
                               r.g[product].inputs[1]};
    std::ranges::sort(f);
    do {
      if (!is_gelu(r, f[0], f[1], f[2])) continue;
      const NodeId erf = either_known(r, f[2]).x;
      for (NodeId n : {product, f[2], erf, r.g[erf].inputs[0]}) r.absorb(n);
      return map(r.g, Op::Gelu, {f[0]});
    } while (std::ranges::next_permutation(f).found);
  }
  return kNoNode;
}

NodeId neg_mul(Rewriter& r, NodeId id) {
  NodeId product = r.g[id].inputs[0];
  if (r.g[product].op != Op::Mul || !r.used_once(product)) return kNoNode;
  Known in = right_known(r, product);
  if (!in) return kNoNode;
  r.absorb(product);
  return map(r.g, Op::Mul, {in.x, map(r.g, Op::Neg, {in.c})});
}

NodeId mul_zero(Rewriter& r, NodeId id) {
  const Node& node = r.g[id];
  if (is_float(node.dtype) || !is_splat(r.g, node.inputs[1], 0)) return kNoNode;
  return constant_bits(r.g, node.dtype, node.shape, 0);
}

NodeId div_power_of_two(Rewriter& r, NodeId id) {
  Known in = right_known(r, id);
  DType dtype = r.g[id].dtype;
  if (!in || !is_float(dtype)) return kNoNode;
  NodeId base = base_of(r.g, in.c);
  auto values = known_floats(r.g, base);
  if (!values) return kNoNode;
  for (double value : *values) {
    int exponent = 0;
    if (!std::isnormal(value) || std::fabs(std::frexp(value, &exponent)) != 0.5)
      return kNoNode;
    double inverse = 1 / value;
    if (scalar_value(dtype, scalar_bits(dtype, inverse)) != inverse) return kNoNode;
  }
  NodeId inverse = expand(r.g, map(r.g, Op::Reciprocal, {base}), r.g[id].shape);
  return map(r.g, Op::Mul, {in.x, inverse});
}

NodeId div_known(Rewriter& r, NodeId id) {
  Known in = right_known(r, id);
  const DType dtype = r.g[id].dtype;
  // 1 / c of so few bits would cost one of them, and the kernel computes in f32 anyway.
  const bool narrow = is_float(dtype) && byte_size(dtype) < 4;
  if (!in || !is_float(dtype) || narrow || r.keep_rounding) return kNoNode;
  NodeId inverse = map(r.g, Op::Reciprocal, {base_of(r.g, in.c)});
  if (!is_known(r.g, inverse) || !all_normal(r.g, inverse)) return kNoNode;
  return map(r.g, Op::Mul, {in.x, expand(r.g, inverse, r.g[id].shape)});
}

// The sum is at least 1, so its inverse is harmless; in general 1 / y may overflow where
// x / y does not.
NodeId div_softmax(Rewriter& r, NodeId id) {
  Graph& g = r.g;
  const NodeId sum = softmax_sum(g, g[id]);
  if (r.keep_rounding || sum == kNoNode) return kNoNode;
  const NodeId inverse = expand(g, map(g, Op::Reciprocal, {sum}), g[id].shape);
  return map(g, Op::Mul, {g[id].inputs[0], inverse});
}

NodeId pow_known(Rewriter& r, NodeId id) {
  NodeId x = r.g[id].inputs[0], c = r.g[id].inputs[1];
  DType dtype = r.g[id].dtype;
  auto bits = splat_bits(r.g, c);
  if (!bits || !is_float(dtype)) return kNoNode;
  const double exponent = scalar_value(dtype, *bits);
  // Our pow is not rounded correctly, so the others may differ from it in the last bit.
  if (exponent != 0 && exponent != 1 && r.keep_rounding) return kNoNode;
  return simple_power(r.g, x, exponent);
}

NodeId clamp_nothing(Rewriter& r, NodeId id) {
  Known in = either_known(r, id);
  if (!in) return kNoNode;
  DType dtype = r.g[id].dtype;
  double sign = r.g[id].op == Op::Min ? 1 : -1;
  // Saturates to the largest or smallest integer.
  return is_splat(r.g, in.c, sign * HUGE_VAL) && dtype != DType::Bool ? in.x : kNoNode;
}

NodeId clamp_chain(Rewriter& r, NodeId id) {
  Op op = r.g[id].op;
  Known outer = either_known(r, id);
  if (!outer || r.g[outer.x].op != op) return kNoNode;
  Known inner = either_known(r, outer.x);
  if (!inner) return kNoNode;
  NodeId limit = join_known(r.g, op, inner.c, outer.c);
  if (limit == kNoNode) return kNoNode;
  r.absorb(outer.x);
  return map(r.g, op, {inner.x, limit});
}

NodeId abs_of_abs(Rewriter& r, NodeId id) {
  NodeId x = r.g[id].inputs[0];
  if (r.g[x].op == Op::Abs) return x;
  // Of unsigned integers, -x is another number.
  if (r.g[x].op != Op::Neg || info(r.g[x].dtype).kind == DTypeKind::Uint) return kNoNode;
  return map(r.g, Op::Abs, {r.g[x].inputs[0]});
}

NodeId bits_known(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  auto bits = splat_bits(r.g, node.inputs[1]);
  if (!bits) return kNoNode;
  bool none = *bits == 0, all = *bits == all_ones(node.dtype);
  if (none) return node.op == Op::And ? node.inputs[1] : node.inputs[0];
  if (all && node.op == Op::And) return node.inputs[0];
  if (all && node.op == Op::Or) return node.inputs[1];
  return kNoNode;
}

NodeId select_not(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  if (r.g[node.inputs[0]].op != Op::Not) return kNoNode;
  NodeId condition = r.g[node.inputs[0]].inputs[0];
  return map(r.g, Op::Select, {condition, node.inputs[2], node.inputs[1]});
}

NodeId select_bool(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  if (node.dtype != DType::Bool) return kNoNode;
  auto yes = splat_bits(r.g, node.inputs[1]), no = splat_bits(r.g, node.inputs[2]);
  if (!yes || !no || *yes == *no) return kNoNode;
  return *yes ? node.inputs[0] : map(r.g, Op::Not, {node.inputs[0]});
}

} // namespace rules

// Bits of magnitude that every value of an integer dtype needs, and that a float dtype
// holds.
static int magnitude_bits(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F4E2M1:
    return 2;
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
    return 4;
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
    return 3;
  case DType::F8E8M0:
    return 0;
  case DType::F32:
    return 24;
  case DType::F64:
    return 53;
  case DType::Bool:
    return 1;
  default:
    return info(dtype).bits - (info(dtype).kind == DTypeKind::Int);
  }
}

// Whether every value of `from` is a value of `to`.
static bool holds_all(DType to, DType from) {
  if (from == to || (from == DType::Bool && to != DType::F8E8M0)) return true;
  if (to == DType::Bool) return false;
  if (is_float(from))
    return to == DType::F64 || (to == DType::F32 && is_narrow_float(from));
  bool loses_sign = info(from).kind == DTypeKind::Int && info(to).kind == DTypeKind::Uint;
  return !loses_sign && magnitude_bits(from) <= magnitude_bits(to);
}

NodeId rules::cast_of_cast(Rewriter& r, NodeId id) {
  NodeId middle = r.g[id].inputs[0];
  if (r.g[middle].op != Op::Cast) return kNoNode;
  NodeId x = r.g[middle].inputs[0];
  DType first = r.g[x].dtype, last = r.g[id].dtype;
  if (!holds_all(r.g[middle].dtype, first)) return kNoNode;
  // Integers wrap into integers, but a float in between saturates.
  bool by_float = !is_float(first) && is_float(r.g[middle].dtype) && is_integer(last);
  if (by_float && !holds_all(last, first)) return kNoNode;
  r.absorb(middle);
  return cast(r.g, x, last);
}

// A cast saturates by itself.
NodeId rules::cast_of_clamp(Rewriter& r, NodeId id) {
  NodeId clamp = r.g[id].inputs[0];
  DType dtype = r.g[id].dtype;
  Op op = r.g[clamp].op;
  bool small = is_integer(dtype) && byte_size(dtype) <= 2;
  if (!small || r.g[clamp].dtype != DType::F32 || (op != Op::Min && op != Op::Max))
    return kNoNode;
  Known in = either_known(r, clamp);
  if (!in) return kNoNode;
  auto limit = splat_bits(r.g, base_of(r.g, in.c));
  if (!limit) return kNoNode;
  bool is_signed = info(dtype).kind == DTypeKind::Int;
  double span = std::ldexp(1.0, 8 * byte_size(dtype));
  double low = is_signed ? -span / 2 : 0, high = low + span - 1;
  double value = scalar_value(DType::F32, *limit);
  bool beyond = op == Op::Min ? value >= high : value <= low;
  if (!beyond) return kNoNode;
  r.absorb(clamp);
  return cast(r.g, in.x, dtype);
}

} // namespace svod::rewrite
