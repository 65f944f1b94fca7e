// Element by element on several tensors, with broadcasting. Since opset 7 that is
// numpy's; before, attributes `broadcast` and `axis` say where the second operand lies in
// the first.
#include "compiler/support/check.h"
#include "importer/formula/formula.h"
#include "importer/text/strings.h"

#include <algorithm>

namespace svod::importer {

namespace {

enum class Operands : uint8_t { Numbers, Integers, Booleans, Any };

struct Pair {
  Expr a, b;
};

// Opset < 7: b's shape is a run of a's axes, the last ones unless `axis` says where it
// starts.
Expr place_in(NodeImport& node, Expr b, const Shape& a) {
  if (b.shape() == a || element_count(b.shape()) == 1)
    return b.shape() == a ? b : reshape(b, {});
  if (!node.get_int("broadcast"))
    node.invalid("the operands' shapes differ and attribute 'broadcast' is not set");
  const int64_t rank = static_cast<int64_t>(a.size());
  require(node, b.rank() <= rank, "the second operand has more axes than the first");
  const int64_t start =
      node.has("axis") ? node.axis(node.get_int("axis"), rank) : rank - b.rank();
  require(node, start + b.rank() <= rank, "attribute 'axis' is too large");
  Shape shape(rank, 1);
  std::ranges::copy(Shape(b.shape()), shape.begin() + start);
  require_broadcast(node, shape, a);
  return reshape(b, shape);
}

Pair operands(NodeImport& node, bool widened) {
  const Expr a = widened ? wide(node, 0) : operand(node, 0);
  Expr b = widened ? wide(node, 1) : operand(node, 1);
  if (node.opset < 7 && node.model_node.domain.empty())
    b = place_in(node, b, Shape(a.shape()));
  broadcast_shape(node, {a.shape(), b.shape()});
  return {a, b};
}

void require_same_type(NodeImport& node) {
  for (size_t i = 1; i < node.input_count(); ++i)
    require(node, node.dtype(i) == node.dtype(0), "the operands' element types differ");
}

// Operands of one type for Min, Max, Sum and Mean, which take any number of them.
std::vector<Expr> all_operands(NodeImport& node) {
  require(node, node.input_count() > 0, "an operator of no inputs");
  require_same_type(node);
  std::vector<Expr> values;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < node.input_count(); ++i) {
    values.push_back(wide(node, i));
    shapes.push_back(values.back().shape());
  }
  broadcast_shape(node, shapes);
  return values;
}

Expr fold(Op op, const std::vector<Expr>& values) {
  Expr result = values[0];
  for (size_t i = 1; i < values.size(); ++i) result = apply(op, result, values[i]);
  return result;
}

} // namespace

namespace {

// `swapped`: of the second operand and the first.
void import_binary(NodeImport& node, Op op, Operands of, bool swapped = false) {
  require_same_type(node);
  // Comparisons see values as they are stored.
  const bool compares = op == Op::Equal || op == Op::Less || op == Op::LessEqual;
  auto [a, b] = operands(node, !compares);
  const DType dtype = a.dtype();
  if (of == Operands::Integers)
    require(node, is_integer(dtype), "the operands must hold integers");
  if (of == Operands::Booleans)
    require(node, dtype == DType::Bool, "the operands must be boolean");
  if (of == Operands::Numbers)
    require(node, dtype != DType::Bool, "the operands must hold numbers");
  if (swapped) std::swap(a, b);
  const Expr y = apply(op, a, b);
  compares ? give(node, 0, y) : finish(node, y);
}

} // namespace

