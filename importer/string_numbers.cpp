// Text of numbers, for all rows at once and without loops over data.
//
// To text: a float becomes a whole number of decimal digits and an exponent, by integers
// of 128 bits (decimal_tables.h); every column of the text then computes which character
// stands in it. To numbers: sums over the columns give at most 19 digits as one integer
// and the exponent; the product with a power of ten of 128 bits is rounded once, half to
// even, into whatever float is wanted.
#include "importer/string_numbers.h"

#include "importer/decimal_tables.h"

#include <array>

namespace svod {

namespace {

Expr u64(Expr like, uint64_t value) {
  return {like.g, constant_bits(*like.g, DType::U64, like.shape(), value)};
}
Expr to_u64(Expr x) { return convert(x, DType::U64); }
Expr bit_and(Expr a, Expr b) { return apply(Op::And, a, b); }
Expr shift_right(Expr a, Expr by) { return apply(Op::ShiftRight, a, by); }
Expr shift_left(Expr a, Expr by) { return apply(Op::ShiftLeft, a, by); }
Expr shift_right(Expr a, uint64_t by) { return shift_right(a, u64(a, by)); }
Expr shift_left(Expr a, uint64_t by) { return shift_left(a, u64(a, by)); }
Expr modulo(Expr a, uint64_t by) { return apply(Op::Mod, a, u64(a, by)); }
Expr divide(Expr a, uint64_t by) { return a / u64(a, by); }
Expr no(Expr x) { return apply(Op::Not, x); }
Expr minimum_of(Expr a, Expr b) { return select(less(a, b), a, b); }
Expr is(Expr a, uint64_t value) { return equal(a, u64(a, value)); }

Expr table(Graph& g, const std::vector<uint64_t>& values) {
  const std::vector<int64_t> same(values.begin(), values.end());
  const Shape all{static_cast<int64_t>(same.size())};
  return {&g, bitcast(g, tensor_i64(g, all, same), DType::U64)};
}

Expr pick(Expr table, Expr index) {
  const Shape shape = index.shape();
  return reshape(gather(table, reshape(index, {element_count(shape)}), 0), shape);
}

// 10^0 to 10^19
std::vector<uint64_t> powers_of_ten() {
  std::vector<uint64_t> powers{1};
  while (powers.size() < 20) powers.push_back(10 * powers.back());
  return powers;
}

// Expressions of one shape, [n] or [n, columns], as i32.
Expr i32(Expr x) { return convert(x, DType::I32); }

struct WideExpr {
  Expr high, low;
};

WideExpr multiply(Expr a, Expr b) {
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
WideExpr multiply(Expr x, WideExpr y) {
  const WideExpr upper = multiply(x, y.high);
  const Expr low = upper.low + multiply(x, y.low).high;
  return {upper.high + to_u64(less(low, upper.low)), low};
}

// What is left of a float: sign, kind, digits * 10^exponent.
struct Decimal {
  Expr negative, nan, infinite;
  Expr digits;   // u64[n]
  Expr exponent; // i32[n], of the last digit
};

struct FloatForm {
  int64_t fraction_bits, exponent_bits;
  int64_t bias() const { return (int64_t{1} << (exponent_bits - 1)) - 1; }
};

FloatForm form_of(DType dtype) {
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

DType bits_type(DType dtype) {
  return byte_size(dtype) == 2   ? DType::U16
         : byte_size(dtype) == 4 ? DType::U32
                                 : DType::U64;
}

// The rows of shortest_row for all exponents of a form, looked up by each number's.
struct ShortestLookUp {
  Expr e10, high, low, shift, five, mask, halves;
};

ShortestLookUp look_up_rows(FloatForm form, Expr field) {
  std::vector<uint64_t> high, low, shift, five, mask, halves;
  std::vector<int64_t> e10;
  for (int64_t e = 0; e < int64_t{1} << form.exponent_bits; ++e) {
    const ShortestRow row =
        shortest_row(std::max<int64_t>(e, 1) - form.bias() - form.fraction_bits - 2);
    e10.push_back(row.e10);
    high.push_back(row.factor.high);
    low.push_back(row.factor.low);
    shift.push_back(row.shift);
    five.push_back(row.five);
    mask.push_back(row.mask);
    halves.push_back(row.halves);
  }
  Graph& g = *field.g;
  const auto of = [&](const std::vector<uint64_t>& values) {
    return pick(table(g, values), field);
  };
  const Expr all{&g, tensor_i64(g, {static_cast<int64_t>(e10.size())}, e10)};
  return {i32(pick(all, field)), of(high), of(low), of(shift), of(five), of(mask),
          is(of(halves), 1)};
}

// The interval that rounds to a number, and the number in it, in units of a power of ten.
struct Interval {
  Expr low, value, high;
  Expr low_exact, value_exact; // nothing but zeros was cut off
};

// Takes digits off while one number of fewer digits is within. `accepts`: the bounds are.
Decimal shorten(Decimal out, Interval at, Expr accepts, int64_t most_digits) {
  Expr last = u64(at.value, 0);
  Expr removed = i32(last);
  const auto step = [&](Expr goes) {
    const Expr digit = modulo(at.value, 10);
    at.value_exact = select(goes, both(at.value_exact, is(last, 0)), at.value_exact);
    at.low_exact =
        select(goes, both(at.low_exact, is(modulo(at.low, 10), 0)), at.low_exact);
    last = select(goes, digit, last);
    at.value = select(goes, divide(at.value, 10), at.value);
    at.high = select(goes, divide(at.high, 10), at.high);
    at.low = select(goes, divide(at.low, 10), at.low);
    removed = removed + i32(goes);
  };
  for (int64_t i = 0; i < most_digits; ++i)
    step(less(divide(at.low, 10), divide(at.high, 10)));
  for (int64_t i = 0; i < most_digits; ++i)
    step(both(at.low_exact, both(is(modulo(at.low, 10), 0), no(is(at.low, 0)))));
  // Half to even.
  const Expr tie = both(at.value_exact, both(is(last, 5), is(modulo(at.value, 2), 0)));
  const Expr round_up = both(less(u64(last, 4), last), no(tie));
  const Expr outside = both(equal(at.value, at.low), no(both(accepts, at.low_exact)));
  out.digits = at.value + to_u64(either(round_up, outside));
  out.exponent = out.exponent + removed;
  return out;
}

Decimal shortest_digits(Expr x) {
  const FloatForm form = form_of(x.dtype());
  const Expr bits = to_u64(with(x, bitcast(*x.g, x.id, bits_type(x.dtype()))));
  const Expr fraction = bit_and(bits, u64(bits, (uint64_t{1} << form.fraction_bits) - 1));
  const uint64_t last_field = (uint64_t{1} << form.exponent_bits) - 1;
  const Expr field = bit_and(shift_right(bits, static_cast<uint64_t>(form.fraction_bits)),
                             u64(bits, last_field));
  const Expr special = is(field, last_field), normal = no(is(field, 0));
  const Expr mantissa =
      fraction + to_u64(normal) * u64(bits, uint64_t{1} << form.fraction_bits);
  const Expr four = u64(bits, 4), accepts = is(modulo(mantissa, 2), 0);
  // Below a power of two the gap is half as wide.
  const Expr wide_gap = either(no(is(fraction, 0)), less(field, u64(field, 2)));
  const Expr value = mantissa * four, high = value + u64(bits, 2),
             low = value - u64(bits, 1) - to_u64(wide_gap);
  const ShortestLookUp row = look_up_rows(form, convert(field, DType::I32));
  const auto scaled = [&](Expr v) {
    const WideExpr p = multiply(v, {row.high, row.low});
    return apply(Op::Or, shift_left(p.high, u64(v, 64) - row.shift),
                 shift_right(p.low, row.shift));
  };
  const auto divides = [&](Expr v) {
    return both(no(is(row.five, 0)), is(apply(Op::Mod, v, row.five), 0));
  };
  const Expr by_five = is(modulo(value, 5), 0);
  const Expr clean = is(bit_and(value, row.mask), 0);
  const Expr open = no(accepts);
  Interval at{scaled(low), scaled(value), scaled(high), {}, {}};
  at.value_exact = either(row.halves, either(both(by_five, divides(value)), clean));
  at.low_exact =
      both(accepts, either(both(row.halves, wide_gap), both(no(by_five), divides(low))));
  at.high =
      at.high - to_u64(both(open, either(row.halves, both(no(by_five), divides(high)))));
  Decimal out{
      is(shift_right(bits, static_cast<uint64_t>(8 * byte_size(x.dtype()) - 1)), 1),
      both(special, no(is(fraction, 0))),
      both(special, is(fraction, 0)),
      {},
      row.e10};
  const int64_t digits = form.fraction_bits > 24 ? 18 : 11;
  out = shorten(out, at, accepts, digits);
  const Expr zero = is(mantissa, 0);
  out.digits = select(zero, u64(bits, 0), out.digits);
  out.exponent = select(zero, like(out.exponent, 0), out.exponent);
  return out;
}

Expr digit_count(Expr digits) {
  Expr count = with(digits, constant_int(*digits.g, DType::I32, digits.shape(), 1));
  const std::vector<uint64_t> powers = powers_of_ten();
  for (size_t k = 1; k < powers.size(); ++k)
    count = count + i32(less_equal(u64(digits, powers[k]), digits));
  return count;
}

// The character of digit number `index` (0: the first), '0' beyond them; i32[n, columns].
Expr digit_character(Expr digits, Expr count, Expr index) {
  const Expr from_end = count - 1.0 - index;
  const Expr behind = less_equal(like(index, 0), index);
  const Expr inside = both(behind, less(index, count));
  const Expr place = select(inside, from_end, like(from_end, 0));
  const Expr digit = modulo(broadcast(digits, place.shape()) /
                                pick(table(*digits.g, powers_of_ten()), place),
                            10);
  return select(inside, i32(digit), like(place, 0)) + 48.0;
}

// A column per row, [n, 1].
Expr column(Expr x) { return reshape(x, {element_count(x.shape()), 1}); }

Expr character(Expr like_this, char c) {
  return like(like_this, static_cast<uint8_t>(c));
}

// Characters of a number without its sign at columns `at`, 0 behind the end.
Expr positional(const Decimal& x, Expr count, Expr at) {
  const Expr first = column(x.exponent + count - 1.0); // the first digit's power of ten
  const Expr digits = column(x.digits);
  count = column(count);
  const Expr whole = maximum(first, 0) + 1.0; // digits before the point
  const Expr before = digit_character(digits, count, at - minimum(first, 0));
  const Expr after_index = at - whole + first;
  const Expr after = select(less(after_index, 0), character(after_index, '0'),
                            digit_character(digits, count, after_index));
  const Expr end = whole + 1.0 + maximum(count - 1.0 - first, 1);
  const Expr in_front =
      select(both(less(first, 0), equal(at, 0)), character(at, '0'), before);
  return select(less(at, whole), in_front,
                select(equal(at, whole), character(at, '.'),
                       select(less(at, end), after, like(at, 0))));
}

Expr scientific(const Decimal& x, Expr count, Expr at) {
  const Expr power = column(x.exponent + count - 1.0);
  const Expr digits = column(x.digits);
  count = column(count);
  const Expr mark = select(equal(count, 1), like(count, 1), count + 1.0);
  const Expr mantissa = select(
      equal(at, 0), digit_character(digits, count, at),
      select(equal(at, 1), character(at, '.'), digit_character(digits, count, at - 1.0)));
  const Expr size = absolute(power);
  const Expr places = i32(less(99, size)) + 2.0;
  const Expr exponent = digit_character(to_u64(size), places, at - mark - 2.0);
  const Expr sign = select(less(power, 0), character(power, '-'), character(power, '+'));
  const Expr tail = select(equal(at, mark), character(at, 'e'),
                           select(equal(at, mark + 1.0), sign, exponent));
  return select(less(at, mark), mantissa,
                select(less(at, mark + 2.0 + places), tail, like(at, 0)));
}

// The same word in all rows, at columns `at`.
Expr word(Expr at, const char* text) {
  Expr out = like(at, 0);
  for (int64_t i = 0; text[i]; ++i)
    out = select(equal(at, static_cast<double>(i)), character(at, text[i]), out);
  return out;
}

// `body` has the characters at columns `at`, which is the column less one with a sign.
Expr with_sign(Expr at, Expr body) {
  const Expr text = select(less(at, 0), character(at, '-'), body);
  return convert(text, DType::U8);
}

Expr columns_behind_sign(Expr negative, int64_t width) {
  return columns(*negative.g, width) - i32(column(negative));
}

Expr float_rows(Expr x) {
  constexpr int64_t kWidth = 26;
  const Decimal decimal = shortest_digits(x);
  const Expr count = digit_count(decimal.digits);
  const Expr power = column(decimal.exponent + count - 1.0);
  const Expr negative = both(decimal.negative, no(decimal.nan));
  const Expr at = columns_behind_sign(negative, kWidth);
  const Expr plain = both(less(-5, power), less(power, 16));
  Expr body =
      select(plain, positional(decimal, count, at), scientific(decimal, count, at));
  body = select(column(decimal.infinite), word(at, "inf"), body);
  body = select(column(decimal.nan), word(at, "nan"), body);
  return with_sign(at, body);
}

Expr integer_rows(Expr x) {
  constexpr int64_t kWidth = 20;
  const bool is_signed = info(x.dtype()).kind == DTypeKind::Int;
  const Expr none = with(x, constant_int(*x.g, DType::Bool, x.shape(), 0));
  const Expr negative = is_signed ? less(x, 0) : none;
  Expr size = is_signed ? with(x, bitcast(*x.g, convert(x, DType::I64).id, DType::U64))
                        : to_u64(x);
  size = select(negative, u64(size, 0) - size, size);
  const Expr count = digit_count(size), at = columns_behind_sign(negative, kWidth);
  const Expr digits = digit_character(column(size), column(count), at);
  return with_sign(at, select(less(at, column(count)), digits, like(at, 0)));
}

} // namespace

Expr number_strings(const NodeImport& node, Expr x) {
  const Shape shape = x.shape();
  if (element_count(shape) == 0) return constant_strings(node, {}, shape);
  x = reshape(x, {element_count(shape)});
  if (x.dtype() == DType::Bool) x = convert(x, DType::U8);
  return strings_from(node, is_float(x.dtype()) ? float_rows(x) : integer_rows(x), shape);
}

namespace {

// The bytes of each row from column `start` up, i32[n, width].
Expr from_column(Expr bytes, Expr start) {
  const int64_t width = extent(bytes, 1);
  const Expr at = columns(*bytes.g, width) + column(start);
  const Expr inside = less(at, static_cast<double>(width));
  const Expr moved = gather(bytes, minimum(at, static_cast<double>(width - 1)), 1);
  return select(inside, moved, like(moved, 0));
}

Expr is_space(Expr x) { return either(equal(x, ' '), both(less(8, x), less(x, 14))); }
Expr is_digit(Expr x) { return both(less('0' - 1, x), less(x, '9' + 1)); }

// Sums and the like over the columns, [n].
Expr over_columns(Op op, Expr x) { return squeeze(reduce(op, x, {1}), 1); }
Expr any(Expr x) { return equal(over_columns(Op::ReduceMax, i32(x)), 1); }
Expr all(Expr x) { return equal(over_columns(Op::ReduceMin, i32(x)), 1); }
// The first column where it holds, else `none`.
Expr first_column(Expr x, Expr none) {
  const Expr at = columns(*x.g, extent(x, 1));
  return over_columns(Op::ReduceMin, select(x, at, column(none)));
}

// A row as text of a number.
struct Spelled {
  Expr valid, negative, nan, infinite, is_true, is_false;
  Expr digits;   // u64[n]: the significant ones, 19 at most
  Expr exponent; // i32[n]: digits * 10^exponent, plus less than one of these if `more`
  Expr more;     // a digit that is no zero was left out
};

// digits[.digits][e[sign]digits] in columns 0 .. length-1.
struct Parts {
  Expr point, mark; // columns of '.' and 'e', or where they would stand
  Expr digit;       // of the mantissa, bool[n, width]
  Expr valid;
  Expr exponent;
};

Parts split_number(Expr text, Expr length) {
  const Expr at = columns(*text.g, extent(text, 1));
  const Expr mark = first_column(either(equal(text, 'e'), equal(text, 'E')), length);
  const Expr in_mantissa = less(at, column(mark));
  const Expr is_point = both(equal(text, '.'), in_mantissa);
  const Expr point = first_column(is_point, mark);
  const Expr digit = both(is_digit(text), in_mantissa);
  const Expr on_point = equal(broadcast(at, text.shape()), column(point));
  Expr valid = both(any(digit), all(either(either(digit, on_point), no(in_mantissa))));
  // The exponent: its sign, then digits to the end.
  const Expr behind = both(less(column(mark), at), less(at, column(length)));
  const Expr next = equal(broadcast(at, text.shape()), column(mark) + 1.0);
  const Expr minus = both(next, equal(text, '-'));
  const Expr sign = either(minus, both(next, equal(text, '+')));
  const Expr digits = both(behind, is_digit(text));
  const Expr some = either(equal(mark, length), any(digits));
  valid = both(valid, both(some, all(either(no(behind), either(sign, digits)))));
  constexpr int64_t kPlaces = 5; // an exponent beyond is as good as infinite
  const Expr place = column(length) - 1.0 - at;
  const Expr value = select(digits, text - '0', like(text, 0));
  Expr exponent = like(length, 0);
  double power = 1;
  for (int64_t k = 0; k < kPlaces; ++k, power *= 10)
    exponent = exponent +
               over_columns(Op::ReduceSum, select(equal(place, static_cast<double>(k)),
                                                  value, like(value, 0))) *
                   power;
  const Expr far = any(both(less(kPlaces - 1, place), less(0, value)));
  exponent = select(far, like(exponent, 99999), exponent);
  return {point, mark, digit, valid, select(any(minus), -exponent, exponent)};
}

Spelled read_mantissa(Expr text, const Parts& parts) {
  const Expr at = columns(*text.g, extent(text, 1));
  const Expr value = select(parts.digit, text - '0', like(text, 0));
  // Digits from the first to the last that is no zero.
  const Expr some = i32(less(0, value));
  const Expr begun = with(text, scan(*text.g, Op::ScanMax, some.id, 1));
  const Expr significant = both(parts.digit, equal(begun, 1));
  const Expr rank = with(text, scan(*text.g, Op::ScanSum, i32(significant).id, 1));
  const Expr none = like(parts.point, 0);
  const Expr last = over_columns(Op::ReduceMax, rank * some);
  constexpr double kMost = 19;
  const Expr kept = minimum(last, kMost);
  const Expr here = both(significant, less_equal(rank, column(kept)));
  const Expr power = select(here, column(kept) - rank, like(rank, 0));
  const Expr weight = pick(table(*text.g, powers_of_ten()), power);
  const Expr zero = u64(weight, 0);
  const Expr digits =
      over_columns(Op::ReduceSum, select(here, to_u64(value) * weight, zero));
  // The power of ten of the last digit that was kept.
  const Expr is_last = both(significant, equal(rank, column(kept)));
  const Expr right = column(parts.point) - at; // 1: just before the point
  const Expr place = select(less(0, right), right - 1.0, right);
  const Expr shift = over_columns(Op::ReduceSum, select(is_last, place, like(place, 0)));
  const Expr nothing = equal(last, 0);
  Spelled out{parts.valid, {}, {}, {}, {}, {}, digits, {}, less(kMost, last)};
  out.exponent = select(nothing, none, shift + parts.exponent);
  return out;
}

Spelled spell(Expr rows) {
  const Expr bytes = i32(rows);
  const Expr at = columns(*rows.g, extent(rows, 1));
  const Expr none = with(rows, constant_int(*rows.g, DType::I32, {extent(rows, 0)}, 0));
  const Expr blank = either(is_space(bytes), equal(bytes, 0));
  const Expr width = like(none, static_cast<double>(extent(rows, 1)));
  const Expr trimmed = from_column(bytes, first_column(no(blank), width));
  const Expr first = squeeze(cut(trimmed, 1, 0, 1), 1);
  const Expr minus = equal(first, '-'), has_sign = either(minus, equal(first, '+'));
  const Expr text = from_column(trimmed, i32(has_sign));
  const Expr solid = no(either(is_space(text), equal(text, 0)));
  const Expr length = over_columns(Op::ReduceMax, select(solid, at + 1.0, like(text, 0)));
  const Expr clean = select(less(at, column(length)), text, like(text, 0));
  const Expr upper = both(less('A' - 1, clean), less(clean, 'Z' + 1));
  const Expr lower = select(upper, clean + 32.0, clean);
  const auto spells = [&](const char* name) {
    if (static_cast<int64_t>(std::char_traits<char>::length(name)) > extent(rows, 1))
      return like(minus, 0);
    return all(equal(lower, word(broadcast(at, lower.shape()), name)));
  };
  Spelled out = read_mantissa(clean, split_number(clean, minimum(length, width)));
  out.negative = minus;
  out.nan = spells("nan");
  out.infinite = either(spells("inf"), spells("infinity"));
  out.is_true = spells("true");
  out.is_false = spells("false");
  return out;
}

// digits * 10^exponent, rounded once to the form's precision, as the bits of its
// magnitude.
Expr float_bits(FloatForm form, const Spelled& x) {
  constexpr int64_t kLeast = -350, kMost = 310; // beyond is 0 or infinite for all forms
  std::vector<uint64_t> high, low;
  std::vector<int64_t> exponents;
  for (int64_t t = kLeast; t <= kMost; ++t) {
    const PowerOfTen power = power_of_ten(t);
    high.push_back(power.value.high);
    low.push_back(power.value.low);
    exponents.push_back(power.exponent);
  }
  Graph& g = *x.digits.g;
  const Expr t = clamp(x.exponent, kLeast, kMost);
  const Expr index = t - static_cast<double>(kLeast);
  const Expr all_exponents{
      &g, tensor_i64(g, {static_cast<int64_t>(exponents.size())}, exponents)};
  // The leading bit to the front.
  Expr digits = x.digits + to_u64(both(x.more, is(modulo(x.digits, 2), 0)));
  const Expr zero = is(digits, 0);
  Expr exponent = i32(pick(all_exponents, index)) + 128.0;
  for (uint64_t step : {32, 16, 8, 4, 2, 1}) {
    const Expr small = is(shift_right(digits, 64 - step), 0);
    digits = select(small, shift_left(digits, step), digits);
    exponent = exponent - i32(small) * static_cast<double>(step);
  }
  WideExpr product =
      multiply(digits, {pick(table(g, high), index), pick(table(g, low), index)});
  const Expr short_by_one = is(shift_right(product.high, 63), 0);
  product.high =
      select(short_by_one,
             apply(Op::Or, shift_left(product.high, 1), shift_right(product.low, 63)),
             product.high);
  product.low = select(short_by_one, shift_left(product.low, 1), product.low);
  exponent = exponent - i32(short_by_one) + 63.0; // of the leading bit
  const auto least = static_cast<double>(1 - form.bias());
  const auto precision = static_cast<double>(form.fraction_bits + 1);
  const Expr lost = minimum(maximum(least - exponent, 0) + (64 - precision), 65);
  const Expr by = to_u64(lost);
  const Expr kept = shift_right(product.high, by);
  const Expr one = u64(by, 1);
  const Expr rest = bit_and(product.high, shift_left(one, by) - one);
  const Expr half = shift_left(one, by - one);
  // A power of ten below 1 is rounded up, so a last bit may be there that should not.
  const Expr slack = select(less(t, 0), like(t, 3), like(t, 0));
  const Expr more = either(less(to_u64(slack), product.low), x.more);
  const Expr above = either(
      less(half, rest), both(equal(half, rest), either(more, is(modulo(kept, 2), 1))));
  const Expr up = both(above, less(lost, 65));
  const Expr field = to_u64(maximum(exponent - least, 0));
  const Expr bits =
      shift_left(field, static_cast<uint64_t>(form.fraction_bits)) + kept + to_u64(up);
  const uint64_t infinite = ((uint64_t{1} << form.exponent_bits) - 1)
                            << form.fraction_bits;
  const Expr far = less(static_cast<double>(form.bias() + 1), exponent);
  const Expr finite =
      select(far, u64(bits, infinite), minimum_of(bits, u64(bits, infinite)));
  Expr out = select(zero, u64(bits, 0), finite);
  out = select(x.infinite, u64(bits, infinite), out);
  return select(x.nan, u64(bits, infinite | uint64_t{1} << (form.fraction_bits - 1)),
                out);
}

Expr as_float(const Spelled& x, DType to) {
  const int bits = 8 * byte_size(to);
  Expr magnitude = float_bits(form_of(to), x);
  const Expr sign = shift_left(to_u64(x.negative), static_cast<uint64_t>(bits - 1));
  magnitude = apply(Op::Or, magnitude, sign);
  const Expr stored = bits == 64 ? magnitude : convert(magnitude, bits_type(to));
  return with(stored, bitcast(*stored.g, stored.id, to));
}

// Without its fraction; what does not fit becomes the last number that does.
Expr as_integer(const Spelled& x, DType to) {
  const bool is_signed = info(to).kind == DTypeKind::Int;
  const int bits = 8 * byte_size(to);
  const uint64_t most = ~uint64_t{0} >> (64 - bits + is_signed);
  Graph& g = *x.digits.g;
  const Expr powers = table(g, powers_of_ten());
  const Expr less_digits = clamp(-x.exponent, 0, 19),
             more_digits = clamp(x.exponent, 0, 19);
  const Expr whole = x.digits / pick(powers, less_digits);
  const Expr factor = pick(powers, more_digits);
  Expr limit = u64(whole, most);
  if (is_signed) limit = limit + to_u64(x.negative);
  const Expr over =
      either(less(limit / factor, whole), both(less(19, x.exponent), no(is(whole, 0))));
  Expr size = select(either(over, x.infinite), limit, whole * factor);
  if (!is_signed) return convert(select(x.negative, u64(size, 0), size), to);
  size = select(x.negative, u64(size, 0) - size, size);
  return convert(with(size, bitcast(g, size.id, DType::I64)), to);
}

} // namespace

Expr numbers_of_strings(const NodeImport& node, Expr strings, DType to) {
  const Shape shape = strings.shape();
  const int64_t count = element_count(shape);
  if (count == 0) return {&node.g, constant_int(node.g, to, shape, 0)};
  const auto choice = choice_of(node, strings);
  const Spelled x =
      spell(choice ? constant_rows(node, choice->strings) : rows_of(node, strings));
  const bool to_float = is_float(to);
  Expr valid = either(x.valid, x.infinite), y = x.digits;
  if (to_float || to == DType::Bool) valid = either(valid, x.nan);
  if (to_float) {
    y = as_float(x, to);
  } else if (to == DType::Bool) {
    valid = either(valid, either(x.is_true, x.is_false));
    y = either(either(no(is(x.digits, 0)), x.is_true), either(x.nan, x.infinite));
  } else {
    y = as_integer(x, to);
  }
  if (choice) {
    y = look_up(*choice, y);
    valid = look_up(*choice, valid);
  }
  if (const auto known = known_ints(node.g, valid.id))
    for (int64_t is_valid : *known)
      require(node, is_valid, "a string of the model is no number");
  const Expr at = counter(node.g, DType::I64, {count}, 0);
  const Expr checked =
      gather(reshape(y, {count}), if_kept(reshape(valid, {count}), at), 0);
  return reshape(checked, shape);
}

} // namespace svod
