// Operators of quantisation-aware training, as Brevitas writes them and the QONNX project
// defines them: a float is rounded to a grid of few bits and stays a float. Scales, zero
// points and numbers of bits are tensors that broadcast against the input.
#include "importer/formula/formula.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace svod::importer {

namespace {

Expr power_of_two(Expr x) { return apply(Op::Pow, like(x, 2), x); }

// The functions that rounding_mode names, in any case.
Expr rounded(NodeImport& node, const std::string& how, Expr x) {
  std::string mode = how;
  std::ranges::transform(mode, mode.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  const auto outward = [&](Expr size) { return apply(Op::Sign, x) * size; };
  if (mode == "ROUND" || mode == "HALF_EVEN") return apply(Op::Round, x);
  if (mode == "CEIL") return apply(Op::Ceil, x);
  if (mode == "FLOOR") return apply(Op::Floor, x);
  if (mode == "UP") return outward(apply(Op::Ceil, absolute(x)));
  if (mode == "DOWN" || mode == "ROUND_TO_ZERO") return apply(Op::Trunc, x);
  if (mode == "HALF_UP") return outward(apply(Op::Floor, absolute(x) + 0.5));
  if (mode == "HALF_DOWN") return outward(apply(Op::Ceil, absolute(x) - 0.5));
  node.invalid("rounding_mode '" + how + "' is not in the definition");
}

// Input i in the type of the tensor that is quantised, which it broadcasts to.
Expr parameter(NodeImport& node, size_t i, Expr x) {
  require_broadcast(node, node.shape(i), x.shape());
  return convert(wide(node, i), x.dtype());
}

// The least and the largest integer of `bits` bits.
Expr least_integer(Expr bits, bool is_signed, bool narrow) {
  if (!is_signed) return like(bits, 0);
  const Expr least = -power_of_two(bits - 1.0);
  return narrow ? least + 1.0 : least;
}
Expr largest_integer(Expr bits, bool is_signed, bool narrow) {
  if (is_signed) return power_of_two(bits - 1.0) - 1.0;
  return power_of_two(bits) - (narrow ? 2.0 : 1.0);
}

Expr clamped(Expr x, Expr bits, bool is_signed, bool narrow) {
  return maximum(minimum(x, largest_integer(bits, is_signed, narrow)),
                 least_integer(bits, is_signed, narrow));
}

Expr signs(Expr x) { return select(less(x, 0.0), like(x, -1), like(x, 1)); }

// floor(log2(|x|)) from the bits of an F32, exact where a logarithm would round; zero and
// subnormals count as 2^-127, which is below every grid in use.
Expr exponent_of(Expr x) {
  const Expr bits = with(x, bitcast(*x.g, absolute(x).id, DType::I32));
  return convert(apply(Op::ShiftRight, bits, like(bits, 23)), DType::F32) - 127.0;
}

} // namespace

// Quant and IntQuant: input, scale, zero point, number of bits.
void import_quant(NodeImport& node) {
  const Expr x = wide(node, 0);
  const bool is_signed = node.get_int("signed") != 0,
             narrow = node.get_int("narrow") != 0;
  const Expr scale = parameter(node, 1, x), zero = parameter(node, 2, x);
  const Expr bits = parameter(node, 3, x);
  const Expr units = x / scale + zero;
  Expr y = rounded(node, node.get_string("rounding_mode"),
                   clamped(units, bits, is_signed, narrow));
  // One signed bit means the two numbers -1 and 1.
  if (is_signed) y = select(equal(bits, 1.0), signs(units), y);
  finish(node, (y - zero) * scale);
}

void import_bipolar_quant(NodeImport& node) {
  const Expr x = wide(node, 0), scale = parameter(node, 1, x);
  finish(node, signs(x / scale) * scale);
}

// Drops the low bits of integers. Input, scale, zero point, bits before, bits after; the
// second version has the scale and the zero point after in front of the bits after, and
// clamps.
void import_trunc(NodeImport& node) {
  const Expr x = wide(node, 0), scale = parameter(node, 1, x),
             zero = parameter(node, 2, x);
  const std::string mode = node.get_string("rounding_mode");
  Expr y = apply(Op::Round, x / scale + zero);
  if (node.input_count() <= 5) {
    const Expr drop = power_of_two(parameter(node, 3, x) - parameter(node, 4, x));
    y = rounded(node, mode, y / drop);
    return finish(node, (y - zero) * scale);
  }
  const Expr to_scale = parameter(node, 4, x), bits = parameter(node, 6, x);
  const Expr drop =
      power_of_two(apply(Op::Round, log(to_scale / scale) * (1 / 0.693147180559945309)));
  y = clamped(y / drop, bits, node.get_int("signed") != 0, node.get_int("narrow") != 0);
  finish(node, (rounded(node, mode, y) - zero / drop) * to_scale);
}

// Input, scale, bits of exponent and mantissa, exponent bias, largest value (optional).
void import_float_quant(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.dtype() == DType::F32, "the input must be float");
  const Expr scale = parameter(node, 1, x), exponent = parameter(node, 2, x);
  const Expr mantissa = parameter(node, 3, x), bias = parameter(node, 4, x);
  const Expr units = x / scale;
  const Expr step =
      power_of_two(maximum(exponent_of(units) - mantissa, 1.0 - bias - mantissa));
  Expr y = step * rounded(node, node.get_string("rounding_mode"), units / step);
  Expr largest =
      (2.0 - power_of_two(-mantissa)) * power_of_two(power_of_two(exponent) - 1.0 - bias);
  if (node.has_input(5)) largest = minimum(largest, parameter(node, 5, x));
  const Expr inside = maximum(minimum(y, largest), -largest);
  if (node.get_int("saturation") != 0) return finish(node, inside * scale);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool has_inf = node.get_int("has_inf") != 0;
  if (!has_inf && node.get_int("has_nan") == 0)
    node.invalid("saturation = 0 needs has_inf or has_nan");
  const Expr outside =
      has_inf ? signs(y) * kInfinity : like(y, std::numeric_limits<double>::quiet_NaN());
  finish(node, select(less(largest, absolute(y)), outside, inside) * scale);
}

// How many thresholds of its channel an element reaches. Channels are the second axis of
// NCHW and of matrices, else the last.
void import_multi_threshold(NodeImport& node) {
  const Expr x = wide(node, 0), levels = wide(node, 1);
  const std::string layout = node.get_string("data_layout");
  require(node, layout == "NCHW" || layout == "NHWC", "data_layout must be NCHW or NHWC");
  require(node, x.rank() >= 1 && levels.rank() == 2,
          "the thresholds must be [channels, steps]");
  const bool second = x.rank() == 4 && layout == "NCHW";
  const int64_t axis = second ? 1 : x.rank() - 1, channels = extent(levels, 0);
  require(node, channels == 1 || channels == extent(x, axis),
          "the thresholds do not fit the channels");
  Shape shape(static_cast<size_t>(x.rank()) + 1, 1);
  shape[static_cast<size_t>(axis)] = channels;
  shape.back() = extent(levels, 1);
  const Expr reached =
      less_equal(reshape(convert(levels, x.dtype()), shape), unsqueeze(x, x.rank()));
  const Expr count = squeeze(sum(convert(reached, x.dtype()), {x.rank()}), x.rank());
  finish(node, count * node.get_float("out_scale") + node.get_float("out_bias"));
}

} // namespace svod::importer