void import_arithmetic(NodeImport& node, Op op) {
  import_binary(node, op, Operands::Numbers);
}
void import_logic(NodeImport& node, Op op) {
  import_binary(node, op, Operands::Booleans);
}
void import_bitwise(NodeImport& node, Op op) {
  import_binary(node, op, Operands::Integers);
}
void import_less(NodeImport& node, Op op) { import_binary(node, op, Operands::Numbers); }
void import_greater(NodeImport& node, Op op) {
  import_binary(node, op, Operands::Numbers, true);
}
void import_equal(NodeImport& node) {
  require_same_type(node);
  if (node.dtype(0) != DType::String)
    return import_binary(node, Op::Equal, Operands::Any);
  give(node, 0, same_strings(node, operand(node, 0), operand(node, 1)));
}

// The result has the type of the base. Types that differ meet in the wider one. A small
// exponent that is known, as in x^2 of a variance, makes products and roots.
void import_pow(NodeImport& node) {
  auto [a, b] = operands(node, true);
  if (const auto bits = splat_bits(node.g, b.id); bits && is_float(a.dtype())) {
    const double exponent = scalar_value(b.dtype(), *bits);
    const Shape shape = broadcast_shape(node, {a.shape(), b.shape()});
    const NodeId power = simple_power(node.g, broadcast(a, shape).id, exponent);
    if (power != kNoNode) return finish(node, {&node.g, power});
  }
  DType dtype = a.dtype();
  if (dtype != b.dtype()) {
    if (is_float(dtype))
      b = convert(b, dtype);
    else
      dtype = is_float(b.dtype()) ? DType::F64 : DType::I64;
  }
  finish(node, apply(Op::Pow, convert(a, dtype), convert(b, dtype)));
}

void import_mod(NodeImport& node) {
  require_same_type(node);
  const auto [a, b] = operands(node, false);
  give(node, 0, apply(node.get_int("fmod") ? Op::Fmod : Op::Mod, a, b));
}

// An amount below zero or of at least the width shifts everything out; a negative number
// shifted right fills with its sign.
void import_bit_shift(NodeImport& node) {
  require_same_type(node);
  const auto [a, b] = operands(node, false);
  const std::string direction = node.get_string("direction");
  require(node, direction == "LEFT" || direction == "RIGHT",
          "direction must be LEFT or RIGHT");
  const DType dtype = a.dtype();
  require(node, is_integer(dtype), "the operands must hold integers");
  const bool is_signed = info(dtype).kind == DTypeKind::Int;
  if (!is_signed) {
    give(node, 0, apply(direction == "LEFT" ? Op::ShiftLeft : Op::ShiftRight, a, b));
    return;
  }
  constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  const int bytes = byte_size(dtype);
  const DType plain = kUnsigned[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
  const Expr amount{&node.g, bitcast(node.g, b.id, plain)};
  if (direction == "LEFT") {
    const Expr shifted =
        apply(Op::ShiftLeft, Expr{&node.g, bitcast(node.g, a.id, plain)}, amount);
    node.output(0, bitcast(node.g, shifted.id, dtype));
  } else {
    const Expr within = minimum(amount, 8 * bytes - 1);
    give(node, 0,
         apply(Op::ShiftRight, a, Expr{&node.g, bitcast(node.g, within.id, dtype)}));
  }
}

void import_sum(NodeImport& node) { finish(node, fold(Op::Add, all_operands(node))); }
void import_mean(NodeImport& node) {
  const std::vector<Expr> values = all_operands(node);
  finish(node, fold(Op::Add, values) / static_cast<double>(values.size()));
}
void import_min(NodeImport& node) { finish(node, fold(Op::Min, all_operands(node))); }
void import_max(NodeImport& node) { finish(node, fold(Op::Max, all_operands(node))); }

void import_where(NodeImport& node) {
  require(node, node.dtype(0) == DType::Bool, "the condition must be boolean");
  require(node, node.dtype(1) == node.dtype(2), "the operands' element types differ");
  broadcast_shape(node, {node.shape(0), node.shape(1), node.shape(2)});
  give(node, 0, select(operand(node, 0), operand(node, 1), operand(node, 2)));
}

} // namespace svod::importer
