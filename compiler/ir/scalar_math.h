// The scalar functions of ops.def, mathematics but for the trigonometry (scalar_angle.h).
// Needs scalar_functions.h before it.
//
// Each function is a reduction to a small interval, a polynomial there (minimax for the
// relative error of the function, made with the Remez exchange), and a reconstruction.
// All lanes go the same way; what differs is taken by choose(). float functions use no
// double, as half of the firmware targets have none. Measured bounds in units in the last
// place are in tests/unit/scalar_functions_test.cpp.
#ifndef SVOD_SCALAR_MATH
#define SVOD_SCALAR_MATH
#ifndef SVOD_SCALAR_FUNCTIONS
#include "compiler/ir/scalar_functions.h"
#endif

namespace scalar {

// c[0] + c[1] x + c[2] x^2 + ...
template <Floating T, int kCount>
SVOD_INLINE T poly_(T x, const Element<T> (&c)[kCount]) {
  T sum = T(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; i--) sum = ma_(sum, x, T(c[i]));
  return sum;
}

// The square root, correctly rounded. Without an instruction for it: digit by digit.
#if !defined(__clang__) || defined(__SSE2__) || defined(__aarch64__) ||                  \
    defined(__wasm__) || defined(__riscv_d) || (defined(__ARM_FP) && (__ARM_FP & 8))
#define SVOD_SQRT_WIDTH 64
#elif defined(__riscv_f) || (defined(__ARM_FP) && (__ARM_FP & 4))
#define SVOD_SQRT_WIDTH 32
#else
#define SVOD_SQRT_WIDTH 0
#endif
template <Floating T> SVOD_INLINE T digit_sqrt(T a) {
  using U = UintOf<T>;
  using W = Element<U>;
  constexpr int kBits = kMantissa<T>, kLift = (kBits + 2) / 2;
  constexpr W kLeast = W(1) << kBits;
  // Subnormals are lifted by 4^kLift.
  auto small = bits_<U>(a) < U(kLeast);
  T lifted = T(a * T(Element<T>(u64(1) << (2 * kLift))));
  U u = bits_<U>(choose(small, lifted, a));
  U exponent = u >> W(kBits), rest = (u & U(W(kLeast - 1))) | U(kLeast);
  rest = choose((exponent & U(W(1))) == U(W(0)), U(rest << W(2)), U(rest << W(1)));
  U root = U(W(0)), sum = U(W(0)), bit = U(W(kLeast * 2));
  for (int i = 0; i < kBits + 2; i++) {
    U trial = sum + bit;
    auto fits = trial <= rest;
    sum = choose(fits, U(trial + bit), sum);
    rest = choose(fits, U(rest - trial), rest) << W(1);
    root = choose(fits, U(root + bit), root);
    bit = bit >> W(1);
  }
  // The last digit rounds. A root is never halfway between two numbers.
  U rounded = (root >> W(1)) + (root & U(W(1)));
  U half = ((exponent + U(W(kBias<T>))) >> W(1)) - U(W(1));
  T y = bits_<T>(U(rounded + (half << W(kBits))));
  y = choose(small, T(y * T(1 / Element<T>(u64(1) << kLift))), y);
  return choose((a > T(0)) & (a < T(kInf<T>)), y, choose(a < T(0), T(kNan<T>), a));
}
template <Floating T> SVOD_INLINE T sqrt_(T a) {
  if constexpr (SVOD_SQRT_WIDTH < kWidth<T>) {
    return digit_sqrt(a);
  } else {
#ifdef __clang__
    return __builtin_elementwise_sqrt(a);
#else
#ifdef SVOD_PLAIN
    if constexpr (kVector<T>)
      return T(sqrt_(a.lo), sqrt_(a.hi));
    else
#endif
        if constexpr (kIsFloat<T>)
      return __builtin_sqrtf(a);
    else
      return __builtin_sqrt(a);
#endif
  }
}

// Adding this and taking it away rounds to an integer, which is then in the low bits.
template <Floating T>
inline constexpr Element<T> kShifter = Element<T>(u64(3) << (kMantissa<T> - 1));
template <Floating T>
inline constexpr Element<T> kLog2E = Element<T>(0x1.71547652b82fep+0);
// ln 2 in two parts. A product of the first with an exponent is exact.
template <Floating T>
inline constexpr Element<T> kLn2Hi = kIsFloat<T> ? 0x1.62e4p-1 : 0x1.62e42fefp-1;
template <Floating T>
inline constexpr Element<T> kLn2Lo = kIsFloat<T> ? 0x1.7f7d1cp-20 : 0x1.473de6af278edp-34;

// e^x = 2^n (1 + r + r^2 p), where |r + r^2 p| < 0.42. For |x| below about 800 (float) or
// 1e5 (double). A tail is added to x where x has one.
template <Floating T> struct ExpParts {
  T r, p, n;
  IntOf<T> biased; // n + 2 * bias in its low bits, zeros in the next
};
template <Floating T, class... Tail>
SVOD_INLINE ExpParts<T> exp_parts(T x, Tail... tail) {
  const T shifter = T(kShifter<T> + 2 * kBias<T>);
  T shifted = ma_(x, T(kLog2E<T>), shifter);
  T n = shifted - shifter;
  T r = (ma_(-n, T(kLn2Lo<T>), ma_(-n, T(kLn2Hi<T>), x)) + ... + tail);
  T p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(r, {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f,
                     0x1.6a2396p-10f});
  else
    p = poly_<T>(r, {0x1p-1, 0x1.555555555555bp-3, 0x1.5555555555502p-5,
                     0x1.111111110ec1cp-7, 0x1.6c16c16c30862p-10, 0x1.a01a01b398516p-13,
                     0x1.a01a0135bf448p-16, 0x1.71ddefddb9088p-19, 0x1.27e5b565d6c89p-22,
                     0x1.af6c5fae3229bp-26, 0x1.1e3c3bc28f019p-29});
  return {r, p, n, bits_<IntOf<T>>(shifted)};
}
// 2^n, for exponents of normal numbers.
template <Floating T> SVOD_INLINE T power_of_two(IntOf<T> n) {
  using I = IntOf<T>;
  return bits_<T>(I((n + I(kBias<T>)) << Element<I>(kMantissa<T>)));
}
// 2^-n of the parts put together, in [1, 2) or around it. Fused, the shorter form loses
// no more; else its inner sum with 1 would be rounded.
template <Floating T> SVOD_INLINE T exp_of_rest(ExpParts<T> e) {
  if constexpr (kHasFma<T>)
    return ma_(ma_(e.p, e.r, T(1)), e.r, T(1));
  else
    return T(1) + ma_(e.r * e.r, e.p, e.r);
}
#ifdef SVOD_HAS_512
// a * 2^n in one instruction, with 0 where `seen` has no bit.
template <class T> SVOD_INLINE T scale512(T a, T n, u16 seen = u16(-1)) {
  return bits_<T>(__builtin_ia32_scalefps512_mask(
      bits_<Native512>(a), bits_<Native512>(n), Native512{}, seen, kModeAsItIs));
}
#endif
// The parts put together, times `factor`, a power of two near 1. n is halved and
// multiplied in two steps, so that results beyond either end become subnormal, 0 and
// infinity by themselves.
template <Floating T>
SVOD_INLINE T exp_of_parts(ExpParts<T> e, Element<T> factor = Element<T>(1)) {
  using I = IntOf<T>;
  using W = Element<I>;
  const T rest_of_one = exp_of_rest(e);
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) return scale512(T(rest_of_one * factor), e.n);
#endif
  I half = e.biased >> W(1), rest = e.biased - half;
  T low = bits_<T>(I(half << W(kMantissa<T>)));
  T high = bits_<T>(I(rest << W(kMantissa<T>)));
  return rest_of_one * low * (high * T(factor));
}

