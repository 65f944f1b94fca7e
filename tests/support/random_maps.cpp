// Reductions, maps, and what models make of them. A map is drawn where its operands stay
// clear of its jumps and poles.
#include "tests/support/random_contraction.h"
#include "tests/support/random_drawer.h"

#include "compiler/ir/build.h"
#include "compiler/ir/shape_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace svod::test {

bool Drawer::draw_reduce(Op op, NodeId x) {
  if (shape(x).empty() || g()[x].dtype == DType::Bool) return false;
  Value v = value(x);
  v.plain = false;
  int64_t axis = draw_axis(x), count = shape(x)[axis];
  Node node{op, {}, {}, {axis}, {x}};
  if (op == Op::ArgMin || op == Op::ArgMax) {
    if (!v.exact) return false;
    node.payload.push_back(random_.below(2));
    return finish(std::move(node), {8, 0, true, false});
  }
  if (is_reduce(op) && random_.chance(50)) { // more axes
    node.payload.clear();
    count = 1;
    for (size_t i = 0; i < shape(x).size(); ++i)
      if (random_.chance(50)) {
        node.payload.push_back(static_cast<int64_t>(i));
        count *= shape(x)[i];
      }
  }
  if (op == Op::ReduceSum || op == Op::ScanSum) v.bound *= static_cast<double>(count);
  if (op == Op::ReduceProd || op == Op::ScanProd) {
    v.bound = std::pow(std::max(1.0, v.bound), static_cast<double>(count));
    v.fraction *= static_cast<int>(count);
  }
  return finish(std::move(node), v);
}

bool Drawer::allows_bool(Op op) {
  switch (op) {
  case Op::Not:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Equal:
  case Op::Less:
  case Op::LessEqual:
  case Op::Min:
  case Op::Max:
    return true;
  default:
    return false;
  }
}

bool Drawer::draw_map(Op op, NodeId x) {
  DType dtype = g()[x].dtype;
  if (op == Op::Select) return draw_select(x);
  if (op == Op::MulAdd) return draw_mul_add(x);
  if (!map_is_defined(op, dtype)) return false;
  if (dtype == DType::Bool && !allows_bool(op)) return false;
  // Outside bool, not is the lowest bit's; nothing makes such nodes.
  if (op == Op::Not && dtype != DType::Bool) return false;
  Node node{op, {}, {}, {}, {x}};
  if (info(op).arity == 2) {
    node.inputs.push_back(draw_operand(op, x));
    if (random_.chance(25)) std::swap(node.inputs[0], node.inputs[1]);
  }
  Value a = value(node.inputs[0]);
  Value b = value(node.inputs.back());
  Value result{1, 0, a.exact && b.exact, false};
  if (!is_float(dtype)) {
    result.bound = std::ldexp(1.0, 8 * byte_size(dtype));
    return finish(std::move(node), result);
  }
  if (!float_result(op, a, b, result)) return false;
  return finish(std::move(node), result);
}

NodeId Drawer::draw_operand(Op op, NodeId x) {
  DType dtype = g()[x].dtype;
  Value info = scalar_value_info(dtype);
  if (random_.chance(35)) {
    if (op == Op::Pow && is_float(dtype)) {
      static constexpr double kPowers[] = {2, 3, 0.5, -0.5, -1, 1, 0};
      return add_constant(dtype, shape(x), kPowers[random_.below(7)], info);
    }
    if (op == Op::Div && is_float(dtype)) {
      static constexpr double kDivisors[] = {4, -0.5, 3, -7};
      return add_constant(dtype, shape(x), kDivisors[random_.below(4)], info);
    }
    if (op == Op::Min || op == Op::Max) {
      double limit = op == Op::Min ? HUGE_VAL : -HUGE_VAL;
      return add_constant(dtype, shape(x), limit, {0, 0, true, is_float(dtype)});
    }
    if (op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Mul)
      return add_constant(dtype, shape(x), 0, {0, 0, true, false});
  }
  if ((op == Op::And || op == Op::Or) && random_.chance(30)) {
    auto bits =
        dtype == DType::Bool ? 1 : static_cast<int64_t>(scalar_bits_int(dtype, -1));
    return record(g().intern({Op::Constant, dtype, shape(x), {bits}, {}}), info);
  }
  return random_.chance(10) ? x : draw_matching(x, dtype);
}

