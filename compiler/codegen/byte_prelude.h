// What kernels that round floats to bytes start with, after the prelude: the end of every
// quantised layer, so a handful of instructions for a vector are a tenth of its time.
//
// Spelled out, a quantisation rounds, adds the zero point, clamps to 0 and 255 and
// converts. Processors that convert to the nearest integer need no rounding before, and
// narrowing with saturation is the lower clamp. Only the upper one stays: a number beyond
// 32 bits, like NaN, converts to the lowest integer, which is right for NaN (0) and for
// what is below.
namespace kernel {
// Signed bytes, [-128, 127], are what the processor narrows to with one instruction; of
// them NaN is 0.
// kNear: x is known to be far from what 32 bits take.
template <bool kNear = false> SVOD_INLINE u8 round_to_byte(f32 x, i32 zero) {
  return convert_<u8>(round_(x) + f32(zero));
}
template <bool kNear = false> SVOD_INLINE i8 round_to_signed(f32 x, i32 zero) {
  return convert_<i8>(round_(x) + f32(zero));
}

#if defined(__SSE2__)
// The nearest integer, halves to even, plus zero: exact up to 255 + zero, greater than
// that for what is greater, and negative for NaN and what is below -zero, where zero is
// not negative.
template <bool kNear, class T> SVOD_INLINE Like<T, i32> nearest_(T x, i32 zero) {
  typedef Like<T, i32> To;
  constexpr int kCount = Traits<T>::kLanes;
#if defined(__AVX512F__)
  if constexpr (kCount == 16) {
    constexpr int kNearestEven = 8;
    const T least = kNear ? x : choose(x >= T(255), T(255), x);
    return To(__builtin_ia32_cvtps2dq512_mask(bits_<To>(least), To(0), 0xffff,
                                              kNearestEven)) +
           zero;
  }
#endif
#if defined(__AVX2__)
  if constexpr (kCount == 8) {
    const T least = kNear ? x : choose(x >= T(255), T(255), x);
    return To(__builtin_ia32_cvtps2dq256(least)) + zero;
  }
#endif
  if constexpr (kCount == 4) {
    const T least = kNear ? x : choose(x >= T(255), T(255), x);
    return To(__builtin_ia32_cvtps2dq(least)) + zero;
  } else {
    To out;
    out.lo = nearest_<kNear>(Vector<f32, kCount / 2>(x.lo), zero);
    out.hi = nearest_<kNear>(Vector<f32, kCount / 2>(x.hi), zero);
    return out;
  }
}
template <bool kNear = false> SVOD_INLINE vu8 round_to_byte(vf32 x, i32 zero) {
  vi32 n = nearest_<kNear>(x, zero);
  n = choose(n > 0, n, vi32(0));
  return lanes_<u8>(choose(n < 255, n, vi32(255)));
}
template <bool kNear> SVOD_INLINE vi32 nearest_signed_(vf32 x, i32 zero) {
  if constexpr (kNear) return nearest_<true>(x, zero);
  // The lowest integer plus a negative zero would be a large one.
  const vf32 most = choose(x > vf32(f32(-255)), x, vf32(f32(-255)));
  return choose(x == x, nearest_<false>(most, zero), vi32(0));
}
template <bool kNear = false> SVOD_INLINE vi8 round_to_signed(vf32 x, i32 zero) {
  vi32 n = nearest_signed_<kNear>(x, zero);
  n = choose(n > -128, n, vi32(-128));
  return lanes_<i8>(choose(n < 127, n, vi32(127)));
}
#else
template <bool kNear = false> SVOD_INLINE vu8 round_to_byte(vf32 x, i32 zero) {
  return convert_<u8>(round_(x) + f32(zero));
}
template <bool kNear = false> SVOD_INLINE vi8 round_to_signed(vf32 x, i32 zero) {
  return convert_<i8>(round_(x) + f32(zero));
}
#endif

// The byte minus its zero point, as a float again. Adding 0 makes -0 what an integer is.
template <class T> SVOD_INLINE T round_within(T x, f32 low, f32 high, f32 beside) {
  T rounded = round_(x);
  rounded = choose(rounded >= T(high), T(high), rounded);
  return choose(rounded > T(low), rounded, T(low)) + T(beside);
}
// The same of a signed byte, whose NaN is 0: low is -128 - zero then.
template <class T> SVOD_INLINE T round_within_signed(T x, f32 low, f32 high, f32 beside) {
  return round_within(choose(x == x, x, T(low + 128)), low, high, beside);
}

// The byte with this number of a table of 256, which is 64 words: a vector's registers
// hold it. Elsewhere one load after the other.
SVOD_INLINE u8 lookup(const u8* table, u8 at) { return table[at]; }
template <int kCount = kLanes> SVOD_INLINE vu8 lookup(const u8* table, vu8 at) {
#if defined(__AVX512F__)
  if constexpr (kCount == 16) {
    typedef Vector<i32, kCount> Words;
    const i32* words = reinterpret_cast<const i32*>(table);
    auto part = [&](int first) { return load_elements<kCount>(words + first); };
    const Words number = lanes_<i32>(at), word = number >> 2;
    const Words low = __builtin_ia32_vpermi2vard512(part(0), word, part(16));
    const Words high = __builtin_ia32_vpermi2vard512(part(32), word, part(48));
    return lanes_<u8>(choose(number > 127, high, low) >> ((number & 3) << 3));
  }
#endif
  vu8 out;
  for (iptr l = 0; l < kLanes; ++l) out[l] = table[at[l]];
  return out;
}

// Four vectors of bytes that lie next to each other.
template <bool kNear, class To> SVOD_INLINE auto rounded_(vf32 x, i32 zero) {
  if constexpr (kSame<To, i8>)
    return round_to_signed<kNear>(x, zero);
  else
    return round_to_byte<kNear>(x, zero);
}
#if defined(__AVX512BW__)
// As words of 16 bits, which the narrowing clamps.
template <bool kNear, class To> SVOD_INLINE auto words_of_(vf32 a, vf32 b, i32 zero) {
  if constexpr (kSame<To, i8>)
    return __builtin_ia32_packssdw512(nearest_signed_<kNear>(a, zero),
                                      nearest_signed_<kNear>(b, zero));
  else
    return __builtin_ia32_packssdw512(nearest_<kNear>(a, zero), nearest_<kNear>(b, zero));
}
#endif
template <bool kNear = false, int kCount = kLanes, class To>
SVOD_INLINE void store_bytes(To* to, i32 zero, vf32 a, vf32 b, vf32 c, vf32 d) {
#if defined(__AVX512BW__)
  if constexpr (kCount == 16) {
    typedef Vector<i32, kCount> Words;
    const auto low = words_of_<kNear, To>(a, b, zero),
               high = words_of_<kNear, To>(c, d, zero);
    Words mixed;
    if constexpr (kSame<To, i8>)
      mixed = bits_<Words>(__builtin_ia32_packsswb512(low, high));
    else
      mixed = bits_<Words>(__builtin_ia32_packuswb512(low, high));
    store(reinterpret_cast<i32*>(to),
          __builtin_shufflevector(mixed, mixed, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3,
                                  7, 11, 15));
    return;
  }
#endif
  store(to, rounded_<kNear, To>(a, zero));
  store(to + kLanes, rounded_<kNear, To>(b, zero));
  store(to + 2 * kLanes, rounded_<kNear, To>(c, zero));
  store(to + 3 * kLanes, rounded_<kNear, To>(d, zero));
}
} // namespace kernel
