// The scalar functions of ops.def, core part: types, choices, rounding, integer
// arithmetic.
//
// One source for two readers. The evaluator compiles it with T a scalar; kernels get it
// as text in front of their own and compile it freestanding, with T a scalar or a vector
// type of Clang (ext_vector_type). So nothing here includes a header, calls a library or
// needs data, and no function branches on a lane's value: both arms are computed and
// choose() takes one. A third reader is any compiler at all: with SVOD_PLAIN a vector is
// a struct (scalar_vectors.h), and nothing of Clang's is left.
//
//   scalar_functions.h   this file; every kernel needs it
//   scalar_convert.h     casts, f16, bf16: cast and bitcast, and loads and stores of f16
//   and bf16 scalar_math.h        sqrt, exp, log, trigonometry, pow, ...
//
// Booleans are u8 lanes of 0 and 1. A comparison of vectors gives lanes of -1 and 0 as
// wide as its operands ("mask"); test() makes a boolean of it, choose() consumes it,
// pick() consumes a boolean.
#ifndef SVOD_SCALAR_FUNCTIONS
#define SVOD_SCALAR_FUNCTIONS

#ifdef __clang__
// Vectors wider than the target's registers are passed, but only to what is inlined.
#pragma clang diagnostic ignored "-Wpsabi"
#endif

