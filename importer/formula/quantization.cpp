// Rounding happens once, in F32, before the zero point is added: with the zero point
// inside, ties would round by its parity. Saturation clips in F32 too, where all 16-bit
// bounds are exact.
#include "importer/formula/quantization.h"

#include "importer/formula/narrow_cast.h"

namespace svod::importer {
namespace {

Expr repeat_blocks(NodeImport& node, Expr parameter, const Shape& shape, int64_t axis,
                   int64_t block) {
  auto at = static_cast<size_t>(axis);
  Shape expected = shape;
  expected[at] = (shape[at] + block - 1) / block;
  require(node, parameter.shape() == expected,
          "blocked scales or zero points do not fit the input and block_size");
  Shape wide = expected, flat = expected;
  wide.insert(wide.begin() + axis + 1, block);
  flat[at] *= block;
  Expr repeated = reshape(broadcast(unsqueeze(parameter, axis + 1), wide), flat);
  return cut(repeated, axis, 0, shape[at]);
}

} // namespace

Expr quantization_parameter(NodeImport& node, Expr parameter, const Shape& shape,
                            int64_t axis, int64_t block) {
  if (element_count(parameter.shape()) == 1) return reshape(parameter, {});
  auto rank = static_cast<int64_t>(shape.size());
  axis = node.axis(axis, rank);
  if (block > 0) {
    require(node, parameter.rank() == rank, "blocked scales must have the input's rank");
    return repeat_blocks(node, parameter, shape, axis, block);
  }
  require(node,
          parameter.rank() == 1 &&
              extent(parameter, 0) == shape[static_cast<size_t>(axis)],
          "scales or zero points per axis do not fit the input");
  return along(parameter, axis, rank);
}

Expr centered(Expr x, std::optional<Expr> zero_point) {
  Expr wide = convert(x, DType::I32);
  return zero_point ? wide - convert(*zero_point, DType::I32) : wide;
}

Expr dequantize(Expr x, Expr scale, std::optional<Expr> zero_point) {
  Expr difference =
      is_float(x.dtype()) ? convert(x, DType::F32) : centered(x, zero_point);
  if (is_float(x.dtype()) && zero_point)
    difference = difference - convert(*zero_point, DType::F32);
  return convert(difference, DType::F32) * convert(scale, DType::F32);
}

Expr requantize(Expr x, std::optional<Expr> zero_point, DType to, bool saturate) {
  if (is_float(to)) {
    if (zero_point) x = convert(x, DType::F32) + convert(*zero_point, DType::F32);
    return narrow_cast(x, to, {saturate, RoundMode::Up});
  }
  Expr rounded = apply(Op::Round, convert(x, DType::F32));
  if (zero_point) rounded = rounded + convert(*zero_point, DType::F32);
  double span = static_cast<double>(1 << info(to).bits);
  bool is_signed = info(to).kind == DTypeKind::Int;
  double low = is_signed ? -span / 2 : 0;
  return convert(clamp(rounded, low, low + span - 1), to);
}

namespace {

std::optional<Expr> single_zero_point(NodeImport& node, size_t i, const Shape& shape) {
  if (!node.has_input(i)) return std::nullopt;
  return quantization_parameter(node, operand(node, i), shape, 0);
}

} // namespace

Expr dequantized_input(NodeImport& node, size_t i) {
  Expr x = operand(node, i);
  Expr scale = quantization_parameter(node, operand(node, i + 1), x.shape(), 0);
  return dequantize(x, scale, single_zero_point(node, i + 2, x.shape()));
}

void give_quantized(NodeImport& node, Expr y, size_t i, DType to) {
  Expr scale = quantization_parameter(node, operand(node, i), y.shape(), 0);
  if (node.has_input(i + 1)) to = node.dtype(i + 1);
  require(node, is_integer(to), "a zero point must be an integer");
  give(node, 0,
       requantize(y / convert(scale, DType::F32),
                  single_zero_point(node, i + 1, y.shape()), to));
}

Quantized quantized_whole(Expr x) {
  const std::vector<int64_t> axes = axes_from(0, x.rank());
  const Expr high = maximum(reshape(reduce(Op::ReduceMax, x, axes), {}), 0.0);
  const Expr low = minimum(reshape(reduce(Op::ReduceMin, x, axes), {}), 0.0);
  const Expr scale = select(equal(high, low), like(high, 1), (high - low) / 255.0);
  const Expr zero = convert(apply(Op::Round, clamp(-low / scale, 0, 255)), DType::U8);
  return {requantize(x / scale, zero, DType::U8), scale, zero};
}

} // namespace svod::importer
