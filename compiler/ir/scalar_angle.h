// The scalar functions of ops.def, trigonometry. Needs scalar_math.h before it.
//
// sin, cos and tan first take x to r in [-pi/4, pi/4] with x = n pi/2 + r. Up to
// kAngleLimit, pi/2 in parts whose products with n are exact does it. Larger angles are
// rare, and each lane of them is reduced on its own with as many digits of 2/pi as it
// takes, so results are right for every finite x.
#ifndef SVOD_SCALAR_ANGLE
#define SVOD_SCALAR_ANGLE
#ifndef SVOD_SCALAR_MATH
#include "compiler/ir/scalar_math.h"
#endif

namespace scalar {

template <Floating T>
inline constexpr Element<T> kPiHi = Element<T>(0x1.921fb54442d18p+1);
template <Floating T>
inline constexpr Element<T> kPiLo = kIsFloat<T> ? -0x1.777a5cp-24 : 0x1.1a62633145c07p-53;
template <Floating T> inline constexpr Element<T> kHalfPiHi = kPiHi<T> / 2;
template <Floating T> inline constexpr Element<T> kHalfPiLo = kPiLo<T> / 2;

// x = n pi/2 + r; of n the low two bits count.
template <Floating T> struct Angle {
  T r;
  IntOf<T> n;
};

// x is an integer m times 2^e. Of the product m * 2/pi, words of 2/pi that only add
// multiples of 4 are left out, and so are those too small to matter; the rest is an exact
// integer product. Its bits just above the binary point are n, those below, as a signed
// fraction, give r.
template <Floating T> static __attribute__((noinline)) Angle<T> reduce_large(T x) {
  using U = UintOf<T>;
  static constexpr u32 kTwoOverPi[] = {
      0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
      0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
      0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
      0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
      0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
      0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d};
  constexpr int kBits = kMantissa<T>, kWords = kIsFloat<T> ? 4 : 7, kUnit = kWidth<T>;
  U u = bits_<U>(x);
  u64 m = u64(u & U((U(1) << kBits) - 1)) | (u64(1) << kBits);
  int e = int((u >> kBits) & U(2 * kBias<T> + 1)) - kBias<T> - kBits;
  int first = e >= 2 ? (e - 2) / 32 : 0;
  // The product, lowest word first; zeros above it for the windows below.
  u32 product[kWords + 4] = {};
  for (int part = 0; part < 2; part++) {
    u64 factor = (m >> (32 * part)) & 0xffffffffu, carry = 0;
    for (int i = 0; i < kWords; i++) {
      carry += factor * kTwoOverPi[first + kWords - 1 - i] + product[i + part];
      product[i + part] = u32(carry);
      carry >>= 32;
    }
    product[kWords + part] = u32(carry);
  }
  auto window = [&](int bit) {
    U value = U(0);
    for (int at = 0; at < kUnit; at += 32) {
      int word = (bit + at) >> 5, shift = (bit + at) & 31;
      u32 low = product[word] >> shift;
      u32 high = shift ? product[word + 1] << (32 - shift) : 0;
      value |= U(U(low | high) << at);
    }
    return value;
  };
  int point = 32 * (first + kWords) - e;
  U n = window(point), hi = window(point - kUnit), lo = window(point - 2 * kUnit);
  bool negative = (hi >> (kUnit - 1)) != 0;
  if (negative) {
    lo = U(0) - lo;
    hi = U(~hi) + U(lo == 0);
    n = n + 1;
  }
  const T unit = bits_<T>(U(U(kBias<T> - kUnit) << kBits));
  T fraction = T(hi) * unit + T(lo) * unit * unit;
  T r = ma_(fraction, T(kHalfPiHi<T>), fraction * T(kHalfPiLo<T>));
  if (negative != (x < T(0))) r = -r;
  if (x < T(0)) n = U(0) - n;
  return {x - x == T(0) ? r : T(kNan<T>), IntOf<T>(n & U(3))};
}

template <Floating T>
inline constexpr Element<T> kAngleLimit = kIsFloat<T> ? 12000.0 : 500000.0;

template <Floating T> SVOD_INLINE Angle<T> reduce_angle(T x) {
  using I = IntOf<T>;
  const T shifter = T(kShifter<T>);
  T shifted = ma_(x, T(Element<T>(0x1.45f306dc9c883p-1)), shifter);
  T n = shifter - shifted;
  Angle<T> angle{x, I(bits_<I>(shifted) - bits_<I>(shifter))};
  if constexpr (kIsFloat<T>) {
    angle.r = ma_(n, T(0x1.92p+0f), angle.r);
    angle.r = ma_(n, T(0x1.fb4p-12f), angle.r);
    angle.r = ma_(n, T(0x1.444p-24f), angle.r);
    angle.r = ma_(n, T(0x1.68c234p-39f), angle.r);
  } else {
    angle.r = ma_(n, T(0x1.921fb544p+0), angle.r);
    angle.r = ma_(n, T(0x1.0b4611a6p-34), angle.r);
    angle.r = ma_(n, T(0x1.3198a2ep-69), angle.r);
    angle.r = ma_(n, T(0x1.b839a252049c1p-104), angle.r);
  }
  auto regular = abs_(x) <= T(kAngleLimit<T>);
  if (!any_(!regular)) return angle;
  if constexpr (kVector<T>) {
    for (int lane = 0; lane < Traits<T>::kLanes; lane++) {
      if (regular[lane]) continue;
      Angle<Element<T>> one = reduce_large<Element<T>>(x[lane]);
      angle.r[lane] = one.r;
      angle.n[lane] = one.n;
    }
    return angle;
  } else {
    return reduce_large(x);
  }
}

// On [-pi/4, pi/4].
template <Floating T> SVOD_INLINE T sin_near(T r) {
  T z = r * r, p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z, {-0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f94p-13f, 0x1.6cd5e2p-19f});
  else
    p = poly_<T>(z, {-0x1.5555555555555p-3, 0x1.111111111110bp-7, -0x1.a01a01a018ab9p-13,
                     0x1.71de3a5335d7cp-19, -0x1.ae6452935c7bbp-26, 0x1.61208f72bcf0bp-33,
                     -0x1.aaa399cfcd167p-41});
  return ma_(r * z, p, r);
}
template <Floating T> SVOD_INLINE T cos_near(T r) {
  T z = r * r, p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z,
                 {0x1.555556p-5f, -0x1.6c16b8p-10f, 0x1.a01118p-16f, -0x1.24290cp-22f});
  else
    p = poly_<T>(z, {0x1.5555555555555p-5, -0x1.6c16c16c16c1p-10, 0x1.a01a01a018dc1p-16,
                     -0x1.27e4fb75faa14p-22, 0x1.1eed8ca0676a8p-29,
                     -0x1.9393347d41a0dp-37, 0x1.aac3f31b3c791p-45});
  return ma_(z * z, p, ma_(z, T(Element<T>(-0.5)), T(1)));
}
// The sine of the angle plus `turns` right angles.
template <Floating T> SVOD_INLINE T sin_turned(Angle<T> angle, int turns) {
  using I = IntOf<T>;
  I n = angle.n + I(Element<I>(turns));
  T y = choose((n & I(1)) != I(0), cos_near(angle.r), sin_near(angle.r));
  return choose((n & I(2)) != I(0), T(-y), y);
}
template <Floating T> SVOD_INLINE T sin_(T x) {
  return choose(x == T(0), x, sin_turned(reduce_angle(x), 0));
}
template <Floating T> SVOD_INLINE T cos_(T x) { return sin_turned(reduce_angle(x), 1); }
template <Floating T> SVOD_INLINE T tan_(T x) {
  using I = IntOf<T>;
  Angle<T> angle = reduce_angle(x);
  T s = sin_near(angle.r), c = cos_near(angle.r);
  auto odd = (angle.n & I(1)) != I(0);
  T y = choose(odd, T(-c), s) / choose(odd, s, c);
  return choose(x == T(0), x, y);
}

