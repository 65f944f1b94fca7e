// Formulas over graph nodes. An operator rule reads like its line in the specification:
//     const Expr x = wide(node, 0);
//     finish(node, x * sigmoid(x));
// Binary operators broadcast as numpy does; a number becomes a constant of the other
// side's type.
#pragma once

#include "importer/formula/rule.h"

namespace svod::importer {

struct Expr {
  Graph* g;
  NodeId id;
  DType dtype() const { return (*g)[id].dtype; }
  const Shape& shape() const { return (*g)[id].shape; }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
};

inline Expr like(Expr x, double value) {
  return {x.g, constant(*x.g, x.dtype(), x.shape(), value)};
}
inline Expr apply(Op op, Expr a) { return {a.g, map(*a.g, op, {a.id})}; }
inline Expr apply(Op op, Expr a, Expr b) {
  return {a.g, broadcast_map(*a.g, op, {a.id, b.id})};
}

inline Expr operator+(Expr a, Expr b) { return apply(Op::Add, a, b); }
inline Expr operator-(Expr a, Expr b) { return apply(Op::Sub, a, b); }
inline Expr operator*(Expr a, Expr b) { return apply(Op::Mul, a, b); }
inline Expr operator/(Expr a, Expr b) { return apply(Op::Div, a, b); }
inline Expr operator+(Expr a, double b) { return a + like(a, b); }
inline Expr operator-(Expr a, double b) { return a - like(a, b); }
inline Expr operator*(Expr a, double b) { return a * like(a, b); }
inline Expr operator/(Expr a, double b) { return a / like(a, b); }
inline Expr operator+(double a, Expr b) { return like(b, a) + b; }
inline Expr operator-(double a, Expr b) { return like(b, a) - b; }
inline Expr operator*(double a, Expr b) { return like(b, a) * b; }
inline Expr operator-(Expr a) { return apply(Op::Neg, a); }

inline Expr less(Expr a, Expr b) { return apply(Op::Less, a, b); }
inline Expr less(Expr a, double b) { return less(a, like(a, b)); }
inline Expr less(double a, Expr b) { return less(like(b, a), b); }
inline Expr equal(Expr a, Expr b) { return apply(Op::Equal, a, b); }
inline Expr equal(Expr a, double b) { return equal(a, like(a, b)); }
inline Expr either(Expr a, Expr b) { return apply(Op::Or, a, b); }
inline Expr select(Expr test, Expr yes, Expr no) {
  return {test.g, broadcast_map(*test.g, Op::Select, {test.id, yes.id, no.id})};
}
inline Expr minimum(Expr a, Expr b) { return apply(Op::Min, a, b); }
inline Expr minimum(Expr a, double b) { return minimum(a, like(a, b)); }
inline Expr maximum(Expr a, Expr b) { return apply(Op::Max, a, b); }
inline Expr maximum(Expr a, double b) { return maximum(a, like(a, b)); }
inline Expr power(Expr a, double b) { return apply(Op::Pow, a, like(a, b)); }
inline Expr absolute(Expr a) { return apply(Op::Abs, a); }
inline Expr exp(Expr a) { return apply(Op::Exp, a); }
inline Expr log(Expr a) { return apply(Op::Log, a); }
inline Expr log1p(Expr a) { return apply(Op::Log1p, a); }
inline Expr sqrt(Expr a) { return apply(Op::Sqrt, a); }
inline Expr reciprocal(Expr a) { return apply(Op::Reciprocal, a); }
inline Expr tanh(Expr a) { return apply(Op::Tanh, a); }
inline Expr erf(Expr a) { return apply(Op::Erf, a); }
inline Expr sigmoid(Expr a) { return apply(Op::Sigmoid, a); }
inline Expr convert(Expr a, DType dtype) { return {a.g, cast(*a.g, a.id, dtype)}; }

inline Expr reshape(Expr a, Shape shape) {
  return {a.g, reshape(*a.g, a.id, std::move(shape))};
}
inline Expr permute(Expr a, std::vector<int64_t> perm) {
  return {a.g, permute(*a.g, a.id, std::move(perm))};
}

// Reductions keep the reduced axes with extent 1.
inline Expr reduce(Op op, Expr a, std::vector<int64_t> axes) {
  return {a.g, reduce(*a.g, op, a.id, std::move(axes))};
}
inline Expr sum(Expr a, std::vector<int64_t> axes) {
  return reduce(Op::ReduceSum, a, std::move(axes));
}
Expr mean(Expr a, const std::vector<int64_t>& axes);
// The axes first .. rank - 1.
std::vector<int64_t> axes_from(int64_t first, int64_t rank);

// The numbers 0 .. n-1 along one axis.
inline Expr counter(Graph& g, DType dtype, Shape shape, int64_t axis) {
  return {&g, iota(g, dtype, std::move(shape), axis)};
}

// Operands. `wide` computes half precision in f32, so that a formula of several steps
// rounds once, at `finish`, which converts to the dtype of input 0.
inline Expr operand(NodeImport& node, size_t i) { return {&node.g, node.input(i)}; }
Expr widen(Expr a);
inline Expr wide(NodeImport& node, size_t i) { return widen(operand(node, i)); }
void finish(NodeImport& node, Expr result, size_t index = 0);

// The shape that all of `shapes` broadcast to; invalid() when they do not.
Shape broadcast_shape(const NodeImport& node, const std::vector<Shape>& shapes);
// invalid() unless `from` broadcasts to exactly `to`.
void require_broadcast(const NodeImport& node, const Shape& from, const Shape& to);
void require(const NodeImport& node, bool condition, const char* otherwise);
std::string shape_text(const Shape& shape);

// [1, C, 1, ..] of rank `rank` from a vector of C: parameters per channel.
Expr per_channel(Expr vector, int64_t rank);

} // namespace svod::importer