// Where e^x is infinite, where it has long rounded to 0, and where the power of two of a
// step is 0 itself. A product that is rounded to 0 takes an Intel processor a detour of
// more than a hundred clocks, and a softmax under a mask has such elements by the half (4
// heads of 64 x 64 scores: 54 us), so what is far below is multiplied by 0 instead.
template <Floating T> inline constexpr Element<T> kExpHigh = kIsFloat<T> ? 90.0 : 711.0;
template <Floating T>
inline constexpr Element<T> kExpZero = kIsFloat<T> ? -104.0 : -746.0;
template <Floating T>
inline constexpr Element<T> kExpLow = kIsFloat<T> ? -176.0 : -1418.0;

// x, or the bound it passes; NaN stays. One instruction of AVX-512, which gives its
// second operand where one is NaN; LLVM makes a comparison and a choice.
template <Floating T> SVOD_INLINE T at_most(T x, Element<T> bound) {
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) return min512(T(bound), x);
#endif
#ifdef SVOD_HAS_NEON
  if constexpr (kIsNeon<T>) return min_neon(x, T(bound));
#endif
  return choose(x > T(bound), T(bound), x);
}
template <Floating T> SVOD_INLINE T at_least(T x, Element<T> bound) {
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) return max512(T(bound), x);
#endif
#ifdef SVOD_HAS_NEON
  if constexpr (kIsNeon<T>) return max_neon(x, T(bound));