// The angle of (big, small) for 0 <= small <= big, from t = small / big.
template <Floating T> SVOD_INLINE T atan_near(T t) {
  T z = t * t, p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z, {-0x1.55554p-2f, 0x1.999276p-3f, -0x1.2426f8p-3f, 0x1.c0d284p-4f,
                     -0x1.58dc6ap-4f, 0x1.dd0e9ep-5f, -0x1.01af46p-5f, 0x1.6a8efap-7f,
                     -0x1.defdap-10f});
  else
    p = poly_<T>(z,
                 {-0x1.555555555554ep-2,  0x1.9999999998d45p-3,  -0x1.249249245b122p-3,
                  0x1.c71c71b744a13p-4,   -0x1.745d15e5b273cp-4, 0x1.3b139ce2ef87fp-4,
                  -0x1.11103c2771a9dp-4,  0x1.e1d507d964358p-5,  -0x1.aedcd2262c733p-5,
                  0x1.84bddba9b0327p-5,   -0x1.5f407e08f9a77p-5, 0x1.39466df8ecd48p-5,
                  -0x1.0d0d7022bb7a7p-5,  0x1.add6f0ffec076p-6,  -0x1.3286543ccac2ap-6,
                  0x1.7590ab5e0bd1dp-7,   -0x1.7365824ecc46ap-8, 0x1.1d7aefbfcbfp-9,
                  -0x1.3b797d41b2b4dp-11, 0x1.bb4814694c802p-14, -0x1.2832ac3b0caa4p-17});
  return ma_(t * z, p, t);
}
template <Floating T> SVOD_INLINE T atan_(T x) {
  T size = abs_(x);
  auto steep = size > T(1);
  T a = atan_near<T>(choose(steep, T(T(1) / size), size));
  a = choose(steep, T(T(kHalfPiHi<T>) - (a - T(kHalfPiLo<T>))), a);
  return copysign_(a, x);
}
template <Floating T> SVOD_INLINE T atan2_(T y, T x) {
  using I = IntOf<T>;
  T ay = abs_(y), ax = abs_(x);
  auto steep = ay > ax;
  T small = choose(steep, ax, ay), big = choose(steep, ay, ax);
  T t = choose(small == big, T(1), T(small / big));
  T a = atan_near<T>(choose(big == T(0), T(0), t));
  a = choose(steep, T(T(kHalfPiHi<T>) - (a - T(kHalfPiLo<T>))), a);
  a = choose(bits_<I>(x) < I(0), T(T(kPiHi<T>) - (a - T(kPiLo<T>))), a);
  return choose((x != x) | (y != y), T(x + y), copysign_(a, y));
}

