// Casts between lane types, and the 16-bit floats. Needs scalar_functions.h before it.
//
//   convert_<E>(x)      x's lanes as E: float to integer truncates and saturates, NaN
//   gives 0;
//                       integer to integer wraps
//   to_bool_(x)         0 or 1
//   f16_to_float, bf16_to_float     u16 lanes -> float lanes
//   float_to_f16, float_to_bf16     rounded to nearest even
//   odd_float(x)        double -> float for a cast to f16 or bf16: rounded to odd, so
//   that the
//                       second rounding gives what one rounding would
//
// The 16-bit conversions are integer code: few targets have instructions for all of them,
// and compilers call library functions where they are missing.
#ifndef SVOD_SCALAR_CONVERT
#define SVOD_SCALAR_CONVERT
#ifndef SVOD_SCALAR_FUNCTIONS
#include "compiler/ir/scalar_functions.h"
#endif

namespace scalar {

// The limits of an integer type, as the largest power of two not above them allows.
template <Integral E>
inline constexpr E kLowest = Signed<E> ? E(E(1) << (kWidth<E> - 1)) : E(0);
template <Integral E> inline constexpr E kHighest = E(~kLowest<E>);
// kHighest + 1, which every float format holds exactly.
template <Integral E, class F>
inline constexpr F kBeyond = F(u64(1) << (kWidth<E> - 1)) * (Signed<E> ? F(1) : F(2));

template <class E, Floating T> SVOD_INLINE Like<T, E> saturate_(T x) {
  using F = Element<T>;
  using To = Like<T, E>;
  if constexpr (kWidth<E> < kMantissa<T>) {
    // Both limits are exact in F: clamp, then convert through a lane of F's own width.
    // NaN is above nothing, which makes it the lowest: 0 where there are no negatives.
    T high = T(F(kHighest<E>)), low = T(F(kLowest<E>));
    T number = Signed<E> ? choose(x == x, x, T(0)) : x;
    number = choose(number > low, number, low);
    number = choose(number < high, number, high);
    return lanes_<E>(lanes_<typename Lane<F>::Int>(number));
  } else {
    T number = choose(x == x, x, T(0));
    T high = T(kBeyond<E, F>), low = T(F(kLowest<E>));
    auto above = number >= high, below = number < low;
    To inside = lanes_<E>(choose(above | below, T(0), number));
    return choose(above, To(kHighest<E>), choose(below, To(kLowest<E>), inside));
  }
}

template <class E, class T> SVOD_INLINE Like<T, E> convert_(T x) {
  if constexpr (kSame<E, Element<T>>)
    return x;
  else if constexpr (Floating<T> && Integral<E>)
    return saturate_<E>(x);
  else
    return lanes_<E>(x);
}
template <class T> SVOD_INLINE Like<T, u8> to_bool_(T x) { return test(x != T(0)); }

template <class H> SVOD_INLINE Like<H, float> bf16_to_float(H half) {
  using U = Like<H, u32>;
  return bits_<Like<H, float>>(U(lanes_<u32>(half) << 16));
}
template <class F> SVOD_INLINE Like<F, u16> float_to_bf16(F x) {
  using U = Like<F, u32>;
  U u = bits_<U>(x);
  U rounded = (u + (U(0x7fff) + ((u >> 16) & 1))) >> 16;
  return lanes_<u16>(choose(x == x, rounded, U((u >> 16) | 0x40)));
}

// Half to float: a shift puts the fields in place, an addition corrects the bias (twice
// for infinity and NaN). Subnormals are integers times 2^-24; no subnormal float is met
// on the way, as some targets take those for zero.
template <class H> SVOD_INLINE Like<H, float> f16_to_float(H half) {
  using U = Like<H, u32>;
  using F = Like<H, float>;
  U h = lanes_<u32>(half);
  U exponent = h & U(0x7c00), bias = U(112u << 23);
  U number = ((h & U(0x7fff)) << 13) + bias;
  number = choose(exponent == U(0x7c00), U(number + bias), number);
  F small = F(lanes_<float>(bits_<Like<H, i32>>(U(h & U(0x3ff)))) * F(0x1p-24f));
  number = choose(exponent == U(0), bits_<U>(small), number);
  return bits_<F>(U(number | ((h & U(0x8000)) << 16)));
}
// Float to half. Normal results: add just under half a unit, plus one if the last kept
// bit is odd, and cut. Subnormal results: adding 0.5 lets the hardware round at bit
// 2^-24.
template <class F> SVOD_INLINE Like<F, u16> float_to_f16(F x) {
  using U = Like<F, u32>;
  U u = bits_<U>(x);
  U sign = (u >> 16) & 0x8000, size = u & 0x7fffffff;
  U normal = (size - U(0x38000000) + U(0xfff) + ((size >> 13) & 1)) >> 13;
  F small = bits_<F>(choose(size < U(0x38800000), size, U(0)));
  U subnormal = bits_<U>(F(small + F(0.5f))) - U(0x3f000000);
  U special = choose(size > U(0x7f800000), U(0x7e00 | ((size >> 13) & 0x1ff)), U(0x7c00));
  U half = choose(size < U(0x38800000), subnormal, normal);
  half = choose(size >= U(0x477ff000), special, half);
  return lanes_<u16>(U(half | sign));
}

// Rounded toward zero with the last bit set when anything was cut off. Below the normal
// floats the cut goes deeper than a float's bits, where f16 and bf16 no longer tell: no
// bf16 lies between two subnormal floats' odd neighbours either, as its own bits end 16
// higher.
template <Floating T> SVOD_INLINE Like<T, float> odd_float(T x) {
  using U = Like<T, u32>;
  using F = Like<T, float>;
  F near = lanes_<float>(x);
  U u = bits_<U>(near);
  T back = lanes_<double>(near);
  auto inexact = (back != x) & (x == x) & (abs_(x) < kInf<T>);
  U toward = choose(abs_(back) > abs_(x), U(u - 1), u);
  return bits_<F>(choose(inexact, U(toward | 1), u));
}

} // namespace scalar

#endif
