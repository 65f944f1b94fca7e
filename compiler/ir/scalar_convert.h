// Casts between lane types, and the floats of 16 bits and less. Needs scalar_functions.h
// before it.
//
//   convert_<E>(x)      x's lanes as E: float to integer truncates and saturates, NaN
//   gives 0;
//                       integer to integer wraps
//   to_bool_(x)         0 or 1
//   f16_to_float, bf16_to_float     u16 lanes -> float lanes
//   float_to_f16, float_to_bf16     rounded to nearest even
//   f8e4m3fn_to_float, float_to_f8e4m3fn, ...   the same for the codecs of dtypes.def in
//                       u8 lanes. Too large a value becomes infinity where the format has
//                       it, else NaN, else the largest value (f4e2m1): a cast that
//                       saturates clamps beforehand.
//   odd_float(x)        double -> float for a cast to a float computed in float: rounded
//                       to odd, so that the second rounding gives what one rounding would
//
// These conversions are integer code: few targets have instructions for all of them,
// and compilers call library functions where they are missing. Kernels for x86 with F16C
// use its instructions for f16, which give the same bits.
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

// Towards zero, as an integer of the float's width; of numbers that its mantissa holds.
// QEMU 7.2 ends by an assertion at RISC-V's vector instruction for it, so there the
// number is moved to where the mantissa's last bit counts one.
template <Floating T> SVOD_INLINE IntOf<T> small_whole_(T x) {
#if defined(__riscv_vector)
  if constexpr (kVector<T>) {
    const T moved = T(Element<T>(u64(3) << (kMantissa<T> - 1)));
    return bits_<IntOf<T>>(T(trunc_(x) + moved)) - bits_<IntOf<T>>(moved);
  }
#endif
  return lanes_<typename Lane<Element<T>>::Int>(x);
}

// The same for any number that E holds.
template <class E, Floating T> SVOD_INLINE Like<T, E> whole_(T x) {
#if defined(__riscv_vector)
  if constexpr (kVector<T> && kWidth<E> > kMantissa<T>) {
    if constexpr (kWidth<E> > kWidth<T>) return whole_<E>(lanes_<double>(x));
    constexpr int kHalf = kWidth<E> / 2;
    constexpr auto kStep = Element<T>(u64(1) << kHalf);
    const T all = trunc_(x), upper = floor_(T(all / kStep));
    return (lanes_<E>(small_whole_(upper)) << kHalf) +
           lanes_<E>(small_whole_(T(all - upper * kStep)));
  }
#endif
  return lanes_<E>(x);
}

