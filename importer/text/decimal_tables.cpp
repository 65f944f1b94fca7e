// The numbers are computed with whole numbers of any length, when packing: 5^325 has 755
// bits. The shortest digits follow Adams, "Ryu: fast float-to-string conversion" (PLDI
// 2018): the bounds of the interval that rounds to the float, scaled by one power of ten
// that leaves a few digits too many, decide how many digits can go.
#include "importer/text/decimal_tables.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <bit>

namespace svod::importer {

namespace {

// A whole number, least significant word first.
class Whole {
public:
  explicit Whole(uint32_t value) : words_{value} {}
  Whole& times(uint32_t factor) {
    uint64_t carry = 0;
    for (uint32_t& word : words_) {
      carry += uint64_t{word} * factor;
      word = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) words_.push_back(static_cast<uint32_t>(carry));
    return *this;
  }
  // True: there was a rest.
  bool divide(uint32_t divisor) {
    uint64_t rest = 0;
    for (size_t i = words_.size(); i-- > 0;) {
      rest = rest << 32 | words_[i];
      words_[i] = static_cast<uint32_t>(rest / divisor);
      rest %= divisor;
    }
    while (words_.size() > 1 && words_.back() == 0) words_.pop_back();
    return rest != 0;
  }
  Whole& shift_left(int64_t bits) {
    words_.insert(words_.begin(), static_cast<size_t>(bits / 32), 0);
    return times(uint32_t{1} << (bits % 32));
  }
  int64_t bits() const {
    return 32 * static_cast<int64_t>(words_.size()) - std::countl_zero(words_.back());
  }
  bool bit(int64_t i) const {
    return i >= 0 && static_cast<size_t>(i / 32) < words_.size() &&
           (words_[static_cast<size_t>(i / 32)] >> (i % 32) & 1);
  }
  // The 128 bits from bit `first` up.
  Wide from(int64_t first) const {
    Wide out;
    for (int64_t i = 0; i < 64; ++i) {
      out.low |= uint64_t{bit(first + i)} << i;
      out.high |= uint64_t{bit(first + 64 + i)} << i;
    }
    return out;
  }

private:
  std::vector<uint32_t> words_;
};

Whole power_of_five(int64_t n) {
  Whole power(1);
  for (int64_t i = 0; i < n; ++i) power.times(5);
  return power;
}

void add_one(Wide& x) {
  if (++x.low == 0) ++x.high;
}

constexpr int64_t kFactorBits = 125; // so that a product with 55 bits leaves room

// floor(2^(bits of 5^n - 1 + 125) / 5^n) + 1
Wide inverse_of_five(int64_t n, int64_t& power_bits) {
  power_bits = power_of_five(n).bits();
  Whole quotient(1);
  quotient.shift_left(power_bits - 1 + kFactorBits);
  for (int64_t i = 0; i < n; ++i) quotient.divide(5);
  Wide out = quotient.from(0);
  add_one(out);
  return out;
}

uint64_t small_power_of_five(int64_t n) {
  uint64_t power = 1;
  for (int64_t i = 0; i < n; ++i) power *= 5;
  return power;
}

} // namespace

ShortestRow shortest_row(int64_t e2) {
  ShortestRow row;
  int64_t power_bits = 0;
  row.mask = ~uint64_t{0};
  if (e2 >= 0) {
    // floor(e2 * log10(2)), one less where that leaves more than one digit.
    const int64_t q = (e2 * 78913 >> 18) - (e2 > 3);
    row.e10 = q;
    row.factor = inverse_of_five(q, power_bits);
    row.shift = static_cast<uint64_t>(-e2 + q + kFactorBits + power_bits - 1 - 64);
    if (q <= 21) row.five = small_power_of_five(q);
    return row;
  }
  // floor(-e2 * log10(5)), one less in the same way.
  const int64_t q = (-e2 * 732923 >> 20) - (-e2 > 1);
  row.e10 = q + e2;
  const Whole power = power_of_five(-e2 - q);
  row.factor = power.from(power.bits() - kFactorBits);
  if (power.bits() < kFactorBits) {
    Whole wide = power;
    row.factor = wide.shift_left(kFactorBits - power.bits()).from(0);
  }
  row.shift = static_cast<uint64_t>(q - (power.bits() - kFactorBits) - 64);
  row.halves = q <= 1;
  if (q < 63) row.mask = (uint64_t{1} << q) - 1;
  return row;
}

PowerOfTen power_of_ten(int64_t t) {
  PowerOfTen out;
  if (t >= 0) {
    Whole power = power_of_five(t);
    const int64_t above = power.bits() - 128;
    if (above < 0) power.shift_left(-above);
    out.value = power.from(std::max<int64_t>(above, 0));
    out.exponent = above + t;
    return out;
  }
  // 2^k / 5^-t with 129 bits or more, then its first 128.
  const int64_t power_bits = power_of_five(-t).bits();
  Whole quotient(1);
  quotient.shift_left(power_bits + 128);
  for (int64_t i = 0; i < -t; ++i) quotient.divide(5);
  const int64_t above = quotient.bits() - 128;
  SVOD_CHECK(above >= 0) << "too few bits of 10^" << t;
  out.value = quotient.from(above);
  add_one(out.value); // no power of five divides one of two
  out.exponent = above - (power_bits + 128) + t;
  return out;
}

} // namespace svod::importer
