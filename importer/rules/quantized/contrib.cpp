// Quantised operators of com.microsoft beyond those that only dequantise, compute and
// quantise again: integer products whose result is a float, with inputs that may be
// quantised on the fly. Products are taken in int32 of the centred values, as in
// quantize.cpp.
#include "importer/bounded/standardize.h"
#include "importer/formula/formula.h"
#include "importer/formula/quantization.h"

#include <algorithm>

namespace svod::importer {

namespace {

// One number, or one per column of the matrix on the right.
std::optional<Expr> per_column(NodeImport& node, size_t i, const Shape& b) {
  if (!node.has_input(i)) return std::nullopt;
  const Expr x = operand(node, i);
  if (element_count(x.shape()) == 1) return reshape(x, {});
  // Batches of matrices have a row of parameters each: [batch.., 1, N].
  if (x.rank() == 1) {
    require(node, !b.empty() && extent(x, 0) == b.back(),
            "a scale or zero point does not fit the columns of B");
    return x;
  }
  require_broadcast(node, x.shape(), b);
  return x;
}

Expr with_bias(NodeImport& node, Expr y, size_t i) {
  if (!node.has_input(i)) return y;
  require_broadcast(node, node.shape(i), y.shape());
  return y + convert(wide(node, i), y.dtype());
}

Expr float_product(NodeImport& node, Expr a, Expr b, Expr a_scale, Expr b_scale) {
  const Expr product = convert(checked_matmul(node, a, b), DType::F32);
  const Expr scale = convert(a_scale, DType::F32) * convert(b_scale, DType::F32);
  require_broadcast(node, scale.shape(), product.shape());
  return product * scale;
}

Expr transposed_if(NodeImport& node, Expr x, const char* attribute) {
  require(node, x.rank() == 2, "the operands must be matrices");
  return node.get_int(attribute) != 0 ? permute(x, {1, 0}) : x;
}

// Rows of a quantised table as floats.
Expr rows_of(NodeImport& node, size_t table, size_t scale, Expr index) {
  const Expr rows = operand(node, table);
  require(node, rows.rank() == 2, "an embedding must be a matrix");
  Shape shape = index.shape();
  const Expr taken = take(rows, 0, reshape(index, {element_count(shape)}));
  shape.push_back(extent(rows, 1));
  const auto one = [&](size_t i) {
    require(node, element_count(node.shape(i)) == 1,
            "scales and zero points must be one number each");
    return reshape(operand(node, i), {});
  };
  return dequantize(reshape(taken, shape), one(scale), one(scale + 5));
}

} // namespace

// A, B, their scales, their zero points, bias.
void import_matmul_integer_to_float(NodeImport& node) {
  const Expr a = operand(node, 0), b = operand(node, 1);
  std::optional<Expr> a_zero;
  if (node.has_input(4)) {
    require(node, element_count(node.shape(4)) == 1, "a_zero_point must be one number");
    a_zero = reshape(operand(node, 4), {});
  }
  require(node, element_count(node.shape(2)) == 1, "a_scale must be one number");
  const Expr a_scale = reshape(operand(node, 2), {});
  node.input(3);
  const Expr y = float_product(node, centered(a, a_zero),
                               centered(b, per_column(node, 5, b.shape())), a_scale,
                               *per_column(node, 3, b.shape()));
  give(node, 0, convert(with_bias(node, y, 6), node.dtype(3)));
}

// A is quantised at run time; B, its scale and zero point, bias.
void import_dynamic_quantize_matmul(NodeImport& node) {
  const Expr x = wide(node, 0), b = operand(node, 1);
  const Quantized a = quantized_whole(x);
  node.input(2);
  const Expr y = float_product(node, centered(a.values, a.zero),
                               centered(b, per_column(node, 3, b.shape())), a.scale,
                               *per_column(node, 2, b.shape()));
  finish(node, with_bias(node, y, 4));
}

void import_matmul_integer16(NodeImport& node) {
  give(node, 0,
       checked_matmul(node, convert(operand(node, 0), DType::I32),
                      convert(operand(node, 1), DType::I32)));
}

// A with scale and zero point, B with its own, C in units of both scales, and, for a
// quantised result, its scale and zero point.
void import_qgemm(NodeImport& node) {
  const Expr a = operand(node, 0), b = operand(node, 3);
  const Expr a_scale = quantization_parameter(node, operand(node, 1), a.shape(), 0);
  const Expr a_zero = quantization_parameter(node, operand(node, 2), a.shape(), 0);
  const Expr left = transposed_if(node, centered(a, a_zero), "transA");
  Expr right = transposed_if(node, convert(b, DType::I32), "transB");
  if (node.has_input(5))
    right = right - convert(*per_column(node, 5, right.shape()), DType::I32);
  Expr y = checked_matmul(node, left, right);
  if (node.has_input(6)) {
    const Expr c = operand(node, 6);
    require(node, c.dtype() == DType::I32, "C must be int32");
    require_broadcast(node, c.shape(), y.shape());
    y = y + c;
  }
  node.input(4);
  const Expr scale = convert(a_scale, DType::F32) *
                     convert(*per_column(node, 4, right.shape()), DType::F32) *
                     node.get_float("alpha");
  require_broadcast(node, scale.shape(), y.shape());
  const Expr result = convert(y, DType::F32) * scale;
  if (!node.has_input(7)) return give(node, 0, result);
  give_quantized(node, result, 7, DType::U8);
}

void import_qlinear_reduce_mean(NodeImport& node) {
  const Expr x = dequantized_input(node, 0);
  std::vector<int64_t> axes;
  for (int64_t axis : node.get_ints("axes")) axes.push_back(node.axis(axis, x.rank()));
  std::ranges::sort(axes);
  require(node, std::ranges::adjacent_find(axes) == axes.end(), "an axis is given twice");
  Expr y = mean(x, axes.empty() ? axes_from(0, x.rank()) : axes);
  if (node.get_int("keepdims") == 0) {
    Shape kept;
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      if (!axes.empty() && !std::ranges::binary_search(axes, axis))
        kept.push_back(extent(x, axis));
    y = reshape(y, kept);
  }
  give_quantized(node, y, 3, node.dtype(0));
}

void import_qlinear_where(NodeImport& node) {
  const Expr test = operand(node, 0);
  require(node, test.dtype() == DType::Bool, "the condition must be boolean");
  const Expr x = dequantized_input(node, 1), y = dequantized_input(node, 4);
  broadcast_shape(node, {test.shape(), x.shape(), y.shape()});
  give_quantized(node, select(test, x, y), 7, node.dtype(1));
}

// Inputs 0-7: ids, segments, three tables, gamma, beta, mask; then a scale and a zero
// point for each of the tables, gamma and beta.
void import_qembed_layer_norm(NodeImport& node) {
  const Expr words = operand(node, 0);
  require(node, words.rank() == 2, "the ids must be [batch, length]");
  const int64_t batch = extent(words, 0), length = extent(words, 1);
  const Expr positions = counter(node.g, DType::I64, {1, length}, 1);
  Expr x = rows_of(node, 2, 8, words);
  const Expr places = rows_of(node, 3, 9, positions);
  require_broadcast(node, places.shape(), x.shape());
  x = x + places;
  if (node.has_input(1) && node.has_input(4)) {
    const Expr segments = rows_of(node, 4, 10, operand(node, 1));
    require_broadcast(node, segments.shape(), x.shape());
    x = x + segments;
  }
  const auto row = [&](size_t i, size_t scale) {
    const Expr y = dequantize(operand(node, i), reshape(operand(node, scale), {}),
                              reshape(operand(node, scale + 5), {}));
    require_broadcast(node, y.shape(), x.shape());
    return y;
  };
  for (size_t i : {11, 12, 16, 17})
    require(node, element_count(node.shape(i)) == 1,
            "scales and zero points must be one number each");
  give(node, 0,
       standardize(x, {2}, node.get_float("epsilon")).value * row(5, 11) + row(6, 12));
  if (!node.wants_output(1)) return;
  Expr mask = number(node.g, DType::I32, 0);
  if (node.has_input(7)) mask = sum(convert(operand(node, 7), DType::I32), {1});
  give(node, 1, broadcast(reshape(mask, {element_count(mask.shape())}), {batch}));
}

} // namespace svod::importer