bool Drawer::float_result(Op op, const Value& a, const Value& b, Value& out) {
  bool exact = a.exact && b.exact;
  switch (op) {
  case Op::Neg:
  case Op::Abs:
    out = a;
    out.plain = false;
    return true;
  case Op::Add:
  case Op::Sub:
    out.bound = a.bound + b.bound;
    out.fraction = std::max(a.fraction, b.fraction);
    return true;
  case Op::Mul:
    out.bound = std::max(1.0, a.bound) * std::max(1.0, b.bound);
    out.fraction = a.fraction + b.fraction;
    return true;
  case Op::Min:
  case Op::Max:
    out.bound = std::max(a.bound, b.bound);
    out.fraction = std::max(a.fraction, b.fraction);
    return true;
  case Op::Sign:
  case Op::Equal:
  case Op::Less:
  case Op::LessEqual:
  case Op::IsNan:
    return exact;
  case Op::Floor:
  case Op::Ceil:
  case Op::Round:
  case Op::Trunc:
    out.bound = a.bound + 1;
    return exact;
  case Op::Exp:
  case Op::Sinh:
  case Op::Cosh:
    out = {std::exp(std::min(a.bound, 20.0)), 0, false, false};
    return a.bound <= 6;
  case Op::Sin:
  case Op::Cos:
  case Op::Tanh:
  case Op::Erf:
  case Op::Gelu:
  case Op::Sigmoid:
  case Op::Atan:
  case Op::Asinh:
    out = {std::max(2.0, a.bound), 0, false, false};
    return a.bound <= 16;
  default:
    // Poles, jumps or NaN: only views follow. At a pole the sign of a zero matters.
    out = {kLargest, 0, false, true};
    return exact && a.plain && b.plain;
  }
}

bool Drawer::draw_select(NodeId x) {
  NodeId condition = draw_matching(x, DType::Bool),
         other = draw_matching(x, g()[x].dtype);
  if (random_.chance(20) && g()[x].dtype == DType::Bool) {
    bool yes = random_.chance(50);
    x = add_constant(DType::Bool, shape(x), yes, {1, 0, true, false});
    other = add_constant(DType::Bool, shape(x), !yes, {1, 0, true, false});
  }
  if (random_.chance(20) && finish({Op::Not, {}, {}, {}, {condition}}, value(condition)))
    condition = pool_.back();
  Value a = value(x), b = value(other);
  return finish({Op::Select, {}, {}, {}, {condition, x, other}},
                {std::max(a.bound, b.bound), std::max(a.fraction, b.fraction),
                 a.exact && b.exact && value(condition).exact, false});
}

bool Drawer::draw_mul_add(NodeId x) {
  const DType dtype = g()[x].dtype;
  if (!is_float(dtype)) return false;
  const NodeId by = draw_matching(x, dtype), more = draw_matching(x, dtype);
  const Value a = value(x), b = value(by), c = value(more);
  return finish({Op::MulAdd, {}, {}, {}, {x, by, more}},
                {std::max(1.0, a.bound) * std::max(1.0, b.bound) + c.bound,
                 std::max(a.fraction + b.fraction, c.fraction),
                 a.exact && b.exact && c.exact, false});
}

bool Drawer::draw_softmax(NodeId x) {
  int64_t last = static_cast<int64_t>(shape(x).size()) - 1;
  if (last < 0 || !is_float(g()[x].dtype) || value(x).bound > 16) return false;
  size_t first = g().size();
  Shape full = shape(x);
  NodeId most = reduce(g(), Op::ReduceMax, x, {last});
  NodeId e = map(g(), Op::Exp, {map(g(), Op::Sub, {x, expand(g(), most, full)})});
  NodeId sum = expand(g(), reduce(g(), Op::ReduceSum, e, {last}), full);
  return finish_idiom(first, map(g(), Op::Div, {e, sum}), {16, 0, false, false});
}

