// pow. Needs scalar_math.h before it.
//
// x^y = e^(y ln x), but an error of ln x is multiplied by up to 100 (float) or 700
// (double), so the logarithm and the product are carried in two numbers, about twice the
// digits. The rest is the list of special cases of IEEE 754.
#ifndef SVOD_SCALAR_POWER
#define SVOD_SCALAR_POWER
#ifndef SVOD_SCALAR_MATH
#include "compiler/ir/scalar_math.h"
#endif

namespace scalar {

// hi + lo, |lo| at most half a unit of hi.
template <Floating T> struct Two {
  T hi, lo;
};
// a + b exactly, for |a| >= |b| (or a = 0).
template <Floating T> SVOD_INLINE Two<T> ordered_sum(T a, T b) {
  T sum = a + b;
  return {sum, T(b - (sum - a))};
}
template <Floating T> SVOD_INLINE Two<T> exact_sum(T a, T b) {
  T sum = a + b, back = sum - a;
  return {sum, T((a - (sum - back)) + (b - back))};
}
// a * b exactly. Without fma, from halves of the mantissas.
template <Floating T> SVOD_INLINE Two<T> exact_product(T a, T b) {
  T product = a * b;
  if constexpr (kHasFma<T>) {
    return {product, ma_(a, b, -product)};
  } else {
    using U = UintOf<T>;
    const U mask = U(~((Element<U>(1) << (kMantissa<T> / 2 + 1)) - 1));
    T ah = bits_<T>(U(bits_<U>(a) & mask)), bh = bits_<T>(U(bits_<U>(b) & mask));
    T al = a - ah, bl = b - bh;
    return {product, T(((ah * bh - product) + ah * bl + al * bh) + al * bl)};
  }
}
template <Floating T> SVOD_INLINE Two<T> product(Two<T> a, Two<T> b) {
  Two<T> p = exact_product(a.hi, b.hi);
  return {p.hi, T(p.lo + (a.hi * b.lo + a.lo * b.hi))};
}

// ln x for finite x > 0, as 2 s + 2/3 s^3 + s^5 P(s^2) + e ln 2, s = f / (2 + f).
template <Floating T> SVOD_INLINE Two<T> log_two(T x) {
  LogParts<T> parts = log_parts(x);
  T f = parts.f, e = from_int<T>(parts.e);
  Two<T> below = ordered_sum(T(2), f);
  Two<T> s{T(f / below.hi), T(0)};
  Two<T> back = exact_product(s.hi, below.hi);
  s.lo = ((f - back.hi) - back.lo - s.hi * below.lo) / below.hi;
  Two<T> z = product(s, s), cube = product(s, z);
  const Two<T> third{
      T(Element<T>(0x1.5555555555555p-1)),
      T(Element<T>(kIsFloat<T> ? -0x1.555556p-26 : 0x1.5555555555555p-55))};
  Two<T> second = product(cube, third);
  T p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z.hi, {0x1.999ap-2f, 0x1.24527ep-2f, 0x1.dfa282p-3f});
  else
    p = poly_<T>(z.hi, {0x1.999999999999ap-2, 0x1.249249249246fp-2, 0x1.c71c71c7228p-3,
                        0x1.745d17417976ap-3, 0x1.3b13b313b800fp-3, 0x1.111093df2e349p-3,
                        0x1.e20b9e0fffa4p-4, 0x1.aae9cfaaab29p-4, 0x1.c32ba6076d863p-4});
  Two<T> series = ordered_sum(T(s.hi + s.hi), second.hi);
  T tail = ma_(cube.hi * z.hi, p, series.lo + (s.lo + s.lo + second.lo));
  Two<T> sum = exact_sum(T(e * T(kLn2Hi<T>)), series.hi);
  return ordered_sum(sum.hi, T(sum.lo + ma_(e, T(kLn2Lo<T>), tail)));
}

// x^y for finite x > 0.
template <Floating T> SVOD_INLINE T pow_positive(T x, T y) {
  // A larger exponent changes no result (x = 1 gives 1), but the product could overflow.
  const T most = T(Element<T>(kIsFloat<T> ? 0x1p40 : 0x1p80));
  y = choose(y < most, choose(y > -most, y, T(-most)), most);
  Two<T> l = log_two(x), p = exact_product(y, l.hi);
  T tail = ma_(y, l.lo, p.lo);
  T head = at_most(at_least(p.hi, kExpLow<T>), kExpHigh<T>);
  return exp_of_parts(exp_parts<T>(head, choose(head == p.hi, tail, T(0))));
}
template <Floating T> SVOD_INLINE T pow_(T x, T y) {
  T size = abs_(x), half = y * T(Element<T>(0.5));
  auto whole = trunc_(y) == y;
  auto odd = whole & (trunc_(half) != half);
  T result = pow_positive(size, y);
  auto down = y < T(0);
  result = choose(size == T(0), choose(down, T(kInf<T>), T(0)), result);
  result = choose(size == T(kInf<T>), choose(down, T(0), T(kInf<T>)), result);
  T signed_result = choose(odd, copysign_(result, x), result);
  result = choose((x < T(0)) & !whole & (size < T(kInf<T>)), T(kNan<T>), signed_result);
  result = choose((x != x) | (y != y), T(x + y), result);
  return choose((y == T(0)) | (x == T(1)), T(1), result);
}

// Integers: repeated squaring, wrapping. A negative exponent gives the truncated
// quotient.
template <Integral T> SVOD_INLINE T pow_(T a, T b) {
  using U = UintOf<T>;
  T result = T(1), base = a;
  U bits = bits_<U>(b);
  for (int i = 0; i < kWidth<T> && any_(bits != U(0)); i++) {
    result = choose((bits & U(1)) != U(0), T(result * base), result);
    base = T(base * base);
    bits = U(bits >> U(1));
  }
  if constexpr (Signed<T>) {
    T inverse = choose(a == T(1), T(1), T(0));
    inverse = choose(a == T(-1), choose((b & T(1)) != T(0), T(-1), T(1)), inverse);
    result = choose(b < T(0), inverse, result);
  }
  return result;
}

} // namespace scalar

#endif
