// Single values as the bits of an element, and back. Conversions follow Cast: float to
// integer truncates and saturates, NaN becomes 0; floats round to nearest even in one
// step.
#include "compiler/ir/build.h"
#include "compiler/ir/scalar_convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace svod {

// Rounds to a binary float format of `mantissa` fraction bits and exponents from
// `min_exponent`, with `max` the largest finite value; returns the value, exactly
// representable in the format.
static double round_to(double value, int mantissa, int min_exponent, double max) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = std::max(std::ilogb(value), min_exponent);
  double unit = std::ldexp(1.0, exponent - mantissa);
  double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > max ? std::copysign(HUGE_VAL, value) : rounded;
}

static uint64_t f16_bits(double value) {
  uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  double a = std::fabs(round_to(value, 10, -14, 65504.0));
  if (std::isinf(a)) return sign | 0x7c00;
  if (a < std::ldexp(1.0, -14)) return sign | static_cast<uint64_t>(std::ldexp(a, 24));
  int exponent = std::ilogb(a);
  uint64_t fraction = static_cast<uint64_t>(std::ldexp(a, 10 - exponent)) & 0x3ff;
  return sign | static_cast<uint64_t>(exponent + 15) << 10 | fraction;
}

static double f16_value(uint64_t bits) {
  int exponent = (bits >> 10) & 31;
  double fraction = static_cast<double>(bits & 0x3ff);
  double a = exponent == 31  ? (fraction != 0 ? NAN : HUGE_VAL)
             : exponent == 0 ? std::ldexp(fraction, -24)
                             : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -a : a;
}

static uint64_t bf16_bits(double value) {
  if (std::isnan(value)) return std::signbit(value) ? 0xffc0 : 0x7fc0;
  float rounded = static_cast<float>(round_to(value, 7, -126, 0x1.fep127));
  return std::bit_cast<uint32_t>(rounded) >> 16;
}

template <class T> static uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> static T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T> static T saturate(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  // 2^63 and 2^64 are one above the largest integer, so >= saturates what a cast cannot
  // hold.
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

// The value with the bits that an integer of `bits` bits has, sign-extended or not.
static int64_t wrap(DType dtype, int64_t value) {
  int unused = 64 - info(dtype).bits;
  uint64_t high = static_cast<uint64_t>(value) << unused;
  return info(dtype).kind == DTypeKind::Int ? static_cast<int64_t>(high) >> unused
                                            : static_cast<int64_t>(high >> unused);
}

static double clamped(DType dtype, double value) {
  bool is_signed = info(dtype).kind == DTypeKind::Int;
  double span = std::ldexp(1.0, info(dtype).bits), low = is_signed ? -span / 2 : 0;
  return std::isnan(value) ? 0 : std::clamp(value, low, low + span - 1);
}

// The conversions of scalar_convert.h behind the rows' codecs; those of f16 and bf16 are
// written apart, so that tests have something to hold them against.
static uint64_t narrow_bits(DType dtype, double value) {
  [[maybe_unused]] auto float_to_none = [](float) { return uint64_t{0}; };
  using namespace scalar;
  float once = odd_float(value);
  switch (dtype) {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  case DType::name:                                                                      \
    return float_to_##codec(once);
#include "compiler/ir/dtypes.def"
  }
  __builtin_unreachable();
}

static double narrow_value(DType dtype, uint64_t bits_of_element) {
  [[maybe_unused]] auto none_to_float = [](auto) { return 0.0; };
  using namespace scalar;
  switch (dtype) {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  case DType::name:                                                                      \
    return double(codec##_to_float(store(bits_of_element)));
#include "compiler/ir/dtypes.def"
  }
  __builtin_unreachable();
}

uint64_t scalar_bits(DType dtype, double value) {
  if (is_packed(dtype) && !is_float(dtype)) value = clamped(dtype, value);
  switch (dtype) {
  case DType::Bool:
    return value != 0;
  case DType::F16:
    return f16_bits(value);
  case DType::BF16:
    return bf16_bits(value);
  case DType::F32:
    return bits_of(static_cast<float>(value));
  case DType::F64:
    return bits_of(value);
  default:
    if (is_narrow_float(dtype)) return narrow_bits(dtype, value);
    return with_compute_type(
        dtype, [&](auto zero) { return bits_of(saturate<decltype(zero)>(value)); });
  }
}

uint64_t scalar_bits_int(DType dtype, int64_t value) {
  if (dtype == DType::Bool) return value != 0;
  if (is_float(dtype)) return scalar_bits(dtype, static_cast<double>(value));
  uint64_t bits = static_cast<uint64_t>(wrap(dtype, value));
  int width = byte_size(dtype) * 8;
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

double scalar_value(DType dtype, uint64_t bits) {
  switch (dtype) {
  case DType::F16:
    return f16_value(bits);
  case DType::BF16:
    return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  default:
    if (is_narrow_float(dtype)) return narrow_value(dtype, bits);
    return with_compute_type(dtype, [&](auto zero) {
      return static_cast<double>(value_of<decltype(zero)>(bits));
    });
  }
}

} // namespace svod