bool Drawer::draw_gelu(NodeId x) {
  const DType dtype = g()[x].dtype;
  const Value v = value(x);
  if (!is_float(dtype) || v.bound > 16) return false;
  const size_t first = g().size();
  auto number = [&](double c) { return constant(g(), dtype, shape(x), c); };
  NodeId inside = map(g(), Op::Mul, {x, number(std::numbers::sqrt2 / 2)});
  NodeId more = map(g(), Op::Add, {map(g(), Op::Erf, {inside}), number(1)});
  NodeId factors[] = {x, number(0.5), more};
  std::swap(factors[2], factors[random_.below(3)]);
  NodeId inner = map(g(), Op::Mul, {factors[0], factors[1]});
  NodeId gelu = map(g(), Op::Mul, {inner, factors[2]});
  return finish_idiom(first, gelu, {v.bound, 0, false, false});
}

bool Drawer::draw_swish(NodeId x) {
  const Value v = value(x);
  if (!is_float(g()[x].dtype) || v.bound > 16) return false;
  const size_t first = g().size();
  NodeId inside = x;
  if (random_.chance(50))
    inside = map(g(), Op::Mul, {x, constant(g(), g()[x].dtype, shape(x), 1.5)});
  const NodeId gate = map(g(), Op::Sigmoid, {inside});
  return finish_idiom(first, map(g(), Op::Mul, {x, gate}), {v.bound, 0, false, false});
}

bool Drawer::draw_hard_swish(NodeId x) {
  const DType dtype = g()[x].dtype;
  const Value v = value(x);
  if (!is_float(dtype) || v.bound > 16) return false;
  const size_t first = g().size();
  auto number = [&](double c) { return constant(g(), dtype, shape(x), c); };
  NodeId gate = map(g(), Op::Max, {map(g(), Op::Add, {x, number(3)}), number(0)});
  gate = map(g(), Op::Min, {gate, number(6)});
  const NodeId swish = random_.chance(50)
                           ? map(g(), Op::Mul, {x, map(g(), Op::Div, {gate, number(6)})})
                           : map(g(), Op::Div, {map(g(), Op::Mul, {x, gate}), number(6)});
  return finish_idiom(first, swish, {v.bound, 0, false, false});
}

bool Drawer::draw_clamped_cast(NodeId x) {
  if (g()[x].dtype != DType::F32 || !value(x).exact) return false;
  const size_t first = g().size();
  const NodeId most = constant(g(), DType::F32, shape(x), 255);
  const NodeId bytes = cast(g(), map(g(), Op::Min, {x, most}), DType::U8);
  return finish_idiom(first, bytes, {255, 0, true, false});
}

bool Drawer::finish_idiom(size_t first, NodeId result, Value v) {
  double bits = std::log2(std::max(1.0, v.bound)) + v.fraction + 1;
  v.precision = mantissa_bits(g()[result].dtype);
  if (bits > v.precision) v.exact = false;
  Value inner = v;
  inner.ends = true; // in the pool of none, but it has a value
  values_.resize(std::max<size_t>(values_.size(), g().size()));
  for (size_t id = first; id < g().size(); ++id)
    if (g()[id].op != Op::Input) values_[id] = inner;
  if (result < first) return false;
  record(result, v);
  return true;
}

bool Drawer::draw_idiom() {
  if (NodeId x = draw_value(); random_.chance(30) && !value(x).ends) {
    if (random_.chance(60)) return draw_softmax(x);
    if (random_.chance(25)) return draw_clamped_cast(x);
    if (random_.chance(50)) return draw_gelu(x);
    return random_.chance(70) ? draw_swish(x) : draw_hard_swish(x);
  }
  static constexpr DType kFloats[] = {DType::F32, DType::F32, DType::F32, DType::F32,
                                      DType::F64, DType::F16, DType::BF16};
  DType dtype = kFloats[random_.below(7)];
  size_t first = g().size();
  auto input = [&](const Shape& shape) {
    return add_input_tensor(random_tensor(dtype, shape), scalar_value_info(dtype));
  };
  Contracted y = random_contraction({g(), random_, options_.large, dtype, input});
  return finish_idiom(first, y.node, {y.bound, y.fraction, y.exact, false});
}

} // namespace svod::test