#endif
  return choose(x < T(bound), T(bound), x);
}

template <Floating T> SVOD_INLINE T exp_(T x) {
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) {
    const ExpParts<T> e = exp_parts<T>(at_most(x, kExpHigh<T>));
    return scale512(exp_of_rest(e), e.n, not_below512(x, T(kExpZero<T>)));
  }
#endif
  return exp_of_parts(exp_parts<T>(at_most(at_least(x, kExpLow<T>), kExpHigh<T>)));
}

// From e^-|x|, so that neither tail loses digits.
template <Floating T> SVOD_INLINE T sigmoid_(T x) {
  T e = exp_of_parts(exp_parts<T>(-at_most(abs_(x), -kExpLow<T>)));
  return choose(x < T(0), e, T(1)) / (T(1) + e);
}

// e^x - 1 from the parts of e^x; loses nothing near 0, as the 1 is kept apart.
template <Floating T> SVOD_INLINE T expm1_parts(ExpParts<T> e) {
  using I = IntOf<T>;
  T scale = bits_<T>(I((e.biased - I(kBias<T>)) << Element<I>(kMantissa<T>)));
  return ma_(ma_(e.r * e.r, e.p, e.r), scale, scale - T(1));
}

// With m = e^2|x| - 1: m / (m + 2). 1 from the bound on.
template <Floating T> SVOD_INLINE T tanh_(T x) {
  T size = at_most(abs_(x), Element<T>(kIsFloat<T> ? 9.25 : 19.5));
  T m = expm1_parts<T>(exp_parts<T>(size + size));
  return copysign_(T(m / (m + T(2))), x);
}

// 2^a - 1 for a in (-126, 0]: a whole number and a rest, whose power is a polynomial. The
// sum with the shifter has the exponent of the power in its low bits.
template <Floating T>
  requires kIsFloat<T>
SVOD_INLINE T exp2m1(T a) {
  using I = IntOf<T>;
  const T shifter = T(kShifter<T> + kBias<T>);
  T shifted = a + shifter, rest = a - (shifted - shifter);
  T scale = bits_<T>(I(bits_<I>(shifted) << Element<I>(kMantissa<T>)));
  T p = poly_<T>(rest, {0x1.62e430p-1f, 0x1.ebfbdep-3f, 0x1.c6af6ep-5f, 0x1.3b2bap-7f,
                        0x1.5f07b4p-10f, 0x1.4308c4p-13f});
  return ma_(rest * p, scale, scale - T(1));
}

