// What kernels that add up products of bytes start with, after the prelude: one step of
// such a sum, by the instructions that the level has for it (column `dots` of
// targets.def).
namespace kernel {
// sum + the products of all lanes. Where one instruction adds up a register's products,
// it is asked for: as arithmetic the compiler moves what widens a factor out of a loop,
// and finds it no more. Half a register of bytes is widened as it is loaded.
#if defined(__ARM_FEATURE_MVE)
typedef __attribute__((__neon_vector_type__(16))) i8 Bytes16;
typedef __attribute__((__neon_vector_type__(8))) i16 Pairs8;
#define SVOD_MVE(type)                                                                   \
  static __attribute__((__clang_arm_builtin_alias(__builtin_arm_mve_vmladavaq_##type)))
SVOD_MVE(s8) i32 __arm_vmladavaq_s8(i32, Bytes16, Bytes16);
SVOD_MVE(s16) i32 __arm_vmladavaq_s16(i32, Pairs8, Pairs8);
template <class T> SVOD_INLINE i32 dot_across(i32 sum, T x, T w) {
  if constexpr (Traits<T>::kLanes == 16)
    return __arm_vmladavaq_s8(sum, bits_<Bytes16>(x), bits_<Bytes16>(w));
  else
    return __arm_vmladavaq_s16(sum, bits_<Pairs8>(lanes_<i16>(x)),
                               bits_<Pairs8>(lanes_<i16>(w)));
}
#endif
#if __SIZEOF_POINTER__ == 8 && !defined(__SSE2__)
// Two neighbouring lanes in 64 bits, the second one in the upper half: what is multiplied
// and added there is for both. A lower half below zero takes one from the upper half,
// which the end gives back.
typedef Vector<i64, kLanes / 2> PairedSums;
template <class T> SVOD_INLINE PairedSums paired_bytes(T bytes) {
  PairedSums out;
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes / 2; ++i)
    out[i] = i64(bytes[2 * i]) + (i64(bytes[2 * i + 1]) << 32);
  return out;
}
SVOD_INLINE PairedSums paired_sums(vi32 whole) { return paired_bytes(whole); }
SVOD_INLINE vi32 whole_sums(PairedSums sums) {
  vi32 out;
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes / 2; ++i) {
    out[2 * i] = i32(sums[i]);
    out[2 * i + 1] = i32((sums[i] - i32(sums[i])) >> 32);
  }
  return out;
}
#endif
// A byte of each lane, or of all, as 32 bits by way of 16: both factors have to be
// widened so far by themselves, for an instruction to be found that multiplies them and
// adds the product to 32 bits.
template <class T, class B> SVOD_INLINE T widened(B bytes) {
  typedef Like<T, i16> Half;
  if constexpr (kVector<B>)
    return lanes_<i32>(lanes_<i16>(bytes));
  else
    return lanes_<i32>(Half(i16(bytes)));
}
// Plus the products of a number with the bytes of all lanes, of which four are read as a
// word: its address is a multiple of four. Lane after lane, so that beside the sums one
// product at a time takes a register; the last byte last, whose product takes the word's.
template <class B> SVOD_INLINE vi32 add_words(vi32 sum, i32 number, const B* bytes) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; i += 4) {
    i32 word;
    __builtin_memcpy(&word, __builtin_assume_aligned(bytes + i, sizeof word),
                     sizeof word);
#pragma clang loop unroll(full)
    for (int j = 2; j >= -1; --j)
      sum[i + (j & 3)] += number * i32(B(word >> 8 * (j & 3)));
  }
  return sum;
}
// Four bytes, and four bytes per lane.
template <class E> using DotBytes = Vector<E, 4 * kLanes>;
SVOD_INLINE i32 load_dot(const void* from) {
  i32 out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
SVOD_INLINE vi32 load_dots(const void* from) {
  vi32 out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
#if defined(__ARM_FEATURE_SIMD32) && !defined(__ARM_NEON)
// Bytes 0 and 2 of a word as a pair, and bytes 1 and 3: what meets in an instruction that
// multiplies pairs and adds both products.
template <bool kSigned> SVOD_INLINE i32 even_bytes(i32 word) {
  return kSigned ? __builtin_arm_sxtb16(word) : i32(__builtin_arm_uxtb16(word));
}
template <bool kSigned> SVOD_INLINE i32 odd_bytes(i32 word) {
  return even_bytes<kSigned>(i32(u32(word) >> 8 | u32(word) << 24));
}
template <bool kSigned, class T> SVOD_INLINE T dot_words(T sum, T x, T w) {
#pragma clang loop unroll(full)
  for (int i = 0; i < Traits<T>::kLanes; ++i) {
    const i32 even =
        __builtin_arm_smlad(even_bytes<kSigned>(x[i]), even_bytes<true>(w[i]), sum[i]);
    sum[i] = __builtin_arm_smlad(odd_bytes<kSigned>(x[i]), odd_bytes<true>(w[i]), even);
  }
  return sum;
}
template <class T> SVOD_INLINE T dot_(T sum, T x, T w) {
  return dot_words<false>(sum, x, w);
}
template <class T> SVOD_INLINE T dot_signed_(T sum, T x, T w) {
  return dot_words<true>(sum, x, w);
}
#elif defined(__ARM_NEON)
typedef __attribute__((__neon_vector_type__(16))) i8 NeonBytes;
typedef __attribute__((__neon_vector_type__(8))) i8 NeonHalf;
// Groups of four bytes for all lanes that follow each other, each in a register of its
// own; of 64 bits on 32-bit Arm, whose products take no halves of longer ones. One
// instruction loads two of them; what one makes of four takes more registers than there
// are beside a tile's sums.
#if defined(__aarch64__)
enum { kSharedLanes = 4 };
#else
enum { kSharedLanes = 2 };
#endif
typedef Vector<i32, kSharedLanes> SharedGroup;
template <int N> struct SharedGroups {
  SharedGroup group[N];
};
template <int N> SVOD_INLINE SharedGroups<N> load_shared(const void* from) {
  SharedGroups<N> out;
  if constexpr (N == 2) {
    typedef __attribute__((__aligned__(1))) i32 Word; // at any address
    struct {
      __attribute__((__neon_vector_type__(kSharedLanes))) i32 group[2];
    } both;
#if defined(__aarch64__)
    __builtin_neon_vld2q_dup_v(&both, static_cast<const Word*>(from), 34);
#else
    __builtin_neon_vld2_dup_v(&both, static_cast<const Word*>(from), 2);
#endif
    out.group[0] = both.group[0];
    out.group[1] = both.group[1];
  } else {
    out.group[0] = SharedGroup(load_dot(from));
  }
  return out;
}
// Four lanes of a vector, in a register or in memory.
template <int kFirst> SVOD_INLINE Vector<i32, 4> quad_of(vi32 whole) {
  return __builtin_shufflevector(whole, whole, kFirst, kFirst + 1, kFirst + 2,
                                 kFirst + 3);
}
SVOD_INLINE Vector<i32, 4> load_quad(const void* from) {
  Vector<i32, 4> out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
// The bytes of two lanes; of those that all lanes share, any two.
template <int kPair, class T> SVOD_INLINE NeonHalf pair_of(T x) {
  if constexpr (kVector<T>) {
    constexpr int first = 2 * kPair % Traits<T>::kLanes;
    return bits_<NeonHalf>(__builtin_shufflevector(x, x, first, first + 1));
  } else {
    return bits_<NeonHalf>(Vector<i32, 2>(x));
  }
}
// Of four lanes the products of each lane's four bytes, of 16 bits each; those of further
// steps may be added to them while they fit. They are asked for by name: as arithmetic,
// the compiler widens a factor that several of them share. x is a vector, or four bytes
// for all lanes.
template <int kQuad, class X>
SVOD_INLINE Vector<i16, 16> byte_products(X x, Vector<i32, 4> w) {
  Vector<i16, 16> out;
  out.lo = bits_<Vector<i16, 8>>(
      __builtin_neon_vmull_v(pair_of<2 * kQuad>(x), pair_of<0>(w), 33));
  out.hi = bits_<Vector<i16, 8>>(
      __builtin_neon_vmull_v(pair_of<2 * kQuad + 1>(x), pair_of<1>(w), 33));
  return out;
}
// Sums of the first 4 N lanes, two of each: the products of its first two bytes and those
// of the others, which pairs of 16 bits are added to.
template <int N> struct HalfSums {
  Vector<i32, 4> pair[2 * N];
};
template <int N, int kPair = 0> SVOD_INLINE HalfSums<N> half_sums(vi32 whole) {
  HalfSums<N> out;
  if constexpr (kPair + 1 < 2 * N) out = half_sums<N, kPair + 1>(whole);
  // A zero after each: as numbers of 64 bits.
  const Vector<u32, 2> lanes = bits_<Vector<u32, 2>>(
      __builtin_shufflevector(whole, whole, 2 * kPair, 2 * kPair + 1));
  out.pair[kPair] = bits_<Vector<i32, 4>>(lanes_<u64>(lanes));
  return out;
}
template <int N> SVOD_INLINE vi32 whole_sums(HalfSums<N> sums) {
  Vector<i32, 4> quads[N];
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) {
    const Vector<i32, 4> a = sums.pair[2 * i], b = sums.pair[2 * i + 1];
    quads[i] = __builtin_shufflevector(a, b, 0, 2, 4, 6) +
               __builtin_shufflevector(a, b, 1, 3, 5, 7);
  }
  vi32 out = vi32(0);
  __builtin_memcpy(&out, quads, sizeof quads);
  return out;
}
template <int kQuad, int N>
SVOD_INLINE void add_halves(HalfSums<N>& sums, Vector<i16, 16> products) {
  Vector<i32, 4>* const pair = sums.pair + 2 * kQuad;
  pair[0] = bits_<Vector<i32, 4>>(__builtin_neon_vpadalq_v(
      bits_<NeonBytes>(pair[0]), bits_<NeonBytes>(products.lo), 34));
  pair[1] = bits_<Vector<i32, 4>>(__builtin_neon_vpadalq_v(
      bits_<NeonBytes>(pair[1]), bits_<NeonBytes>(products.hi), 34));
}
#if defined(__aarch64__)
// Four signed bytes of each lane and as many more into one sum.
template <class T> SVOD_INLINE T dot_signed_(T sum, T x, T w) {
  constexpr int kCount = Traits<T>::kLanes;
  if constexpr (kCount > 4) {
    typedef Vector<i32, kCount / 2> Half;
    sum.lo = dot_signed_(Half(sum.lo), Half(x.lo), Half(w.lo));
    sum.hi = dot_signed_(Half(sum.hi), Half(x.hi), Half(w.hi));
    return sum;
  } else {
#if defined(__ARM_FEATURE_DOTPROD)
    return bits_<T>(__builtin_neon_vdotq_s32(bits_<NeonBytes>(sum), bits_<NeonBytes>(x),
                                             bits_<NeonBytes>(w), 34));
#else
    typedef Vector<i8, 8> Bytes;
    const auto pairs = [](auto a, auto b) {
      return __builtin_neon_vpaddlq_v(
          bits_<NeonBytes>(lanes_<i16>(bits_<Bytes>(a)) * lanes_<i16>(bits_<Bytes>(b))),
          34);
    };
    return sum +
           bits_<T>(__builtin_neon_vpaddq_v(bits_<NeonBytes>(pairs(x.lo, w.lo)),
                                            bits_<NeonBytes>(pairs(x.hi, w.hi)), 34));
#endif
  }
}
#endif
#else
// sum + the products of the four unsigned bytes of x and the four signed ones of w, lane
// by lane. Without an instruction for it: pairs of 16 bits, even and odd bytes apart.
// The one that adds pairs of bytes first would saturate.
template <class T> SVOD_INLINE T dot_(T sum, T x, T w) {
  constexpr int kCount = Traits<T>::kLanes;
  typedef Vector<i16, 2 * kCount> Pairs;
#if defined(__AVX512VNNI__)
  if constexpr (kCount == 16) return T(__builtin_ia32_vpdpbusd512(sum, x, w));
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  if constexpr (kCount == 8) return T(__builtin_ia32_vpdpbusd256(sum, x, w));
  if constexpr (kCount == 4) return T(__builtin_ia32_vpdpbusd128(sum, x, w));
#endif
#if defined(__AVX2__)
  constexpr int kWhole = 8;
#elif defined(__SSE2__)
  constexpr int kWhole = 4;
#else
  constexpr int kWhole = 0;
#endif
  if constexpr (kWhole != 0 && kCount > kWhole) {
    T out;
    out.lo = dot_(Vector<i32, kCount / 2>(sum.lo), Vector<i32, kCount / 2>(x.lo),
                  Vector<i32, kCount / 2>(w.lo));
    out.hi = dot_(Vector<i32, kCount / 2>(sum.hi), Vector<i32, kCount / 2>(x.hi),
                  Vector<i32, kCount / 2>(w.hi));
    return out;
  } else {
    Pairs even_x = Pairs(x & 0x00ff00ff), odd_x = Pairs((x >> 8) & 0x00ff00ff);
    Pairs odd_w = Pairs(w) >> 8, even_w = (Pairs(w) << 8) >> 8;
#if defined(__AVX2__)
    if constexpr (kCount == 8)
      return sum + T(__builtin_ia32_pmaddwd256(even_x, even_w)) +
             T(__builtin_ia32_pmaddwd256(odd_x, odd_w));
#endif
#if defined(__SSE2__)
    if constexpr (kCount == 4)
      return sum + T(__builtin_ia32_pmaddwd128(even_x, even_w)) +
             T(__builtin_ia32_pmaddwd128(odd_x, odd_w));
#endif
#pragma clang loop unroll(full)
    for (int i = 0; i < kCount; ++i)
      sum[i] += i32(even_x[2 * i]) * even_w[2 * i] + i32(odd_x[2 * i]) * odd_w[2 * i] +
                i32(even_x[2 * i + 1]) * even_w[2 * i + 1] +
                i32(odd_x[2 * i + 1]) * odd_w[2 * i + 1];
    return sum;
  }
}
#ifdef SVOD_PLAIN
// The same of signed bytes.
template <class T> SVOD_INLINE T dot_signed_(T sum, T x, T w) {
  for (int i = 0; i < Traits<T>::kLanes; ++i)
    for (int bit = 0; bit < 32; bit += 8)
      sum[i] += i32(i8(x[i] >> bit)) * i8(w[i] >> bit);
  return sum;
}
#endif
#endif
// Four vectors of bytes that follow each other, as four bytes per lane: groups of four
// lanes come together first, then bytes change places within them.
template <class T, int... kWord>
SVOD_INLINE T gather_groups(T words, Numbers<int, kWord...>) {
  return shuffle_<(kWord % 4 * (kLanes / 4) + kWord / 4)...>(words, words);
}
template <class T, int... kByte>
SVOD_INLINE T swap_in_groups(T bytes, Numbers<int, kByte...>) {
  return shuffle_<(kByte / 16 * 16 + kByte % 4 * 4 + kByte % 16 / 4)...>(bytes, bytes);
}
template <class E> SVOD_INLINE vi32 interleave_dots(const E* from) {
  const vi32 words = gather_groups(load_dots(from), NumbersTo<kLanes>());
  return vi32(swap_in_groups(DotBytes<u8>(words), NumbersTo<4 * kLanes>()));
}
} // namespace kernel
