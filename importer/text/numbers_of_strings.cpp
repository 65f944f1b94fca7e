// Numbers of texts, for all rows at once and without loops over data: sums over the
// columns give at most 19 digits as one integer and the exponent; the product with a
// power of ten of 128 bits is rounded once, half to even, into whatever float is wanted.
#include "importer/text/decimal_tables.h"
#include "importer/text/number_bits.h"

#include <array>

namespace svod::importer {

using namespace number_bits;

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
    // A float of a byte or less is made as one of 32 bits and rounded once more.
    y = convert(as_float(x, byte_size(to) > 1 ? to : DType::F32), to);
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

} // namespace svod::importer