template <class E, Floating T> SVOD_INLINE Like<T, E> saturate_(T x) {
  using F = Element<T>;
  using To = Like<T, E>;
  if constexpr (kWidth<E> < kMantissa<T>) {
    // Both limits are exact in F: clamp, then convert through a lane of F's own width.
    // NaN is above nothing, which makes it the lowest: 0 where there are no negatives.
    // The lower limit comes last: a compiler may take the choice for maxNum, which makes
    // a signalling NaN quiet (AArch64), and that must not meet the upper limit.
    T high = T(F(kHighest<E>)), low = T(F(kLowest<E>));
    T number = Signed<E> ? choose(x == x, x, T(0)) : x;
    number = choose(number >= high, high, number);
    number = choose(number > low, number, low);
    return lanes_<E>(small_whole_(number));
  } else {
    T number = choose(x == x, x, T(0));
    T high = T(kBeyond<E, F>), low = T(F(kLowest<E>));
    auto above = number >= high, below = number < low;
    To inside = whole_<E>(T(choose(above | below, T(0), number)));
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

#if defined(__clang__) && (defined(__F16C__) || defined(__NVPTX__))
// A float that nobody sees to have been a half. Clang would compare the halves instead,
// and where no instruction does that, lane by lane (the sigmoid of a rounded number: 150
// instructions for the six of a vector).
template <class F> SVOD_INLINE F no_longer_half_(F x) {
#if defined(__F16C__)
#pragma clang fp reassociate(on)
  return __arithmetic_fence(x);
#else
  return x;
#endif
}
template <class H> SVOD_INLINE Like<H, float> f16_to_float(H half) {
  if constexpr (kVector<H>)
    return no_longer_half_(
        __builtin_convertvector(bits_<Like<H, _Float16>>(half), Like<H, float>));
  else
    return float(bits_<_Float16>(half));
}
template <class F> SVOD_INLINE Like<F, u16> float_to_f16(F x) {
  if constexpr (kVector<F>)
    return bits_<Like<F, u16>>(__builtin_convertvector(x, Like<F, _Float16>));
  else
    return bits_<u16>(_Float16(x));
}
#else
// Half to float: a shift puts the fields in place, an addition corrects the bias (twice
// for infinity and NaN, which becomes quiet). Subnormals are integers times 2^-24; no
// subnormal float is met on the way, as some targets take those for zero.
template <class H> SVOD_INLINE Like<H, float> f16_to_float(H half) {
  using U = Like<H, u32>;
  using F = Like<H, float>;
  U h = lanes_<u32>(half);
  U exponent = h & U(0x7c00), bias = U(112u << 23);
  U number = ((h & U(0x7fff)) << 13) + bias;
  U nan = choose((h & U(0x3ff)) == U(0), U(0), U(0x400000));
  number = choose(exponent == U(0x7c00), U((number + bias) | nan), number);
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
#endif

// Sign, exponent and mantissa in the low bits of a byte. What the exponent of all ones
// means differs:
//   Ieee     infinity and NaN
//   TopNan   numbers; all ones in the mantissa, too, is NaN
//   ZeroNan  numbers; the code of -0 is NaN, and there is one zero
//   None     numbers
enum class Special { Ieee, TopNan, ZeroNan, None };
template <int kExponent, int kMantissa, int kBias, Special kSpecial> struct SmallFloat {
  static constexpr u32 kSign = 1u << (kExponent + kMantissa), kSize = kSign - 1;
  static constexpr u32 kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr bool kIeee = kSpecial == Special::Ieee;
  static constexpr bool kOneZero = kSpecial == Special::ZeroNan;
  // Without NaN in the format, NaN becomes 0.
  static constexpr u32 kNan = kIeee ? kInfinity + (kInfinity & -kInfinity) / 2
                              : kSpecial == Special::TopNan ? kSize
                              : kOneZero                    ? kSign
                                                            : 0;
  // What follows the largest number.
  static constexpr u32 kBeyond = kIeee ? kInfinity : kOneZero ? kSign : kSize;
  static constexpr u32 kShift = 23 - kMantissa, kRebias = u32(127 - kBias) << 23;
  static constexpr u32 kLeastNormal = u32(128 - kBias) << 23; // as bits of a float
  // The float whose last place is that of the format's subnormals, as bits.
  static constexpr u32 kMagic = u32(127 + 24 - kBias - kMantissa) << 23;
  static constexpr u32 kUnit = u32(128 - kBias - kMantissa) << 23; // last place, as bits

  template <class H> SVOD_INLINE static Like<H, float> to_float(H code) {
    using U = Like<H, u32>;
    using F = Like<H, float>;
    U all = lanes_<u32>(code), size = all & U(kSize);
    U number = (size << kShift) + U(kRebias);
    F small = F(lanes_<float>(bits_<Like<H, i32>>(size)) * bits_<float>(kUnit));
    number = choose(size < U(1u << kMantissa), bits_<U>(small), number);
    if constexpr (kIeee)
      number = choose(size >= U(kInfinity), U((size << kShift) | U(0x7f800000)), number);
    if constexpr (kSpecial == Special::TopNan)
      number = choose(size == U(kSize), U(0x7fc00000), number);
    if constexpr (kOneZero) number = choose(all == U(kSign), U(0x7fc00000), number);
    return bits_<F>(U(number | ((all & U(kSign)) << (31 - kExponent - kMantissa))));
  }

  // As float_to_f16.
  template <class F> SVOD_INLINE static Like<F, u8> from_float(F x) {
    using U = Like<F, u32>;
    U u = bits_<U>(x);
    U sign = (u >> (31 - kExponent - kMantissa)) & U(kSign), size = u & 0x7fffffff;
    U odd = (size >> kShift) & 1;
    U normal = (size - U(kRebias) + U((1u << (kShift - 1)) - 1) + odd) >> kShift;
    F small = bits_<F>(choose(size < U(kLeastNormal), size, U(0)));
    U subnormal = bits_<U>(F(small + F(bits_<float>(kMagic)))) - U(kMagic);
    U code = choose(size < U(kLeastNormal), subnormal, normal);
    code = choose(code > U(kBeyond), U(kBeyond), code);
    code = choose(size > U(0x7f800000), U(kNan), code);
    if constexpr (kOneZero)
      sign = choose((code == U(0)) | (code == U(kSign)), U(0), sign);
    return lanes_<u8>(U(code | sign));
  }
};
using F4E2M1 = SmallFloat<2, 1, 1, Special::None>;
using F8E4M3FN = SmallFloat<4, 3, 7, Special::TopNan>;
using F8E4M3FNUZ = SmallFloat<4, 3, 8, Special::ZeroNan>;
using F8E5M2 = SmallFloat<5, 2, 15, Special::Ieee>;
using F8E5M2FNUZ = SmallFloat<5, 2, 16, Special::ZeroNan>;

template <class H> SVOD_INLINE Like<H, float> f4e2m1_to_float(H code) {
  return F4E2M1::to_float(code);
}
template <class F> SVOD_INLINE Like<F, u8> float_to_f4e2m1(F x) {
  return F4E2M1::from_float(x);
}
template <class H> SVOD_INLINE Like<H, float> f8e4m3fn_to_float(H code) {
  return F8E4M3FN::to_float(code);
}
template <class F> SVOD_INLINE Like<F, u8> float_to_f8e4m3fn(F x) {
  return F8E4M3FN::from_float(x);
}
template <class H> SVOD_INLINE Like<H, float> f8e4m3fnuz_to_float(H code) {
  return F8E4M3FNUZ::to_float(code);
}
template <class F> SVOD_INLINE Like<F, u8> float_to_f8e4m3fnuz(F x) {
  return F8E4M3FNUZ::from_float(x);
}
template <class H> SVOD_INLINE Like<H, float> f8e5m2_to_float(H code) {
  return F8E5M2::to_float(code);
}
template <class F> SVOD_INLINE Like<F, u8> float_to_f8e5m2(F x) {
  return F8E5M2::from_float(x);
}
template <class H> SVOD_INLINE Like<H, float> f8e5m2fnuz_to_float(H code) {
  return F8E5M2FNUZ::to_float(code);
}
template <class F> SVOD_INLINE Like<F, u8> float_to_f8e5m2fnuz(F x) {
  return F8E5M2FNUZ::from_float(x);
}

// A power of two by its exponent alone; code 255 is NaN. Its smallest, 2^-127, is a
// subnormal float.
template <class H> SVOD_INLINE Like<H, float> f8e8m0_to_float(H code) {
  using U = Like<H, u32>;
  U exponent = lanes_<u32>(code);
  U number = choose(exponent == U(0), U(0x400000), U(exponent << 23));
  number = choose(exponent == U(255), U(0x7fc00000), number);
  return bits_<Like<H, float>>(number);
}
// The nearest, the larger one of two; NaN for what has no sign and no place there.
template <class F> SVOD_INLINE Like<F, u8> float_to_f8e8m0(F x) {
  using U = Like<F, u32>;
  U u = bits_<U>(x);
  U code = (u + U(0x400000)) >> 23;
  code = choose(u < U(0x600000), U(0), code);
  code = choose((u < U(0x400000)) | (code > U(255)), U(255), code);
  return lanes_<u8>(code);
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