// erf x = 1 - e^(-x q(x)) with q(x) = -ln(1 - erf x) / x, which is smooth: one polynomial
// serves the whole range, and no division is needed. 1 from the bound on. float takes
// powers of 2, whose exponent needs no product: an error of its argument, which grows
// with x, meets a power that vanishes faster.
template <Floating T> SVOD_INLINE T erf_(T x) {
  T size = at_most(abs_(x), Element<T>(kIsFloat<T> ? 4.0 : 6.0));
  if constexpr (kIsFloat<T>) {
    T a = size * poly_<T>(size, {-0x1.a0be84p+0f, -0x1.d63ec4p-1f, -0x1.2fabe2p-3f,
                                 0x1.c4b922p-6f, 0x1.e54a1ep-13f, -0x1.3b3aep-9f,
                                 0x1.deabaap-11f, -0x1.63ee2ep-13f, 0x1.c01620p-17f});
    return copysign_(exp2m1(a), x);
  } else {
    T q = poly_<T>(
        size, {0x1.20dd750429b6dp+0,   0x1.45f306dc9c885p-1,   0x1.a4f4e2a1b466dp-4,
               -0x1.39668594d5496p-6,  -0x1.b6b684fa52d8bp-13, 0x1.bca67462fb2b6p-10,
               -0x1.3564fb294a1d2p-11, 0x1.b2017c7d44543p-16,  0x1.0e9eaee7fc209p-14,
               -0x1.f3c440bfa2301p-16, 0x1.d82c2a68de213p-19,  0x1.687061d67713fp-19,
               -0x1.a843e45492468p-20, 0x1.a794242c68bf8p-23,  0x1.f706770270683p-23,
               -0x1.a637f7fd2b15ep-23, 0x1.86339c6bd191cp-24,  -0x1.03eefe69d1e1dp-25,
               0x1.0ac255f6bffb5p-27,  -0x1.ada7f63b12781p-30, 0x1.0edb4091f872ap-32,
               -0x1.06b9bda064497p-35, 0x1.7b17b4e689d7ep-39,  -0x1.7f516f5e686bfp-43,
               0x1.e4a7b235b7c69p-48,  -0x1.203005d389301p-53});
    return copysign_(T(-expm1_parts<T>(exp_parts<T>(-(size * q)))), x);
  }
}

// x times the share of a normal distribution below x, x / 2 (1 + erf(x / sqrt 2)). What
// the share is above a half is x times an even function, here a quotient of polynomials
// in x^2: half as much work as by way of erf, whose relative error near 0 it can do
// without. Beyond +-5.7 the share is 0 or 1.
template <Floating T> SVOD_INLINE T gelu_(T x) {
  const T half = T(Element<T>(0.5));
  if constexpr (kIsFloat<T>) {
    T z = at_most(T(x * x), 33.0f);
    T p = poly_<T>(z, {0x1.988452p-2f, 0x1.12182ap-5f, 0x1.30d6cep-8f, 0x1.59224ap-13f,
                       0x1.a6e468p-18f, 0x1.89f4aep-26f});
    T q = poly_<T>(z, {0x1.000000p+0f, 0x1.008c48p-2f, 0x1.d191a2p-6f, 0x1.e7c16cp-10f,
                       0x1.2eb06ap-14f, 0x1.41dcc0p-20f});
    return x * (at_most(at_least(T(x * (p / q)), -0.5f), 0.5f) + half);
  } else {
    return x * half * (T(1) + erf_(T(x * T(Element<T>(0x1.6a09e667f3bcdp-1)))));
  }
}

