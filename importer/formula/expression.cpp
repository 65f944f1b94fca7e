// What the formulas of operator rules share: half precision widened, shapes checked
// before a node is built (the builder takes a bad shape for a bug of ours).
#include "importer/formula/expression.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace svod::importer {

Expr mean(Expr a, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= a.shape()[axis];
  return sum(a, axes) / static_cast<double>(count);
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(std::max<int64_t>(rank - first, 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The f32 value that `a` was rounded from, also through a view.
static std::optional<Expr> before_rounding(Expr a) {
  const Node& node = (*a.g)[a.id];
  if (node.inputs.size() != 1) return std::nullopt;
  const Expr input{a.g, node.inputs[0]};
  if (node.op == Op::Cast && input.dtype() == DType::F32) return input;
  if (node.op != Op::Reshape && node.op != Op::Permute) return std::nullopt;
  const std::optional<Expr> wide = before_rounding(input);
  if (!wide) return std::nullopt;
  return node.op == Op::Reshape ? reshape(*wide, node.shape)
                                : permute(*wide, node.payload);
}

// Half precision holds values between operators only where a model's results or a view of
// several tensors ask for it: from one formula to the next the value stays in f32. It is
// as exact as computing all of the model in f32, where rounding each of 26 layers of a
// network cost 2e-3 of its answer.
Expr widen(Expr a) {
  if (!is_narrow_float(a.dtype())) return a;
  if (a.g->keeps_halves()) return convert(a, DType::F32);
  const std::optional<Expr> wide = before_rounding(a);
  return wide ? *wide : convert(a, DType::F32);
}

void finish(NodeImport& node, Expr result, size_t index) {
  node.output(index, convert(result, node.dtype(0)).id);
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

Shape broadcast_shape(const NodeImport& node, const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t lead = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = result[lead + i];
      if (extent == 1) extent = shape[i];
      if (shape[i] != extent && shape[i] != 1)
        node.invalid("shape " + shape_text(shape) + " does not broadcast with " +
                     shape_text(result));
    }
  }
  return result;
}

void require_broadcast(const NodeImport& node, const Shape& from, const Shape& to) {
  if (broadcast_shape(node, {from, to}) != to)
    node.invalid("shape " + shape_text(from) + " does not broadcast to " +
                 shape_text(to));
}

void require(const NodeImport& node, bool condition, const char* otherwise) {
  if (!condition) node.invalid(otherwise);
}

Expr per_channel(Expr vector, int64_t rank) {
  Shape shape(rank, 1);
  shape[1] = element_count(vector.shape());
  return reshape(vector, shape);
}

} // namespace svod::importer
