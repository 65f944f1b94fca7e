// Integers of 64 and 128 bits as expressions, and the forms of floats: what text of
// numbers and numbers of text both compute with. Internal to this folder.
#pragma once

#include "importer/text/string_numbers.h"

namespace svod::importer::number_bits {

inline Expr u64(Expr like, uint64_t value) {
  return {like.g, constant_bits(*like.g, DType::U64, like.shape(), value)};
}
inline Expr to_u64(Expr x) { return convert(x, DType::U64); }
inline Expr bit_and(Expr a, Expr b) { return apply(Op::And, a, b); }
inline Expr shift_right(Expr a, Expr by) { return apply(Op::ShiftRight, a, by); }
inline Expr shift_left(Expr a, Expr by) { return apply(Op::ShiftLeft, a, by); }
inline Expr shift_right(Expr a, uint64_t by) { return shift_right(a, u64(a, by)); }
inline Expr shift_left(Expr a, uint64_t by) { return shift_left(a, u64(a, by)); }
inline Expr modulo(Expr a, uint64_t by) { return apply(Op::Mod, a, u64(a, by)); }
inline Expr divide(Expr a, uint64_t by) { return a / u64(a, by); }
inline Expr no(Expr x) { return apply(Op::Not, x); }
inline Expr minimum_of(Expr a, Expr b) { return select(less(a, b), a, b); }
inline Expr is(Expr a, uint64_t value) { return equal(a, u64(a, value)); }

inline Expr table(Graph& g, const std::vector<uint64_t>& values) {
  const std::vector<int64_t> same(values.begin(), values.end());
  const Shape all{static_cast<int64_t>(same.size())};
  return {&g, bitcast(g, tensor_i64(g, all, same), DType::U64)};
}

inline Expr pick(Expr table, Expr index) {
  const Shape shape = index.shape();
  return reshape(gather(table, reshape(index, {element_count(shape)}), 0), shape);
}

// 10^0 to 10^19
inline std::vector<uint64_t> powers_of_ten() {
  std::vector<uint64_t> powers{1};
  while (powers.size() < 20) powers.push_back(10 * powers.back());
  return powers;
}

// Expressions of one shape, [n] or [n, columns], as i32.
inline Expr i32(Expr x) { return convert(x, DType::I32); }

struct WideExpr {
  Expr high, low;
};

inline WideExpr multiply(Expr a, Expr b) {
  constexpr uint64_t kLow = 0xffffffff;
  const Expr a0 = bit_and(a, u64(a, kLow)), a1 = shift_right(a, 32);
  const Expr b0 = bit_and(b, u64(b, kLow)), b1 = shift_right(b, 32);
  const Expr low = a0 * b0, x = a0 * b1, y = a1 * b0;
  const Expr middle =
      shift_right(low, 32) + bit_and(x, u64(a, kLow)) + bit_and(y, u64(a, kLow));
  return {a1 * b1 + shift_right(x, 32) + shift_right(y, 32) + shift_right(middle, 32),
          apply(Op::Or, bit_and(low, u64(a, kLow)), shift_left(middle, 32))};
}

// The upper 128 of 192 bits of x * (high, low).
inline WideExpr multiply(Expr x, WideExpr y) {
  const WideExpr upper = multiply(x, y.high);
  const Expr low = upper.low + multiply(x, y.low).high;
  return {upper.high + to_u64(less(low, upper.low)), low};
}

struct FloatForm {
  int64_t fraction_bits, exponent_bits;
  int64_t bias() const { return (int64_t{1} << (exponent_bits - 1)) - 1; }
};

inline FloatForm form_of(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return {10, 5};
  case DType::BF16:
    return {7, 8};
  case DType::F32:
    return {23, 8};
  default:
    return {52, 11};
  }
}

inline DType bits_type(DType dtype) {
  return byte_size(dtype) == 2   ? DType::U16
         : byte_size(dtype) == 4 ? DType::U32
                                 : DType::U64;
}

// [n, 1] of [n].
inline Expr column(Expr x) { return reshape(x, {element_count(x.shape()), 1}); }

inline Expr character(Expr like_this, char c) {
  return like(like_this, static_cast<uint8_t>(c));
}

// The same word in all rows, at columns `at`.
inline Expr word(Expr at, const char* text) {
  Expr out = like(at, 0);
  for (int64_t i = 0; text[i]; ++i)
    out = select(equal(at, static_cast<double>(i)), character(at, text[i]), out);
  return out;
}

} // namespace svod::importer::number_bits