// x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), for finite x > 0.
template <Floating T> struct LogParts {
  T f;
  IntOf<T> e;
};
template <Floating T> SVOD_INLINE LogParts<T> log_parts(T x) {
  using I = IntOf<T>;
  using W = Element<I>;
  constexpr int kBits = kMantissa<T>;
  const T least = power_of_two<T>(I(1 - kBias<T>));
  constexpr W kRoot = kIsFloat<T> ? W(0x3f3504f3) : W(0x3fe6a09e667f3bcd);
  auto small = x < least;
  T normal = choose(small, T(x * T(Element<T>(u64(1) << (kBits + 1)))), x);
  I above = bits_<I>(normal) - I(kRoot);
  I e = (above >> W(kBits)) - choose(small, I(W(kBits + 1)), I(0));
  T m = bits_<T>(I((above & I((W(1) << kBits) - 1)) + I(kRoot)));
  return {m - T(1), e};
}
// A small integer as a floating number; few targets convert 64-bit lanes themselves.
template <Floating T> SVOD_INLINE T from_int(IntOf<T> i) {
  using I = IntOf<T>;
  return bits_<T>(I(i + bits_<I>(T(kShifter<T>)))) - T(kShifter<T>);
}
// ln(2^e (1 + f)).
template <Floating T> SVOD_INLINE T log_of_parts(T f, IntOf<T> exponent) {
  T e = from_int<T>(exponent), low = e * T(kLn2Lo<T>), high = e * T(kLn2Hi<T>);
  T half_square = f * f * T(Element<T>(0.5));
  if constexpr (kIsFloat<T>) {
    T p = poly_<T>(f, {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547246p-3f,
                       0x1.22da2cp-3f, -0x1.0d854p-3f, 0x1.055b26p-3f, -0x1.38b5p-4f});
    return high + (f + (ma_(f * f * f, p, low) - half_square));
  } else {
    // A series in s = f / (2 + f) needs half the terms; worth a division here.
    T s = f / (T(2) + f), z = s * s;
    T p = poly_<T>(z, {0x1.5555555555555p-1, 0x1.9999999999e03p-2, 0x1.249249242ae9ep-2,
                       0x1.c71c72596d669p-3, 0x1.745cde1002688p-3, 0x1.3b20b2695509fp-3,
                       0x1.0f5c25d350551p-3, 0x1.0f6924ca64ecbp-3});
    return high + (f - (half_square - (s * ma_(z, p, half_square) + low)));
  }
}
// `y` for positive finite x, and the logarithm's value elsewhere; `zero` is x = 0 of log.
template <Floating T> SVOD_INLINE T log_domain(T x, T y) {
  T outside = choose(x == T(0), T(-kInf<T>), T(kNan<T>));
  return choose(x > T(0), choose(x < T(kInf<T>), y, x), outside);
}
template <Floating T> SVOD_INLINE T log_(T x) {
  LogParts<T> parts = log_parts(x);
  return log_domain(x, log_of_parts<T>(parts.f, parts.e));
}
// u + c = 1 + x exactly; c joins the fraction of u.
template <Floating T> SVOD_INLINE T log1p_(T x) {
  using I = IntOf<T>;
  T u = T(1) + x, back = u - T(1);
  T c = (T(1) - (u - back)) + (x - back);
  LogParts<T> parts = log_parts(u);
  I e = choose(parts.e < I(64), parts.e, I(64));
  T f = choose(u < T(0x1p60f), ma_(c, power_of_two<T>(-e), parts.f), parts.f);
  return choose(x == T(0), x, log_domain(u, log_of_parts<T>(f, parts.e)));
}

// Half of e^x for x >= 0; finite longer than e^x.
template <Floating T> SVOD_INLINE T half_exp(T x) {
  return exp_of_parts(exp_parts<T>(at_most(x, kExpHigh<T>)), Element<T>(0.5));
}
template <Floating T> SVOD_INLINE T cosh_(T x) {
  T half = half_exp(abs_(x));
  return half + T(Element<T>(0.25)) / half;
}
template <Floating T> SVOD_INLINE T sinh_(T x) {
  T size = abs_(x), half = half_exp(size), z = size * size;
  T p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z, {0x1.555556p-3f, 0x1.111136p-7f, 0x1.9ffe12p-13f, 0x1.7a2672p-19f});
  else
    p = poly_<T>(z, {0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a019fbep-13,
                     0x1.71de3a55742f6p-19, 0x1.ae645673de2dp-26, 0x1.61246b1f4a854p-33,
                     0x1.ae755757e9f79p-41, 0x1.9a7f276a5a1bdp-49});
  T small = ma_(size * z, p, size);
  return copysign_(choose(size < T(1), small, T(half - T(Element<T>(0.25)) / half)), x);
}

// Beyond `big`, 1 + x^2 is x^2, which may overflow: ln 2|x| instead.
template <Floating T>
inline constexpr Element<T> kBig = kIsFloat<T> ? Element<T>(0x1p60) : Element<T>(0x1p500);
template <Floating T> SVOD_INLINE T asinh_(T x) {
  T size = abs_(x), z = size * size;
  auto big = size > T(kBig<T>);
  T t = size + z / (T(1) + sqrt_(T(z + T(1))));
  T y = log1p_(choose(big, size, t));
  return copysign_(choose(big, T(y + T(Element<T>(0x1.62e42fefa39efp-1))), y), x);
}
template <Floating T> SVOD_INLINE T acosh_(T x) {
  T t = x - T(1);
  auto big = x > T(kBig<T>);
  T y = log1p_(choose(big, x, T(t + sqrt_(T(t * (t + T(2)))))));
  y = choose(big, T(y + T(Element<T>(0x1.62e42fefa39efp-1))), y);
  return choose(x < T(1), T(kNan<T>), y);
}
template <Floating T> SVOD_INLINE T atanh_(T x) {
  T size = abs_(x);
  T y = T(Element<T>(0.5)) * log1p_(T((size + size) / (T(1) - size)));
  return copysign_(y, x);
}

} // namespace scalar

#endif
