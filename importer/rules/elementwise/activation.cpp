// Scalar functions of one tensor. Those that are one op of ours share a rule; the others
// are their formula. NaN goes through as in the reference, where a comparison
// with NaN is false.
#include "compiler/support/check.h"
#include "importer/formula/formula.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

// The number 1 when the attribute is left out; of a length-one tensor, its element.
Expr bound(NodeImport& node, size_t i) {
  const Expr value = wide(node, i);
  require(node, element_count(value.shape()) == 1, "a bound of Clip must be a scalar");
  require(node, node.dtype(i) == node.dtype(0), "the bounds of Clip have another type");
  return reshape(value, {});
}

void require_float(NodeImport& node) {
  require(node, is_float(node.dtype(0)), "input 0 must hold floating point numbers");
}

} // namespace

void import_unary(NodeImport& node, Op op) {
  const DType dtype = node.dtype(0);
  if (op == Op::Not)
    require(node, dtype == DType::Bool, "input 0 must be boolean");
  else if (op == Op::BitNot)
    require(node, is_integer(dtype), "input 0 must hold integers");
  else if (op == Op::Abs || op == Op::Neg || op == Op::Sign)
    require(node, dtype != DType::Bool, "input 0 must hold numbers");
  else
    require_float(node);
  // What jumps sees values as they are stored.
  constexpr Op kJumps[] = {Op::IsNan, Op::Floor, Op::Ceil, Op::Round, Op::Sign};
  if (std::ranges::find(kJumps, op) != std::end(kJumps))
    give(node, 0, apply(op, operand(node, 0)));
  else
    finish(node, apply(op, wide(node, 0)));
}

// Erf is defined on integers too, where the result is truncated.
void import_erf(NodeImport& node) {
  const Expr x = operand(node, 0);
  finish(node, erf(is_float(x.dtype()) ? x : convert(x, DType::F32)));
}

void import_is_inf(NodeImport& node) {
  require_float(node);
  const Expr x = operand(node, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  Expr found{&node.g, constant(node.g, DType::Bool, x.shape(), 0)};
  if (node.get_int("detect_positive")) found = either(found, equal(x, infinity));
  if (node.get_int("detect_negative")) found = either(found, equal(x, -infinity));
  give(node, 0, found);
}

void import_relu(NodeImport& node) { finish(node, maximum(wide(node, 0), 0)); }

void import_leaky_relu(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, select(less(x, 0), x * node.get_float("alpha"), x));
}

// Before opset 7 a slope of several elements belongs to the channels, axis 1.
void import_prelu(NodeImport& node) {
  const Expr x = wide(node, 0);
  Expr slope = wide(node, 1);
  if (node.opset < 7 && element_count(slope.shape()) > 1 && x.rank() > 1)
    slope = along(slope, 1, x.rank());
  require_broadcast(node, slope.shape(), x.shape());
  require(node, slope.dtype() == x.dtype(), "the slope has another type than the input");
  finish(node, select(less(x, 0), x * slope, x));
}

void import_elu(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, select(less(x, 0), node.get_float("alpha") * (exp(x) - 1), x));
}

void import_selu(NodeImport& node) {
  const Expr x = wide(node, 0);
  const double alpha = node.get_float("alpha"), gamma = node.get_float("gamma");
  finish(node, gamma * select(less(0, x), x, alpha * exp(x) - alpha));
}

void import_celu(NodeImport& node) {
  const Expr x = wide(node, 0);
  const double alpha = node.get_float("alpha");
  finish(node, maximum(x, 0) + minimum(alpha * (exp(x / alpha) - 1), 0));
}

void import_thresholded_relu(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, select(less(node.get_float("alpha"), x), x, like(x, 0)));
}

void import_hard_sigmoid(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, clamp(node.get_float("alpha") * x + node.get_float("beta"), 0, 1));
}

void import_hard_swish(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, x * clamp(x * (1.0 / 6) + 0.5, 0, 1));
}

void import_softplus(NodeImport& node) { finish(node, softplus(wide(node, 0))); }

void import_softsign(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, x / (1 + absolute(x)));
}

void import_mish(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, x * tanh(softplus(x)));
}

void import_gelu(NodeImport& node) {
  const std::string approximate = node.get_string("approximate");
  require(node, approximate == "none" || approximate == "tanh",
          "approximate must be 'none' or 'tanh'");
  const Expr x = wide(node, 0);
  finish(node, approximate == "tanh" ? gelu_tanh(x) : gelu(x));
}

void import_swish(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, x * sigmoid(node.get_float("alpha") * x));
}

// The attributes are floats for integers too; the result loses its fraction.
void import_shrink(NodeImport& node) {
  Expr x = wide(node, 0);
  if (!is_float(x.dtype())) x = convert(x, DType::F64);
  const double lambd = node.get_float("lambd"), bias = node.get_float("bias");
  const Expr below = less(x, like(x, -lambd)), above = less(like(x, lambd), x);
  finish(node, select(below, x + bias, select(above, x - bias, like(x, 0))));
}

// Bounds are attributes before opset 11. Where the lower one is above the upper one, the
// upper one wins.
void import_clip_attributes(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, clamp(x, node.get_float("min"), node.get_float("max")));
}

void import_clip(NodeImport& node) {
  Expr x = wide(node, 0);
  if (node.has_input(1)) x = maximum(x, bound(node, 1));
  if (node.has_input(2)) x = minimum(x, bound(node, 2));
  finish(node, x);
}

} // namespace svod::importer