namespace scalar {

typedef __INT8_TYPE__ i8;
typedef __INT16_TYPE__ i16;
typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;

// Traits<T>: the lane type, integers of a lane's width, and the same number of other
// lanes.
template <class E> struct Lane;
#define SVOD_LANE(type, int_type, uint_type, is_float, is_signed)                        \
  template <> struct Lane<type> {                                                        \
    using Int = int_type;                                                                \
    using Uint = uint_type;                                                              \
    static constexpr bool kFloat = is_float, kSigned = is_signed;                        \
  }
SVOD_LANE(i8, i8, u8, false, true);
SVOD_LANE(i16, i16, u16, false, true);
SVOD_LANE(i32, i32, u32, false, true);
SVOD_LANE(i64, i64, u64, false, true);
SVOD_LANE(u8, i8, u8, false, false);
SVOD_LANE(u16, i16, u16, false, false);
SVOD_LANE(u32, i32, u32, false, false);
SVOD_LANE(u64, i64, u64, false, false);
SVOD_LANE(float, i32, u32, true, true);
SVOD_LANE(double, i64, u64, true, true);
#undef SVOD_LANE

template <class T> struct Traits {
  using Element = T;
  template <class E> using Like = E;
  static constexpr int kLanes = 1;
};
#define SVOD_INLINE inline __attribute__((always_inline))

template <class To, class T> SVOD_INLINE To bits_(T x);
#if defined(SVOD_PLAIN)
#include "compiler/ir/scalar_vectors.h"
#elif defined(__clang__)
template <class E, int kLanes> using Vector = E __attribute__((ext_vector_type(kLanes)));
template <class E, int kCount> struct Traits<Vector<E, kCount>> {
  using Element = E;
  template <class F> using Like = Vector<F, kCount>;
  static constexpr int kLanes = kCount;
};
#endif
template <class T> using Element = typename Traits<T>::Element;
template <class T, class E> using Like = typename Traits<T>::template Like<E>;
template <class T> using IntOf = Like<T, typename Lane<Element<T>>::Int>;
template <class T> using UintOf = Like<T, typename Lane<Element<T>>::Uint>;
template <class T> inline constexpr bool kVector = Traits<T>::kLanes > 1;
template <class T> inline constexpr int kWidth = 8 * int(sizeof(Element<T>));
template <class T>
concept Floating = Lane<Element<T>>::kFloat;
template <class T>
concept Integral = !Lane<Element<T>>::kFloat;
template <class T>
concept Signed = Lane<Element<T>>::kSigned;
template <class A, class B> inline constexpr bool kSame = false;
template <class A> inline constexpr bool kSame<A, A> = true;

// The same bits as another type; the same values, lane by lane, of another lane type
// (which must hold them: scalar_convert.h saturates).
template <class To, class T> SVOD_INLINE To bits_(T x) {
#ifdef SVOD_PLAIN
  static_assert(sizeof(To) == sizeof(T));
  if constexpr (kSame<To, T>) {
    return x;
  } else if constexpr (kVector<To> && kVector<T>) {
    return To(bits_<typename To::Half>(x.lo), bits_<typename To::Half>(x.hi));
  } else {
    To out;
    __builtin_memcpy(&out, &x, sizeof out);
    return out;
  }
#else
  return __builtin_bit_cast(To, x);
#endif
}
template <class E, class T> SVOD_INLINE Like<T, E> lanes_(T x) {
#if defined(SVOD_PLAIN)
  if constexpr (kVector<T>)
    return Like<T, E>(lanes_<E>(x.lo), lanes_<E>(x.hi));
  else
#elif defined(__clang__)
  if constexpr (kVector<T>)
    return __builtin_convertvector(x, Like<T, E>);
  else
#endif
    return E(x);
}

// `yes` where the comparison holds, `no` elsewhere.
template <class M, class T> SVOD_INLINE T choose(M mask, T yes, T no) {
#if defined(SVOD_PLAIN)
  if constexpr (kVector<T>)
    return T(choose(mask.lo, yes.lo, no.lo), choose(mask.hi, yes.hi, no.hi));
  else
#elif defined(__clang__)
  if constexpr (kVector<T>) {
    using I = IntOf<T>;
    if constexpr (sizeof(Element<M>) == sizeof(Element<T>))
      return bits_<I>(mask) ? yes : no;
    else
      return __builtin_convertvector(mask, I) ? yes : no;
  } else
#endif
    return mask ? yes : no;
}

// A comparison as a boolean, and a choice by a boolean.
SVOD_INLINE u8 test(bool holds) { return u8(holds); }
#if defined(SVOD_PLAIN)
template <class E, int kLanes>
SVOD_INLINE Vector<u8, kLanes> test(Vector<E, kLanes> mask) {
  return Vector<u8, kLanes>(test(mask.lo), test(mask.hi));
}
#elif defined(__clang__)
template <class E, int kLanes>
SVOD_INLINE Vector<u8, kLanes> test(Vector<E, kLanes> mask) {
  return __builtin_convertvector(mask, Vector<u8, kLanes>) & u8(1);
}
#endif
template <class B, class T> SVOD_INLINE T pick(B boolean, T yes, T no) {
  if constexpr (kVector<T>)
    return choose(lanes_<Element<IntOf<T>>>(boolean) != 0, yes, no);
  else
    return boolean ? yes : no;
}

// Whether a mask holds in any lane.
template <class M> SVOD_INLINE bool any_(M mask) {
#if defined(SVOD_PLAIN)
  if constexpr (kVector<M>)
    return any_(mask.lo) || any_(mask.hi);
  else
#elif defined(__clang__)
  if constexpr (kVector<M>)
    return __builtin_reduce_or(mask) != 0;
  else
#endif
    return bool(mask);
}

// a * b + c, rounded once where the target can (the evaluator always does, so it agrees
// with those targets bit for bit).
#if defined(SVOD_PLAIN)
#if defined(FP_FAST_FMAF) || defined(__FP_FAST_FMAF)
#define SVOD_HAS_FMA 1
#endif
#elif !defined(__clang__) || defined(__FMA__) || defined(__aarch64__) ||                 \
    defined(__ARM_FEATURE_FMA) || defined(__riscv_f)
#define SVOD_HAS_FMA 1
#endif
// A core with single precision only would call a function for the double one.
#if defined(__arm__) && !(__ARM_FP & 8) || defined(SVOD_PLAIN)
#define SVOD_FMA_WIDTH 32
#else
#define SVOD_FMA_WIDTH 64
#endif
#ifdef SVOD_HAS_FMA
template <class T> inline constexpr bool kFuses = kWidth<T> <= SVOD_FMA_WIDTH;
#else
template <class T> inline constexpr bool kFuses = false;
#endif
#ifdef SVOD_ROUNDS_ONCE
// Floats without the instruction. A product is exact in double; so that the sum is not
// rounded twice, it is first rounded to odd: an inexact one whose last bit is 0 becomes
// its neighbour on the side of what it misses (Boldo and Melquiond, Emulation of a FMA
// and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd, 2008).
template <class T> inline constexpr bool kHasFma = kFuses<T> || kWidth<T> == 32;
template <Floating T> SVOD_INLINE T ma_by_doubles(T a, T b, T c) {
  using D = Like<T, double>;
  using I = IntOf<D>;
  const D product = lanes_<double>(a) * lanes_<double>(b), added = lanes_<double>(c);
  const D sum = product + added, back = sum - product;
  const D missed = (product - (sum - back)) + (added - back); // NaN where sum is infinite
  const I bits = bits_<I>(sum),
          one = choose((missed > D(0)) == (sum > D(0)), I(1), I(-1));
  const I odd = choose((bits & I(1)) == I(0), I(bits + one), bits);
  return lanes_<float>(choose(missed * missed > D(0), bits_<D>(odd), sum));
}
#else
template <class T> inline constexpr bool kHasFma = kFuses<T>;
#endif
template <Floating T> SVOD_INLINE T ma_(T a, T b, T c) {
  if constexpr (!kHasFma<T>) {
    return a * b + c;
#ifdef SVOD_ROUNDS_ONCE
  } else if constexpr (!kFuses<T>) {
    return ma_by_doubles(a, b, c);
#endif
  } else {
#ifdef SVOD_PLAIN
    if constexpr (kVector<T>)
      return T(ma_(a.lo, b.lo, c.lo), ma_(a.hi, b.hi, c.hi));
    else
#endif
#ifdef __clang__
      return __builtin_elementwise_fma(a, b, c);
#else
    if constexpr (kSame<T, float>)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
#endif
  }
}

// Facts about T's format: mantissa bits, exponent bias, the bits that are the sign.
template <Floating T> inline constexpr bool kIsFloat = kSame<Element<T>, float>;
template <Floating T> inline constexpr int kMantissa = kIsFloat<T> ? 23 : 52;
template <Floating T> inline constexpr int kBias = kIsFloat<T> ? 127 : 1023;
template <Floating T>
inline constexpr Element<UintOf<T>> kSignBit = Element<UintOf<T>>(1) << (kWidth<T> - 1);
template <Floating T> inline constexpr Element<T> kInf = Element<T>(__builtin_huge_val());
template <Floating T> inline constexpr Element<T> kNan = Element<T>(__builtin_nan(""));

// Signs by the compiler's own functions, which keep the lanes floating: as integer logic,
// and under a choice, LLVM 19 can give AVX-512's three-way logic the wrong table
// (llvm-project 157929).
template <Floating T> SVOD_INLINE T copysign_(T size, T sign) {
#ifdef __clang__
  return __builtin_elementwise_copysign(size, sign);
#else
  using U = UintOf<T>;
  return bits_<T>(
      U((bits_<U>(size) & U(~kSignBit<T>)) | (bits_<U>(sign) & U(kSignBit<T>))));
#endif
}

template <class T> SVOD_INLINE T abs_(T a) {
  if constexpr (Floating<T>) {
#ifdef __clang__
    return __builtin_elementwise_abs(a);
#else
    return bits_<T>(UintOf<T>(bits_<UintOf<T>>(a) & UintOf<T>(~kSignBit<T>)));
#endif
  } else if constexpr (Signed<T>) {
    return choose(a < T(0), T(-a), a);
  } else {
    return a;
  }
}
template <class T> SVOD_INLINE T sign_(T a) {
  T positive = choose(a > T(0), T(1), Floating<T> ? T(a + a) : T(0));
  if constexpr (Floating<T>) positive = choose(a == T(0), T(0), positive);
  if constexpr (Signed<T>) return choose(a < T(0), T(-1), positive);
  return positive;
}

// Rounding to an integral value. Where the target has no instruction for it, values below
// 2^mantissa go through an addition (half to even) that drops the fraction; larger ones
// have none.
#if defined(__clang__) &&                                                                \
    (defined(__SSE4_1__) || defined(__aarch64__) || defined(__wasm__) ||                 \
     (defined(__ARM_FEATURE_DIRECTED_ROUNDING) && defined(__ARM_NEON)))
#define SVOD_HAS_ROUND 1
#endif
template <class T> SVOD_INLINE T round_(T a) {
  if constexpr (Integral<T>) {
    return a;
  } else {
#ifdef SVOD_HAS_ROUND
    return __builtin_elementwise_roundeven(a);
#else
    const T limit = T(Element<T>(u64(1) << kMantissa<T>));
    T size = abs_(a);
    return choose(size < limit, copysign_(T((size + limit) - limit), a), a);
#endif
  }
}
template <class T> SVOD_INLINE T floor_(T a) {
  if constexpr (Integral<T>) {
    return a;
  } else {
#ifdef SVOD_HAS_ROUND
    return __builtin_elementwise_floor(a);
#else
    T near = round_(a);
    return choose(near > a, copysign_(T(near - T(1)), a), near);
#endif
  }
}
template <class T> SVOD_INLINE T ceil_(T a) {
  if constexpr (Integral<T>) {
    return a;
  } else {
#ifdef SVOD_HAS_ROUND
    return __builtin_elementwise_ceil(a);
#else
    T near = round_(a);
    return choose(near < a, copysign_(T(near + T(1)), a), near);
#endif
  }
}
template <class T> SVOD_INLINE T trunc_(T a) {
  if constexpr (Integral<T>) {
    return a;
  } else {
#ifdef SVOD_HAS_ROUND
    return __builtin_elementwise_trunc(a);
#else
    return copysign_(floor_(abs_(a)), a);
#endif
  }
}

// NaN if either is NaN. AVX-512's own give the second operand where one is NaN: two
// instructions instead of four.
#if defined(__clang__) && defined(__AVX512F__)
#define SVOD_HAS_512 1
typedef float Native512 __attribute__((vector_size(64)));
template <class T>
inline constexpr bool kIsNative512 = kSame<Element<T>, float> && Traits<T>::kLanes == 16;
constexpr int kModeAsItIs = 4;
template <class T> SVOD_INLINE T min512(T a, T b) {
  return bits_<T>(
      __builtin_ia32_minps512(bits_<Native512>(a), bits_<Native512>(b), kModeAsItIs));
}
template <class T> SVOD_INLINE T max512(T a, T b) {
  return bits_<T>(
      __builtin_ia32_maxps512(bits_<Native512>(a), bits_<Native512>(b), kModeAsItIs));
}
// A bit for each element of a that is not less than b's, or is NaN.
template <class T> SVOD_INLINE u16 not_below512(T a, T b) {
  constexpr int kNotLessQuietly = 0x15;
  return __builtin_ia32_cmpps512_mask(bits_<Native512>(a), bits_<Native512>(b),
                                      kNotLessQuietly, u16(-1), kModeAsItIs);
}
#endif
// NEON's give NaN where either operand is: one instruction instead of four. Of two zeros
// they take -0 as the smaller one, where ours is the second operand; that one is known
// not to matter where it is a constant that is no zero of `kOtherZero`'s sign.
#if defined(__clang__) && defined(__ARM_NEON)
#define SVOD_HAS_NEON 1
template <class T>
inline constexpr bool kIsNeon = kSame<Element<T>, float> && Traits<T>::kLanes % 4 == 0;
typedef __attribute__((__neon_vector_type__(16))) i8 NeonBytes;
constexpr int kNeonQuadF32 = 41; // the code that the builtins take
template <u32 kOtherZero> SVOD_INLINE bool is_known_beside(float x) {
  return __builtin_constant_p(x) && bits_<u32>(x) != kOtherZero;
}
template <u32 kOtherZero, class T> SVOD_INLINE T nearer(T a, T b, T found) {
  const bool known =
      is_known_beside<kOtherZero>(b[0]) && is_known_beside<kOtherZero>(b[1]) &&
      is_known_beside<kOtherZero>(b[2]) && is_known_beside<kOtherZero>(b[3]);
  return known ? found : choose(a == b, b, found);
}
#define SVOD_NEON(name, builtin, other_zero)                                             \
  template <class T> SVOD_INLINE T name(T a, T b) {                                      \
    constexpr int kCount = Traits<T>::kLanes;                                            \
    if constexpr (kCount == 4) {                                                         \
      const T found =                                                                    \
          bits_<T>(builtin(bits_<NeonBytes>(a), bits_<NeonBytes>(b), kNeonQuadF32));     \
      return nearer<other_zero>(a, b, found);                                            \
    } else {                                                                             \
      typedef Vector<float, kCount / 2> Half;                                            \
      a.lo = name(Half(a.lo), Half(b.lo));                                               \
      a.hi = name(Half(a.hi), Half(b.hi));                                               \
      return a;                                                                          \
    }                                                                                    \
  }
SVOD_NEON(min_neon, __builtin_neon_vminq_v, 0u)
SVOD_NEON(max_neon, __builtin_neon_vmaxq_v, 0x80000000u)
#undef SVOD_NEON
#endif
#if defined(__clang__) && defined(__ARM_NEON) && !defined(__aarch64__)
// Four bytes are half a register, and by themselves LLVM widens them for every operation.
#define SVOD_FOUR_BYTES
template <class T>
constexpr bool kFourBytes = Integral<T> && Traits<T>::kLanes == 4 && sizeof(T) == 4;
template <class T> SVOD_INLINE auto as_half(T a) {
  typedef Vector<u32, 2> Words;
  const Words words = __builtin_shufflevector(Words(bits_<u32>(a)), Words(0), 0, -1);
  return bits_<Vector<Element<T>, 8>>(words);
}
template <class T, class H> SVOD_INLINE T of_half(H a) {
  return bits_<T>(bits_<Vector<u32, 2>>(a)[0]);
}
#endif
template <class T> SVOD_INLINE T min_(T a, T b) {
#ifdef SVOD_FOUR_BYTES
  if constexpr (kFourBytes<T>) return of_half<T>(min_(as_half(a), as_half(b)));
#endif
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) return choose(a == a, min512(a, b), a);
#endif
#ifdef SVOD_HAS_NEON
  if constexpr (kIsNeon<T>) return min_neon(a, b);
#endif
  if constexpr (Floating<T>)
    return choose((a < b) | (a != a), a, b);
  else
    return choose(a < b, a, b);
}
template <class T> SVOD_INLINE T max_(T a, T b) {
#ifdef SVOD_FOUR_BYTES
  if constexpr (kFourBytes<T>) return of_half<T>(max_(as_half(a), as_half(b)));
#endif
#ifdef SVOD_HAS_512
  if constexpr (kIsNative512<T>) return choose(a == a, max512(a, b), a);
#endif
#ifdef SVOD_HAS_NEON
  if constexpr (kIsNeon<T>) return max_neon(a, b);
#endif
  if constexpr (Floating<T>)
    return choose((a > b) | (a != a), a, b);
  else
    return choose(a > b, a, b);
}

