// What kernels of processors with NEON start with, after the prelude, where integers
// become bytes or groups of four bytes are multiplied (columns `narrows` and `dots` of
// targets.def). The instructions are asked for by name: as arithmetic, a product's upper
// half takes three of them, and the compiler finds no saturation across two narrowings.
namespace kernel {
typedef Vector<i32, 4> Quad;
typedef __attribute__((__neon_vector_type__(16))) i8 QuadBytes;
// The codes of element types that the builtins take.
enum { kNeonI8 = 0, kNeonI16 = 1, kNeonU8 = 16, kNeonQuadI32 = 34 };

// The upper half of x times an even number, of which `half` is the half: the instruction
// doubles the product.
template <class T> SVOD_INLINE T high_products(T x, i32 half) {
  constexpr int kCount = Traits<T>::kLanes;
  if constexpr (kCount > 4) {
    typedef Vector<i32, kCount / 2> Half;
    x.lo = high_products(Half(x.lo), half);
    x.hi = high_products(Half(x.hi), half);
    return x;
  } else {
    return bits_<T>(__builtin_neon_vqdmulhq_v(
        bits_<QuadBytes>(x), bits_<QuadBytes>(Quad(half)), kNeonQuadI32));
  }
}

// Four or eight numbers shifted down as 16 bits, and eight of these as bytes, both with
// saturation.
template <int kRight> SVOD_INLINE Vector<i16, 4> narrowed_to_pairs(Quad x) {
  if constexpr (kRight == 0)
    return bits_<Vector<i16, 4>>(__builtin_neon_vqmovn_v(bits_<QuadBytes>(x), kNeonI16));
  else if constexpr (kRight <= 16)
    return bits_<Vector<i16, 4>>(
        __builtin_neon_vqshrn_n_v(bits_<QuadBytes>(x), kRight, kNeonI16));
  else
    return narrowed_to_pairs<16>(x >> (kRight - 16));
}
template <class E> SVOD_INLINE Vector<E, 8> narrowed_to_bytes(Vector<i16, 8> x) {
  if constexpr (E(-1) < E(0))
    return bits_<Vector<E, 8>>(__builtin_neon_vqmovn_v(bits_<QuadBytes>(x), kNeonI8));
  else
    return bits_<Vector<E, 8>>(__builtin_neon_vqmovun_v(bits_<QuadBytes>(x), kNeonU8));
}
// x / 2^kRight, rounded down, as a byte of type E with saturation.
template <class E, int kRight, class T> SVOD_INLINE Like<T, E> narrowed(T x) {
  constexpr int kCount = Traits<T>::kLanes;
  Like<T, E> out;
  if constexpr (kCount > 8) {
    typedef Vector<i32, kCount / 2> Half;
    out.lo = narrowed<E, kRight>(Half(x.lo));
    out.hi = narrowed<E, kRight>(Half(x.hi));
    return out;
  } else {
    const Vector<i16, 4> first = narrowed_to_pairs<kRight>(first_part<4>(x));
    // What is beside four lanes may be anything.
    Vector<i16, 8> pairs =
        __builtin_shufflevector(first, first, 0, 1, 2, 3, -1, -1, -1, -1);
    if constexpr (kCount == 8) pairs.hi = narrowed_to_pairs<kRight>(Quad(x.hi));
    return first_part<kCount>(narrowed_to_bytes<E>(pairs));
  }
}

#if defined(__ARM_FEATURE_DOTPROD)
// Sums of the first 4 N lanes, a register for four of them.
template <int N> struct QuadSums {
  Quad part[N];
};
template <int N, int kPart = 0> SVOD_INLINE QuadSums<N> quad_sums(vi32 whole) {
  QuadSums<N> out;
  if constexpr (kPart + 1 < N) out = quad_sums<N, kPart + 1>(whole);
  out.part[kPart] = quad_of<4 * kPart>(whole);
  return out;
}
template <int N> SVOD_INLINE vi32 whole_sums(QuadSums<N> sums) {
  vi32 out = vi32(0);
  __builtin_memcpy(&out, sums.part, sizeof sums.part);
  return out;
}
// So many groups of four bytes that follow each other.
template <int kGroups> SVOD_INLINE Quad load_groups(const void* from) {
  Vector<i32, kGroups == 1 ? 2 : kGroups> out;
  __builtin_memcpy(&out, from, 4 * kGroups);
  if constexpr (kGroups == 4)
    return out;
  else
    return __builtin_shufflevector(out, out, 0, 1, -1, -1);
}
// The products of group `kElement` of x with the groups of all lanes.
template <int kElement, int kPart = 0, int N>
SVOD_INLINE void add_dots(QuadSums<N>& sums, Quad x, vi32 w) {
  const Quad group =
      __builtin_shufflevector(x, x, kElement, kElement, kElement, kElement);
  sums.part[kPart] = bits_<Quad>(__builtin_neon_vdotq_s32(
      bits_<QuadBytes>(sums.part[kPart]), bits_<QuadBytes>(quad_of<4 * kPart>(w)),
      bits_<QuadBytes>(group), kNeonQuadI32));
  if constexpr (kPart + 1 < N) add_dots<kElement, kPart + 1>(sums, x, w);
}
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
// Rows of two numbers each: the second half of a and the first one of b change places.
template <int kPart = 0, int N>
SVOD_INLINE void exchange_halves(QuadSums<N>& a, QuadSums<N>& b) {
  const Quad first = a.part[kPart], second = b.part[kPart];
  a.part[kPart] = __builtin_shufflevector(first, second, 0, 1, 4, 5);
  b.part[kPart] = __builtin_shufflevector(first, second, 2, 3, 6, 7);
  if constexpr (kPart + 1 < N) exchange_halves<kPart + 1>(a, b);
}
SVOD_INLINE Quad add_matrix(Quad sums, Quad x, Quad w) {
  return bits_<Quad>(__builtin_neon_vmmlaq_s32(
      bits_<QuadBytes>(sums), bits_<QuadBytes>(x), bits_<QuadBytes>(w), kNeonQuadI32));
}
template <int kPart = 0, int N>
SVOD_INLINE void add_rows(QuadSums<N>& a, QuadSums<N>& b, Quad rows, vi32 w, vi32 next) {
  const Quad one = quad_of<4 * kPart>(w), two = quad_of<4 * kPart>(next);
  a.part[kPart] =
      add_matrix(a.part[kPart], rows, __builtin_shufflevector(one, two, 0, 4, 1, 5));
  b.part[kPart] =
      add_matrix(b.part[kPart], rows, __builtin_shufflevector(one, two, 2, 6, 3, 7));
  if constexpr (kPart + 1 < N) add_rows<kPart + 1>(a, b, rows, w, next);
}
// Of each lane the groups w and next, of two positions their groups of both steps: x and
// its next one, y and its. a are the sums of both positions for the first two lanes of
// each four, b those for the others.
template <int kX, int kNextX, int kY, int kNextY, int N>
SVOD_INLINE void add_matrices(QuadSums<N>& a, QuadSums<N>& b, Quad x, Quad next_x, Quad y,
                              Quad next_y, vi32 w, vi32 next) {
  const auto row_x = __builtin_shufflevector(x, next_x, kX, 4 + kNextX),
             row_y = __builtin_shufflevector(y, next_y, kY, 4 + kNextY);
  add_rows(a, b, __builtin_shufflevector(row_x, row_y, 0, 1, 2, 3), w, next);
}
#endif
} // namespace kernel
