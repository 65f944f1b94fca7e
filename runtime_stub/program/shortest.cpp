// By the method of Steele and White, and of Burger and Dybvig ("Printing Floating-Point
// Numbers Quickly and Accurately", 1996): the number and half the gaps to its neighbours
// are fractions of one denominator, in whole numbers of as many words as that takes;
// digits come off one by one until what is left over is less than a gap. Exact for every
// type, and the numbers of a model's results are a few words long.
#include "runtime_stub/program/shortest.h"

namespace packed {

namespace {

// A whole number. The largest are the denominator of the least double, 2^1076, and what
// is taken from it, ten times as large.
struct Whole {
  static constexpr uint32_t kWords = 40;
  uint32_t words[kWords] = {};
  uint32_t used = 0; // the others are zero, or of what was larger

  explicit Whole(uint64_t value) {
    for (; value != 0; value >>= 32) words[used++] = static_cast<uint32_t>(value);
  }

  void multiply(uint32_t factor) {
    uint64_t carry = 0;
    for (uint32_t i = 0; i < used; i++) {
      carry += uint64_t{words[i]} * factor;
      words[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0 && used < kWords) words[used++] = static_cast<uint32_t>(carry);
  }

  void double_times(int32_t times) {
    for (; times >= 31; times -= 31) multiply(1u << 31);
    multiply(1u << times);
  }

  void add(const Whole& other) {
    uint64_t carry = 0;
    for (uint32_t i = 0; i < used || i < other.used || carry != 0; i++) {
      if (i == kWords) return;
      if (i >= used) words[used++] = 0;
      carry += uint64_t{words[i]} + (i < other.used ? other.words[i] : 0);
      words[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }

  // Of one that is not larger.
  void subtract(const Whole& other) {
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < used; i++) {
      const uint64_t left =
          uint64_t{words[i]} - (i < other.used ? other.words[i] : 0) - borrow;
      words[i] = static_cast<uint32_t>(left);
      borrow = left >> 63;
    }
    while (used > 0 && words[used - 1] == 0) used--;
  }
};

// Below, at or above zero.
int32_t compare(const Whole& a, const Whole& b) {
  if (a.used != b.used) return a.used < b.used ? -1 : 1;
  for (uint32_t i = a.used; i-- > 0;)
    if (a.words[i] != b.words[i]) return a.words[i] < b.words[i] ? -1 : 1;
  return 0;
}

int32_t compare_sum(Whole a, const Whole& b, const Whole& c) {
  a.add(b);
  return compare(a, c);
}

// A positive number is mantissa * 2^exponent, with the mantissa below 2^bits.
struct Parts {
  uint64_t mantissa;
  int32_t exponent, bits, least;
};

Parts parts_of(const Element& element, double value) {
  constexpr int32_t kDoubleBits = 53, kDoubleLeast = -1074;
  Parts out = {0, 0, 24, -149}; // of f32; smaller ones are told by its digits
  if (element.kind == ElementKind::Half) out = {0, 0, 11, -24};
  if (element.kind == ElementKind::BrainHalf) out = {0, 0, 8, -133};
  if (element.bits == 64) out = {0, 0, kDoubleBits, kDoubleLeast};
  const auto bits = __builtin_bit_cast(uint64_t, value);
  const auto biased = static_cast<int32_t>(bits >> 52);
  out.mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (biased != 0) out.mantissa |= uint64_t{1} << 52;
  const int32_t exponent = kDoubleLeast + (biased == 0 ? 0 : biased - 1);
  int32_t shift = kDoubleBits - out.bits;
  if (exponent + shift < out.least) shift = out.least - exponent;
  out.mantissa >>= shift; // those bits are zero: it is a number of the type
  out.exponent = exponent + shift;
  return out;
}

// x, or the next whole number.
int32_t rounded_up(double x) {
  const auto whole = static_cast<int32_t>(x);
  return whole + (x > whole);
}

} // namespace

void print_shortest(Printer& out, const Element& element, const void* data, uint64_t i) {
  constexpr double kDigitsPerBit = 0.30102999566398119521;
  double value = load(element, data, i);
  if (__builtin_signbit(value)) out << "-";
  if (value < 0) value = -value;
  if (value == 0) {
    out << "0.0";
    return;
  }
  const Parts parts = parts_of(element, value);
  // number = rest / scale; half of the gaps above and below it are over scale, too.
  const bool closer_below =
      parts.mantissa == uint64_t{1} << (parts.bits - 1) && parts.exponent > parts.least;
  Whole rest(parts.mantissa), scale(1), above(1), below(1);
  rest.double_times(closer_below ? 2 : 1);
  scale.double_times(closer_below ? 2 : 1);
  if (closer_below) above.double_times(1);
  const auto times_ten = [&] {
    rest.multiply(10);
    above.multiply(10);
    below.multiply(10);
  };
  if (parts.exponent >= 0) {
    rest.double_times(parts.exponent);
    above.double_times(parts.exponent);
    below.double_times(parts.exponent);
  } else {
    scale.double_times(-parts.exponent);
  }
  const int32_t size = 63 - __builtin_clzll(parts.mantissa) + parts.exponent;
  int32_t power = rounded_up(size * kDigitsPerBit - 1e-10);
  for (int32_t k = 0; k < power; k++) scale.multiply(10);
  for (int32_t k = power; k < 0; k++) times_ten();
  // What lies half way belongs to the even one of two neighbours.
  const int32_t reached = parts.mantissa % 2 == 0 ? 0 : 1;
  if (compare_sum(rest, above, scale) >= reached) {
    power++;
  } else {
    times_ten();
  }
  char digits[20];
  uint32_t count = 0;
  for (;;) {
    char digit = '0';
    for (; compare(rest, scale) >= 0; digit++) rest.subtract(scale);
    const bool low = compare(rest, below) < 1 - reached,
               high = compare_sum(rest, above, scale) >= reached;
    if (low || high) {
      const int32_t half = compare_sum(rest, rest, scale);
      const bool up = low == high ? half > 0 || (half == 0 && digit % 2 == 1) : high;
      digits[count++] = static_cast<char>(digit + up);
      break;
    }
    digits[count++] = digit;
    times_ten();
  }
  out.decimal(digits, count, power - 1);
}

} // namespace packed