// On [0, 1/2] a polynomial p; above, pi/2 - 2 p(sqrt((1 - x) / 2)).
template <Floating T> struct AsinParts {
  T p;
  decltype(T(0) < T(0)) far;
};
template <Floating T> SVOD_INLINE AsinParts<T> asin_parts(T size) {
  auto far = size > T(Element<T>(0.5));
  T z = choose(far, T((T(1) - size) * T(Element<T>(0.5))), T(size * size));
  T s = choose(far, sqrt_(z), size), p;
  if constexpr (kIsFloat<T>)
    p = poly_<T>(z, {0x1.5555cap-3f, 0x1.330156p-4f, 0x1.748bc6p-5f, 0x1.8ba756p-6f,
                     0x1.59d76ep-5f});
  else
    p = poly_<T>(z, {0x1.5555555555578p-3, 0x1.333333332dfc3p-4, 0x1.6db6db7222cfep-5,
                     0x1.f1c71a8ef5cb7p-6, 0x1.6e8bdf8561d9cp-6, 0x1.1c49e4fe53419p-6,
                     0x1.ca20995ea914fp-7, 0x1.757d1bcde82b9p-7, 0x1.616b1ccf20c31p-7,
                     0x1.e33f4e6e9dacdp-9, 0x1.646d0583a5921p-6, -0x1.59215b43b407p-6,
                     0x1.0ba11081c1023p-5});
  return {ma_(s * z, p, s), far};
}
template <Floating T> SVOD_INLINE T asin_(T x) {
  AsinParts<T> a = asin_parts(abs_(x));
  T wide = T(kHalfPiHi<T>) - (a.p + a.p - T(kHalfPiLo<T>));
  return copysign_(choose(a.far, wide, a.p), x);
}
template <Floating T> SVOD_INLINE T acos_(T x) {
  AsinParts<T> a = asin_parts(abs_(x));
  T twice = a.p + a.p;
  T wide = choose(x < T(0), T(T(kPiHi<T>) - (twice - T(kPiLo<T>))), twice);
  T near = T(kHalfPiHi<T>) - (copysign_(a.p, x) - T(kHalfPiLo<T>));
  return choose(a.far, wide, near);
}

} // namespace scalar

#endif