// The upper half of a product of 64 bits.
#if defined(__clang__) && defined(__ARM_FEATURE_MVE)
typedef __attribute__((__neon_vector_type__(4))) i32 ArmWords;
static __attribute__((__clang_arm_builtin_alias(__builtin_arm_mve_vmulhq_s32)))
ArmWords __arm_vmulhq_s32(ArmWords, ArmWords);
template <class T> SVOD_INLINE T high_products(T a, T b) {
  return bits_<T>(__arm_vmulhq_s32(bits_<ArmWords>(a), bits_<ArmWords>(b)));
}
#define SVOD_HIGH_PRODUCTS
#endif
// The same by products of 32 bits. Each sum fits them: a half with a sign times one
// without is at most 2^15 * (2^16 - 1), and less than 2^16 is added.
SVOD_INLINE i32 high_of_halves(i32 a, i32 b) {
  const i32 high = a >> 16, other_high = b >> 16, low = u16(a), other_low = u16(b);
  const i32 one = high * other_low + i32(u32(low) * u32(other_low) >> 16);
  const i32 two = low * other_high + u16(one);
  return high * other_high + (one >> 16) + (two >> 16);
}
template <Integral T>
  requires(Signed<T> && sizeof(Element<T>) == sizeof(i32))
SVOD_INLINE T mul_high_(T a, T b) {
#if defined(__thumb__) && !defined(__thumb2__) && !defined(__OPTIMIZE_SIZE__)
  // These cores multiply 32 bits, and call a function for 64, which is shorter.
  if constexpr (kVector<T>) {
    for (int i = 0; i < Traits<T>::kLanes; ++i) a[i] = high_of_halves(a[i], b[i]);
    return a;
  } else {
    return high_of_halves(a, b);
  }
#endif
#ifdef SVOD_HIGH_PRODUCTS
  constexpr int kCount = Traits<T>::kLanes;
  if constexpr (kCount == 4) return high_products(a, b);
  if constexpr (kCount > 4) {
    typedef Vector<i32, kCount / 2> Half;
    a.lo = mul_high_(Half(a.lo), Half(b.lo));
    a.hi = mul_high_(Half(a.hi), Half(b.hi));
    return a;
  }
#endif
  return lanes_<i32>((lanes_<i64>(a) * lanes_<i64>(b)) >> 32);
}

