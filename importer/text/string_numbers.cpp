// Text of numbers, for all rows at once and without loops over data: a float becomes a
// whole number of decimal digits and an exponent, by integers of 128 bits
// (decimal_tables.h); every column of the text then computes which character stands in
// it.
#include "importer/text/decimal_tables.h"
#include "importer/text/number_bits.h"

#include <array>

namespace svod::importer {

using namespace number_bits;

namespace {

// What is left of a float: sign, kind, digits * 10^exponent.
struct Decimal {
  Expr negative, nan, infinite;
  Expr digits;   // u64[n]
  Expr exponent; // i32[n], of the last digit
};

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

} // namespace svod::importer
