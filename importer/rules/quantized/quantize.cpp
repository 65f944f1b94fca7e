// Quantised operators. Conversions are exact by the specification; integer products are
// taken in int32 of the centred values, so their kernels see plain contractions. The
// QLinear operators of com.microsoft are defined as dequantise, compute, quantise.
#include "importer/formula/convolution.h"
#include "importer/formula/formula.h"
#include "importer/formula/quantization.h"

namespace svod::importer {
namespace {

std::optional<Expr> optional_operand(NodeImport& node, size_t i) {
  if (!node.has_input(i)) return std::nullopt;
  return operand(node, i);
}

DType quantized_type(NodeImport& node, int64_t onnx_type) {
  std::optional<DType> dtype = dtype_from_onnx(static_cast<int>(onnx_type));
  const bool fits =
      dtype && (is_integer(*dtype) ? info(*dtype).bits <= 16
                                   : is_float(*dtype) && byte_size(*dtype) == 1);
  if (!fits || *dtype == DType::F8E8M0)
    node.unsupported("quantisation to " + onnx_type_name(static_cast<int>(onnx_type)));
  return *dtype;
}

struct Layout {
  int64_t axis = 1, block = 0;
};

Layout layout_attributes(NodeImport& node) {
  bool vendor = !node.model_node.domain.empty();
  Layout layout;
  if (vendor || node.opset >= 13) layout.axis = node.get_int("axis");
  if (!vendor && node.opset >= 21) layout.block = node.get_int("block_size");
  if (layout.block < 0) node.invalid("block_size is negative");
  return layout;
}

std::optional<Expr> zero_point_of(NodeImport& node, size_t i, const Shape& shape,
                                  Layout layout) {
  std::optional<Expr> zero = optional_operand(node, i);
  if (!zero) return zero;
  return quantization_parameter(node, *zero, shape, layout.axis, layout.block);
}

// A zero point or scale of a matrix: one number, one per row (axis -2) or per column
// (-1).
Expr matrix_parameter(NodeImport& node, Expr parameter, Expr matrix, int64_t axis) {
  if (element_count(parameter.shape()) == 1) return reshape(parameter, {});
  if (parameter.rank() == 1 && matrix.rank() >= 2)
    parameter = along(parameter, matrix.rank() + axis, matrix.rank());
  require_broadcast(node, parameter.shape(), matrix.shape());
  return parameter;
}

Expr integer_product(NodeImport& node, Expr a, std::optional<Expr> a_zero, Expr b,
                     std::optional<Expr> b_zero) {
  if (a_zero) a_zero = matrix_parameter(node, *a_zero, a, -2);
  if (b_zero) b_zero = matrix_parameter(node, *b_zero, b, -1);
  return checked_matmul(node, centered(a, a_zero), centered(b, b_zero));
}

// The scale and zero point of a convolution's weights: one number, or one per output
// channel.
std::optional<Expr> weight_parameter(NodeImport& node, size_t i, Expr w) {
  if (!node.has_input(i)) return std::nullopt;
  return quantization_parameter(node, operand(node, i), w.shape(), 0);
}

} // namespace

void import_quantize_linear(NodeImport& node) {
  Expr x = operand(node, 0), scale = operand(node, 1);
  bool vendor = !node.model_node.domain.empty();
  Layout layout = layout_attributes(node);
  DType to = DType::U8, precision = scale.dtype();
  if (node.has("output_dtype") && node.get_int("output_dtype") != 0)
    to = quantized_type(node, node.get_int("output_dtype"));
  if (node.has("precision") && node.get_int("precision") != 0) {
    std::optional<DType> asked =
        dtype_from_onnx(static_cast<int>(node.get_int("precision")));
    if (!asked || !is_float(*asked)) node.unsupported("this precision of the division");
    precision = *asked;
  }
  if (node.has_input(2)) to = quantized_type(node, info(node.dtype(2)).onnx);
  require(node, vendor || is_float(precision), "y_scale must be a float");
  if (byte_size(precision) == 1) precision = DType::F32; // a power of two as scale
  Expr divisor =
      quantization_parameter(node, scale, x.shape(), layout.axis, layout.block);
  Expr quotient = convert(x, precision) / convert(divisor, precision);
  const bool saturate = !node.has("saturate") || node.get_int("saturate") != 0;
  give(node, 0,
       requantize(quotient, zero_point_of(node, 2, x.shape(), layout), to, saturate));
}

void import_dequantize_linear(NodeImport& node) {
  Expr x = operand(node, 0), scale = operand(node, 1);
  Layout layout = layout_attributes(node);
  DType to = scale.dtype();
  if (node.has("output_dtype") && node.get_int("output_dtype") != 0) {
    std::optional<DType> asked =
        dtype_from_onnx(static_cast<int>(node.get_int("output_dtype")));
    if (!asked || !is_float(*asked)) node.unsupported("this output_dtype");
    to = *asked;
  }
  scale = quantization_parameter(node, scale, x.shape(), layout.axis, layout.block);
  std::optional<Expr> zero = zero_point_of(node, 2, x.shape(), layout);
  give(node, 0, convert(dequantize(x, scale, zero), to));
}

void import_dynamic_quantize_linear(NodeImport& node) {
  Expr x = operand(node, 0);
  std::vector<int64_t> axes = axes_from(0, x.rank());
  Expr high = maximum(reshape(reduce(Op::ReduceMax, x, axes), {}), 0.0);
  Expr low = minimum(reshape(reduce(Op::ReduceMin, x, axes), {}), 0.0);
  Expr scale = select(equal(high, low), like(high, 1), (high - low) / 255.0);
  Expr zero = convert(apply(Op::Round, clamp(-low / scale, 0, 255)), DType::U8);
  give(node, 0, requantize(x / scale, zero, DType::U8));
  if (node.wants_output(1)) give(node, 1, scale);
  if (node.wants_output(2)) give(node, 2, zero);
}

void import_matmul_integer(NodeImport& node) {
  give(node, 0,
       integer_product(node, operand(node, 0), optional_operand(node, 2),
                       operand(node, 1), optional_operand(node, 3)));
}

// Vectors count as matrices of one row or column, as in numpy's product.
void import_qlinear_matmul(NodeImport& node) {
  Expr a = operand(node, 0), b = operand(node, 3);
  require(node, a.rank() > 0 && b.rank() > 0, "a and b must have an axis");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  Expr a_scale = matrix_parameter(node, operand(node, 1), a, -2);
  Expr b_scale = matrix_parameter(node, operand(node, 4), b, -1);
  if (is_float(a.dtype()) || is_float(b.dtype()))
    node.unsupported("a product of floats of eight bits");
  Expr y = integer_product(node, a, operand(node, 2), b, operand(node, 5));
  Expr y_scale = matrix_parameter(node, operand(node, 6), y, -2);
  Expr y_zero = matrix_parameter(node, operand(node, 7), y, -2);
  Expr factor = convert(a_scale, DType::F32) * convert(b_scale, DType::F32) /
                convert(y_scale, DType::F32);
  y = requantize(convert(y, DType::F32) * factor, y_zero, node.dtype(7));
  if (column) y = squeeze(y, y.rank() - 1);
  if (row) y = squeeze(y, y.rank() - (column ? 1 : 2));
  give(node, 0, y);
}

void import_conv_integer(NodeImport& node) {
  Expr x = operand(node, 0), w = operand(node, 1);
  std::optional<Expr> x_zero = zero_point_of(node, 2, x.shape(), {0, 0});
  Expr y = checked_convolution(node, centered(x, x_zero),
                               centered(w, weight_parameter(node, 3, w)));
  give(node, 0, y);
}

// The bias is int32 in units of x_scale * w_scale, so it joins the integer sum.
// com.microsoft's may have the channels last.
void import_qlinear_conv(NodeImport& node) {
  Expr x = operand(node, 0), w = operand(node, 3);
  bool last = !node.model_node.domain.empty() && node.get_int("channels_last") != 0;
  if (last) x = channels_second(node, x);
  Expr x_scale = quantization_parameter(node, operand(node, 1), x.shape(), 0);
  std::optional<Expr> x_zero = zero_point_of(node, 2, x.shape(), {0, 0});
  require(node, w.rank() >= 3, "the weights need spatial axes");
  Expr y = checked_convolution(node, centered(x, x_zero),
                               centered(w, weight_parameter(node, 5, w)));
  if (node.has_input(8)) {
    Expr bias = operand(node, 8);
    require(node, bias.dtype() == DType::I32 && bias.shape() == Shape{extent(y, 1)},
            "the bias must be one int32 per output channel");
    y = y + along(bias, 1, y.rank());
  }
  Expr w_scale = quantization_parameter(node, operand(node, 4), y.shape(), 1);
  Expr y_scale = quantization_parameter(node, operand(node, 6), y.shape(), 1);
  std::optional<Expr> y_zero = zero_point_of(node, 7, y.shape(), {1, 0});
  Expr factor = convert(x_scale, DType::F32) * convert(w_scale, DType::F32) /
                convert(y_scale, DType::F32);
  Expr result = requantize(convert(y, DType::F32) * factor, y_zero, node.dtype(7));
  give(node, 0, last ? channels_last(result) : result);
}

void import_qlinear_add(NodeImport& node) {
  broadcast_shape(node, {node.shape(0), node.shape(3)});
  Expr y = dequantized_input(node, 0) + dequantized_input(node, 3);
  give_quantized(node, y, 6, node.dtype(0));
}

void import_qlinear_mul(NodeImport& node) {
  // As its contract has it: the integers' product is exact, the scales are one factor.
  broadcast_shape(node, {node.shape(0), node.shape(3)});
  auto scale = [&](size_t i) {
    require(node, element_count(node.shape(i)) == 1, "a scale must be one number");
    return reshape(convert(operand(node, i), DType::F32), {});
  };
  auto whole = [&](size_t i) {
    return centered(operand(node, i), zero_point_of(node, i + 2, node.shape(i), {0, 0}));
  };
  Expr y = convert(whole(0) * whole(3), DType::F32) * (scale(1) * scale(4) / scale(6));
  give(node, 0, requantize(y, zero_point_of(node, 7, y.shape(), {0, 0}), node.dtype(0)));
}

void import_qlinear_leaky_relu(NodeImport& node) {
  Expr x = dequantized_input(node, 0);
  Expr y = select(less(x, 0.0), x * node.get_float("alpha"), x);
  give_quantized(node, y, 3, node.dtype(0));
}

void import_qlinear_sigmoid(NodeImport& node) {
  give_quantized(node, sigmoid(dequantized_input(node, 0)), 3, node.dtype(0));
}

void import_qlinear_global_average_pool(NodeImport& node) {
  Expr x = dequantized_input(node, 0);
  require(node, x.rank() >= 3, "the input needs spatial axes");
  bool channels_last = node.get_int("channels_last") != 0;
  std::vector<int64_t> axes = axes_from(channels_last ? 1 : 2, x.rank() - channels_last);
  give_quantized(node, mean(x, axes), 3, node.dtype(0));
}

// Before opset 13 all axes from `axis` on are one.
void import_qlinear_softmax(NodeImport& node) {
  Expr x = dequantized_input(node, 0);
  int64_t axis = node.axis(node.get_int("axis"), x.rank());
  int64_t last = node.get_int("opset") < 13 ? x.rank() : axis + 1;
  give_quantized(node, softmax(x, axes_from(axis, last)), 3, node.dtype(0));
}

void import_qlinear_concat(NodeImport& node) {
  std::vector<Expr> parts;
  for (size_t i = 2; i + 1 < node.input_count(); i += 3)
    parts.push_back(dequantized_input(node, i));
  if (parts.empty()) node.invalid("needs an input");
  int64_t axis = node.axis(node.get_int("axis"), parts[0].rank());
  for (Expr part : parts) {
    Shape expected = parts[0].shape();
    require(node, part.rank() == parts[0].rank(), "ranks of the inputs differ");
    expected[static_cast<size_t>(axis)] = extent(part, axis);
    require(node, part.shape() == expected, "shapes of the inputs do not fit");
  }
  give_quantized(node, join(parts, axis), 0, node.dtype(2));
}

} // namespace svod::importer