// Integer division never traps: x / 0 is 0, and the smallest number / -1 wraps to itself.
// The divisors that would trap are replaced by 1 first, so that it holds lane by lane.
template <class T> SVOD_INLINE T div_(T a, T b) {
  if constexpr (Floating<T>) {
    return a / b;
  } else if constexpr (Signed<T>) {
    T minus = T(b == T(-1)), zero = T(b == T(0));
    if constexpr (!kVector<T>) minus = T(-minus), zero = T(-zero);
    T quotient = T(a / choose((minus | zero) != T(0), T(1), b));
    return choose(zero != T(0), T(0), choose(minus != T(0), T(-a), quotient));
  } else {
    return choose(b == T(0), T(0), T(a / choose(b == T(0), T(1), b)));
  }
}

// The remainder of two finite positive numbers, exactly: long division of the mantissas,
// as many bits a step as there is room for.
template <Floating T> static inline T long_remainder(T a, T b) {
  using U = UintOf<T>;
  constexpr int kBits = kMantissa<T>, kRoom = kWidth<T> - 1 - kBits;
  constexpr U kOne = U(1) << kBits;
  U ua = bits_<U>(a), ub = bits_<U>(b);
  int ea = int(ua >> kBits), eb = int(ub >> kBits);
  U ma = ea ? (ua & (kOne - 1)) | kOne : ua, mb = eb ? (ub & (kOne - 1)) | kOne : ub;
  int exponent = eb ? eb : 1, steps = (ea ? ea : 1) - exponent;
  if (steps < 0) return a;
  ma %= mb;
  for (int step; steps > 0 && ma != 0; steps -= step) {
    step = steps < kRoom ? steps : kRoom;
    ma = U(ma << step) % mb;
  }
  // The result counts units of b's last place.
  while (ma != 0 && ma < kOne && exponent > 1) ma <<= 1, exponent--;
  if (ma < kOne) return bits_<T>(ma);
  return bits_<T>(U((U(exponent) << kBits) | (ma & (kOne - 1))));
}
// The remainder with a's sign.
template <class T> SVOD_INLINE T fmod_(T a, T b) {
  if constexpr (Integral<T>) {
    return choose(b == T(0), T(0), T(a - div_(a, b) * b));
  } else if constexpr (kVector<T>) {
    T r = a;
    for (int lane = 0; lane < Traits<T>::kLanes; lane++)
      r[lane] = fmod_(a[lane], b[lane]);
    return r;
  } else {
    if (!(abs_(a) < kInf<T>) || !(abs_(b) > T(0))) return kNan<T>;
    if (!(abs_(b) < kInf<T>)) return b != b ? b : a;
    return copysign_(long_remainder(abs_(a), abs_(b)), a);
  }
}
// The remainder with b's sign.
template <class T> SVOD_INLINE T mod_(T a, T b) {
  T r = fmod_(a, b);
  if constexpr (Floating<T>) {
    T fixed = choose((r < T(0)) != (b < T(0)), T(r + b), r);
    return choose(r == T(0), copysign_(T(0), b), fixed);
  } else if constexpr (Signed<T>) {
    T fixed = choose((r < T(0)) != (b < T(0)), T(r + b), r);
    return choose(r == T(0), r, fixed);
  } else {
    return r;
  }
}

// Shifts by the width or more give 0.
template <Integral T> SVOD_INLINE T shl_(T a, T b) {
  using U = UintOf<T>;
  U count = bits_<U>(b), low = U(count & U(kWidth<T> - 1));
  return choose(count < U(kWidth<T>), T(bits_<T>(U(bits_<U>(a) << low))), T(0));
}
template <Integral T> SVOD_INLINE T shr_(T a, T b) {
  using U = UintOf<T>;
  U count = bits_<U>(b);
  T low = bits_<T>(U(count & U(kWidth<T> - 1)));
  return choose(count < U(kWidth<T>), T(a >> low), T(0));
}

} // namespace scalar

#endif
