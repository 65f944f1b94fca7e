// A cast of the graph lets too large a value become infinity or NaN, as the format has
// it: that is the specification's table for saturate = 0. Saturating is a clamp before
// it. f8e8m0 holds the exponent of a float and nothing else, so its three ways to round
// are additions to the float's bits; in integers throughout, because its smallest value
// is a subnormal float, which some targets take for zero.
#include "importer/formula/narrow_cast.h"

#include "importer/formula/movement.h"

#include <cmath>

namespace svod::importer {

namespace {

double largest_value(DType dtype) {
  double largest = 0;
  for (uint64_t code = 0; code < 256; ++code) {
    const double value = scalar_value(dtype, code);
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

Expr bits(Expr x, uint32_t value) { return like(x, value); }

// The exponent by itself, of a magnitude in the bits of a float.
Expr rounded_exponent(Expr size, RoundMode round) {
  constexpr uint32_t kLeast = 0x400000; // 2^-127
  const uint32_t add = round == RoundMode::Up     ? 0x7fffff
                       : round == RoundMode::Down ? 0
                                                  : 0x400000;
  Expr code = apply(Op::ShiftRight, size + bits(size, add), bits(size, 23));
  // Below the normal floats the place of the leading bit is the exponent.
  const uint32_t last = round == RoundMode::Up ? kLeast + 1 : 0x600000;
  return select(less(size, bits(size, last)), bits(size, 0), code);
}

// Negative values have no place; their magnitude is taken.
Expr cast_to_exponent(Expr x, const CastRules& rules) {
  x = convert(x, DType::F32);
  Expr size = with(x, bitcast(*x.g, x.id, DType::U32));
  size = apply(Op::And, size, bits(size, 0x7fffffff));
  Expr code = rounded_exponent(size, rules.round);
  const Expr nan = bits(size, 255);
  if (rules.saturate) {
    code = minimum(code, bits(size, 254));
    code = select(less(bits(size, 0x7f800000), size), nan, code);
  } else {
    code = select(less(size, bits(size, 0x400000)), nan, minimum(code, nan));
  }
  code = convert(code, DType::U8);
  return with(code, bitcast(*code.g, code.id, DType::F8E8M0));
}

} // namespace

CastRules cast_rules(NodeImport& node, bool has_saturate, bool has_round_mode) {
  CastRules rules;
  if (has_saturate) rules.saturate = node.get_int("saturate") != 0;
  if (!has_round_mode) return rules;
  const std::string mode = node.get_string("round_mode");
  require(node, mode == "up" || mode == "down" || mode == "nearest",
          "round_mode is not up, down or nearest");
  rules.round = mode == "up"     ? RoundMode::Up
                : mode == "down" ? RoundMode::Down
                                 : RoundMode::Nearest;
  return rules;
}

Expr narrow_cast(Expr x, DType to, const CastRules& rules) {
  if (x.dtype() == to) return x;
  if (to == DType::F8E8M0) return cast_to_exponent(x, rules);
  const bool clamps = is_narrow_float(to) && byte_size(to) == 1 && rules.saturate;
  if (!clamps) return convert(x, to);
  if (x.dtype() != DType::F64) x = convert(x, DType::F32);
  const double largest = largest_value(to);
  return convert(minimum(maximum(x, -largest), largest), to);
}

} // namespace svod::importer
