// What emitted kernels start with, after the scalar functions: vectors of kLanes
// elements, loads and stores, reductions across lanes. Text for Clang, and with
// SVOD_PLAIN for any compiler; kLanes is defined before it.
namespace kernel {
using namespace scalar;
typedef float f32;
typedef double f64;
typedef __INTPTR_TYPE__ iptr;
typedef __UINTPTR_TYPE__ uptr;
template <class E> using Lanes = Vector<E, kLanes>;
typedef Lanes<u8> vu8;
typedef Lanes<u16> vu16;
typedef Lanes<u32> vu32;
typedef Lanes<u64> vu64;
typedef Lanes<i8> vi8;
typedef Lanes<i16> vi16;
typedef Lanes<i32> vi32;
typedef Lanes<i64> vi64;
typedef Lanes<f32> vf32;
typedef Lanes<f64> vf64;

// Neighbouring elements, at any alignment.
#ifdef SVOD_PLAIN
template <class E> SVOD_INLINE Lanes<E> load(const E* from) {
  return gathered<Lanes<E>>(from);
}
template <class E> SVOD_INLINE void store(E* to, Lanes<E> value) { scattered(to, value); }
#else
template <class E> SVOD_INLINE Lanes<E> load(const E* from) {
  Lanes<E> out;
#if defined(__riscv) && !defined(__riscv_vector)
  // Bytes one by one: as words they may lie at any address, and would be put together
  // from bytes to be taken apart again.
  if constexpr (sizeof(E) == 1) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) out[i] = from[i];
    return out;
  }
#endif
#if defined(__riscv_vector)
  // As elements: copied, a short vector becomes a word that is put together from bytes.
  typedef Lanes<E> Near __attribute__((aligned(sizeof(E)), may_alias));
  out = *reinterpret_cast<const Near*>(from);
#else
  __builtin_memcpy(&out, from, sizeof out);
#endif
  return out;
}
template <class E> SVOD_INLINE void store(E* to, Lanes<E> value) {
#if defined(__riscv_vector)
  typedef Lanes<E> Near __attribute__((aligned(sizeof(E)), may_alias));
  *reinterpret_cast<Near*>(to) = value;
#else
  __builtin_memcpy(to, &value, sizeof value);
#endif
}
#endif
// Where a loop from `low` to `high` ends of which a run needs `size` positions of a
// dimension; `step` of them are one position of the loop.
SVOD_INLINE iptr end_of_run(i64 size, iptr step, iptr low, iptr high) {
  if (size >= i64(high) * step) return high;
  const iptr end = size < 0 ? 0 : (iptr(size) + step - 1) / step;
  return end < low ? low : end;
}
// A register of so many of them.
template <int N, class E> SVOD_INLINE Vector<E, N> load_elements(const E* from) {
#ifdef SVOD_PLAIN
  return gathered<Vector<E, N>>(from);
#else
  Vector<E, N> out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
#endif
}
template <class E, int N> SVOD_INLINE void store_elements(E* to, Vector<E, N> value) {
#ifdef SVOD_PLAIN
  scattered(to, value);
#else
  __builtin_memcpy(to, &value, sizeof value);
#endif
}
// The first lanes of a vector, and a vector of them followed by zeros.
template <int N, class T> SVOD_INLINE Vector<Element<T>, N> first_part(T value) {
  if constexpr (Traits<T>::kLanes == N)
    return value;
  else
    return first_part<N>(Vector<Element<T>, Traits<T>::kLanes / 2>(value.lo));
}
template <class T, class Part> SVOD_INLINE T lengthened(Part part) {
  constexpr int kCount = Traits<T>::kLanes;
  if constexpr (Traits<Part>::kLanes == kCount) {
    return part;
  } else {
    T out = T(0);
    out.lo = lengthened<Vector<Element<T>, kCount / 2>>(part);
    return out;
  }
}
// A line that is wanted soon, into the second cache; it may lie behind the end of memory.
template <class E>
SVOD_INLINE void fetch([[maybe_unused]] const E* from, [[maybe_unused]] iptr at) {
#ifndef SVOD_PORTABLE
  __builtin_prefetch(reinterpret_cast<const void*>(uptr(from) + uptr(at) * sizeof(E)), 0,
                     2);
#endif
}
// Numbers from 0 on as a type, and lanes of a and, counted on, of b by their numbers.
template <class I, I... kNumbers> struct Numbers {};
#ifdef SVOD_PLAIN
template <int kCount, int... kNumbers>
SVOD_INLINE constexpr auto numbers_to(Numbers<int, kNumbers...> counted) {
  if constexpr (kCount == 0)
    return counted;
  else
    return numbers_to<kCount - 1>(Numbers<int, kCount - 1, kNumbers...>());
}
template <int kCount> using NumbersTo = decltype(numbers_to<kCount>(Numbers<int>()));
#else
template <int kCount> using NumbersTo = __make_integer_seq<Numbers, int, kCount>;
template <int... kAt, class T> SVOD_INLINE auto shuffle_(T a, T b) {
  return __builtin_shufflevector(a, b, kAt...);
}
#endif
// Where the processor takes some lanes of a vector for itself, a bit for each, that is
// one instruction for 64 bytes.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
typedef char Bytes __attribute__((vector_size(16)));
typedef short Shorts __attribute__((vector_size(32)));
typedef int Words __attribute__((vector_size(64)));
typedef long long Longs __attribute__((vector_size(64)));
inline constexpr bool kSomeLanes = kLanes == 16;
SVOD_INLINE u32 lane_bits(iptr low, iptr high) {
  auto below = [](iptr n) { return n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1; };
  return below(high) & ~below(low);
}
template <class T> SVOD_INLINE T load_lanes(const Element<T>* from, T other, u32 bits) {
  if constexpr (sizeof(T) == 128) {
    T out;
    out.lo = load_lanes(from, Vector<Element<T>, 8>(other.lo), bits & 0xff);
    out.hi = load_lanes(from + 8, Vector<Element<T>, 8>(other.hi), bits >> 8);
    return out;
  } else if constexpr (sizeof(Element<T>) == 8)
    return bits_<T>(__builtin_ia32_loaddqudi512_mask((const long long*)from,
                                                     bits_<Longs>(other), u8(bits)));
  else if constexpr (sizeof(Element<T>) == 4)
    return bits_<T>(__builtin_ia32_loaddqusi512_mask((const int*)from,
                                                     bits_<Words>(other), u16(bits)));
  else if constexpr (sizeof(Element<T>) == 2)
    return bits_<T>(__builtin_ia32_loaddquhi256_mask((const Shorts*)from,
                                                     bits_<Shorts>(other), u16(bits)));
  else
    return bits_<T>(__builtin_ia32_loaddquqi128_mask((const Bytes*)from,
                                                     bits_<Bytes>(other), u16(bits)));
}
template <class T> SVOD_INLINE void store_lanes(Element<T>* to, T value, u32 bits) {
  if constexpr (sizeof(T) == 128) {
    store_lanes(to, Vector<Element<T>, 8>(value.lo), bits & 0xff);
    store_lanes(to + 8, Vector<Element<T>, 8>(value.hi), bits >> 8);
  } else if constexpr (sizeof(Element<T>) == 8)
    __builtin_ia32_storedqudi512_mask((long long*)to, bits_<Longs>(value), u8(bits));
  else if constexpr (sizeof(Element<T>) == 4)
    __builtin_ia32_storedqusi512_mask((int*)to, bits_<Words>(value), u16(bits));
  else if constexpr (sizeof(Element<T>) == 2)
    __builtin_ia32_storedquhi256_mask((Shorts*)to, bits_<Shorts>(value), u16(bits));
  else
    __builtin_ia32_storedquqi128_mask((Bytes*)to, bits_<Bytes>(value), u16(bits));
}
#else
inline constexpr bool kSomeLanes = false;
SVOD_INLINE u32 lane_bits(iptr, iptr) { return 0; }
template <class T> SVOD_INLINE T load_lanes(const Element<T>*, T other, u32) {
  return other;
}
template <class T> SVOD_INLINE void store_lanes(Element<T>*, T, u32) {}
#endif
// The lanes from `low` to before `high`; the others are `fill` and memory there is not
// touched.
template <class E>
SVOD_INLINE Lanes<E> load_between(const E* from, iptr low, iptr high, E fill) {
  Lanes<E> out = fill;
  if constexpr (kSomeLanes) {
    out = load_lanes(from, out, lane_bits(low, high));
  } else {
    for (iptr i = 0; i < kLanes; ++i)
      if (i >= low && i < high) out[i] = from[i];
  }
  return out;
}
// The first `count` of them; the others are zero.
template <class E> SVOD_INLINE Lanes<E> load_part(const E* from, iptr count) {
  return load_between(from, 0, count, E(0));
}
// Elements kStep apart: kStep vectors, each beginning with the last element of the one
// before, so that nothing beyond the last wanted element is touched.
template <int kStep> SVOD_INLINE constexpr int piece_of(int lane) {
  int piece = kLanes == 1 ? 0 : kStep * lane / (kLanes - 1);
  return piece < kStep ? piece : kStep - 1;
}
template <int kStep, int kPiece, class T, int... kLane>
SVOD_INLINE T take_piece(T taken, T piece, Numbers<int, kLane...>) {
  return shuffle_<(
      piece_of<kStep>(kLane) == kPiece ? kLanes + kStep * kLane - kPiece * (kLanes - 1)
      : kPiece == 1 && piece_of<kStep>(kLane) == 0 ? kStep * kLane
                                                   : kLane)...>(taken, piece);
}
template <int kStep, int kPiece = 1, class T, class F>
SVOD_INLINE T take_pieces(T taken, F load_piece) {
  taken = take_piece<kStep, kPiece>(taken, load_piece(kPiece * (kLanes - 1)),
                                    NumbersTo<kLanes>());
  if constexpr (kPiece + 1 < kStep)
    return take_pieces<kStep, kPiece + 1>(taken, load_piece);
  return taken;
}
// Numbers of a vector's elements, moved by what is known at run time.
template <int... kAt> SVOD_INLINE Lanes<i32> lane_numbers(i32 moved) {
  Lanes<i32> at = {kAt...};
  at += moved;
  return at;
}
// The elements of a vector with these numbers.
template <class T> SVOD_INLINE T take_lanes(T from, Lanes<i32> at) {
#if defined(__AVX512F__) && !defined(SVOD_PORTABLE)
  if constexpr (sizeof(T) == 64) return __builtin_ia32_permvarsf512(from, at);
#endif
#if defined(__AVX2__) && !defined(SVOD_PORTABLE)
  if constexpr (sizeof(T) == 32) return __builtin_ia32_permvarsf256(from, at);
#endif
  T out;
  for (iptr l = 0; l < kLanes; ++l) out[l] = from[at[l]];
  return out;
}
template <int kStep, class E> SVOD_INLINE Lanes<E> load_strided(const E* from) {
  return take_pieces<kStep>(load(from), [&](iptr at) { return load(from + at); });
}
template <int kStep, class E>
SVOD_INLINE Lanes<E> load_strided_between(const E* from, iptr low, iptr high, E fill) {
  auto piece = [&](iptr at) {
    return load_between(from + at, kStep * low - at, kStep * (high - 1) + 1 - at, fill);
  };
  return take_pieces<kStep>(piece(0), piece);
}
template <class E> SVOD_INLINE void store_part(E* to, Lanes<E> value, iptr count) {
  if constexpr (kSomeLanes) {
    store_lanes(to, value, lane_bits(0, count));
  } else {
    for (iptr i = 0; i < kLanes; ++i)
      if (i < count) to[i] = value[i];
  }
}
// Lane numbers.
template <class E> SVOD_INLINE Lanes<E> lane_numbers() {
  Lanes<E> out;
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; ++i) out[i] = E(i);
  return out;
}
// value in the first `count` lanes, `other` beyond.
template <class E>
SVOD_INLINE Lanes<E> first_lanes(Lanes<E> value, Lanes<E> other, iptr count) {
  return choose(lane_numbers<i32>() < i32(count), value, other);
}
// Elements `step` apart for the lanes from `low` to before `high`; the others are `fill`.
// They read where the nearest of those does, so that no lane takes a branch.
template <class E>
SVOD_INLINE Lanes<E> load_apart(const E* from, iptr step, iptr low, iptr high, E fill) {
  Lanes<E> read = fill, out = fill;
  low = low > 0 ? low : 0;
  high = high < kLanes ? high : iptr(kLanes);
  if (low >= high) return out;
#pragma clang loop unroll(full)
  for (iptr i = 0; i < kLanes; ++i)
    read[i] = from[step * (i < low ? low : i < high ? i : high - 1)];
  return first_lanes<E>(out, first_lanes<E>(read, out, high), low);
}
// Rounding towards minus infinity; divisor > 0.
SVOD_INLINE iptr floor_div(iptr a, iptr b) { return a / b - (a % b < 0); }
SVOD_INLINE iptr ceil_div(iptr a, iptr b) { return -floor_div(-a, b); }
SVOD_INLINE iptr floor_mod(iptr a, iptr b) {
  iptr rest = a % b;
  return rest < 0 ? rest + b : rest;
}
// A float rounded to each of the formats that are computed in float.
template <class F> SVOD_INLINE F round_f16(F x) { return f16_to_float(float_to_f16(x)); }
template <class F> SVOD_INLINE F round_bf16(F x) {
  return bf16_to_float(float_to_bf16(x));
}
template <class F> SVOD_INLINE F round_f4e2m1(F x) {
  return f4e2m1_to_float(float_to_f4e2m1(x));
}
template <class F> SVOD_INLINE F round_f8e4m3fn(F x) {
  return f8e4m3fn_to_float(float_to_f8e4m3fn(x));
}
template <class F> SVOD_INLINE F round_f8e4m3fnuz(F x) {
  return f8e4m3fnuz_to_float(float_to_f8e4m3fnuz(x));
}
template <class F> SVOD_INLINE F round_f8e5m2(F x) {
  return f8e5m2_to_float(float_to_f8e5m2(x));
}
template <class F> SVOD_INLINE F round_f8e5m2fnuz(F x) {
  return f8e5m2fnuz_to_float(float_to_f8e5m2fnuz(x));
}
template <class F> SVOD_INLINE F round_f8e8m0(F x) {
  return f8e8m0_to_float(float_to_f8e8m0(x));
}

// Lanes combined in a fixed tree: halves, quarters, ...
struct SumOf {
  template <class T> SVOD_INLINE static T of(T a, T b) { return a + b; }
};
struct ProductOf {
  template <class T> SVOD_INLINE static T of(T a, T b) { return a * b; }
};
struct MinOf {
  template <class T> SVOD_INLINE static T of(T a, T b) { return min_(a, b); }
};
struct MaxOf {
  template <class T> SVOD_INLINE static T of(T a, T b) { return max_(a, b); }
};
template <class How, class T> SVOD_INLINE Element<T> across(T value) {
  if constexpr (Traits<T>::kLanes == 2)
    return How::template of<Element<T>>(value[0], value[1]);
  else
    return across<How>(How::of(Vector<Element<T>, Traits<T>::kLanes / 2>(value.lo),
                               Vector<Element<T>, Traits<T>::kLanes / 2>(value.hi)));
}
// The same for kLanes vectors at once, result j in lane j of v[0]. v holds W vectors with
// kLanes / W partial results of W lanes each; neighbours meet in one vector of halves.
template <class How, int W, class T, int... kLane>
SVOD_INLINE T halves(T a, T b, Numbers<int, kLane...>) {
  return How::of(shuffle_<(kLane / (W / 2) * W + kLane % (W / 2))...>(a, b),
                 shuffle_<(kLane / (W / 2) * W + kLane % (W / 2) + W / 2)...>(a, b));
}
template <class How, int W, class T> SVOD_INLINE void across_each(T* v) {
#pragma clang loop unroll(full)
  for (int i = 0; i < W / 2; ++i)
    v[i] = halves<How, W>(v[2 * i], v[2 * i + 1], NumbersTo<kLanes>());
  if constexpr (W > 2) across_each<How, W / 2>(v);
}
// kSide vectors as squares of so many lanes each: in a square element l of v[i] and
// element i of v[l] change places. Squares of 2 W by 2 W swap two of their quarters.
template <int W, bool kUpper, class T, int... kLane>
SVOD_INLINE T quarters(T a, T b, Numbers<int, kLane...>) {
  return shuffle_<(kUpper ? ((kLane & W) == 0 ? kLane + W : kLanes + kLane)
                          : ((kLane & W) == 0 ? kLane : kLanes + kLane - W))...>(a, b);
}
template <int kSide, int W = 1, class T> SVOD_INLINE void transpose_squares(T* v) {
  constexpr auto kAll = NumbersTo<kLanes>();
#pragma clang loop unroll(full)
  for (int i = 0; i < kSide; ++i) {
    if ((i & W) != 0) continue;
    const T a = v[i], b = v[i + W];
    v[i] = quarters<W, false>(a, b, kAll);
    v[i + W] = quarters<W, true>(a, b, kAll);
  }
  if constexpr (2 * W < kSide) transpose_squares<kSide, 2 * W>(v);
}
// The first kCount of kSide elements that begin at lane kFirst.
template <int kCount, int kFirst, class E, int... kLane>
SVOD_INLINE void store_row(E* to, Lanes<E> value, Numbers<int, kLane...>) {
  constexpr int kSide = sizeof...(kLane);
  if constexpr (kSide == kLanes) {
    if constexpr (kCount == kLanes)
      store(to, value);
    else
      store_part(to, value, kCount);
  } else if constexpr (kCount == kSide) {
    store_elements<E, kSide>(to, shuffle_<(kFirst + kLane)...>(value, value));
  } else {
#pragma clang loop unroll(full)
    for (int i = 0; i < kCount; ++i) to[i] = value[kFirst + i];
  }
}
// The vectors are the first kColumns of columns: row l of them goes to `to(l)` where it
// is wanted.
template <int kColumns, class E, class To, class Wanted, int kSide, int... kRow>
SVOD_INLINE void store_rows(Lanes<E> (&v)[kSide], To to, Wanted wanted,
                            Numbers<int, kRow...>) {
  ((wanted(kRow) ? store_row<kColumns, kRow / kSide * kSide>(to(kRow), v[kRow % kSide],
                                                             NumbersTo<kSide>())
                 : void()),
   ...);
}
template <int kColumns, class E, int kSide, class To, class Wanted>
SVOD_INLINE void store_columns(Vector<E, kLanes> (&v)[kSide], To to, Wanted wanted) {
  transpose_squares<kSide>(v);
  store_rows<kColumns, E>(v, to, wanted, NumbersTo<kLanes>());
}
// Whether a comes before b as a new extreme: NaN is the most extreme of all.
template <class T> SVOD_INLINE auto beats(T a, T b, bool greater, bool or_equal) {
  auto strict = greater ? a > b : a < b;
  auto equal = (a == b) | ((a != a) & (b != b));
  auto nan = (a != a) & (b == b);
  auto comparable = b == b;
  auto wins = (strict & comparable) | nan;
  return test(or_equal ? (wins | equal) : wins);
}
// The position of the most extreme of the lanes' best; of equals the first, or the last.
template <class T>
SVOD_INLINE i32 best_lane(T best, Like<T, i32> at, bool greater, bool last) {
  Element<T> most = best[0];
  i32 where = at[0];
#pragma clang loop unroll(full)
  for (int l = 1; l < Traits<T>::kLanes; ++l) {
    bool better = beats(Element<T>(best[l]), most, greater, false);
    bool equal = !better && beats(Element<T>(best[l]), most, greater, true);
    if (better || (equal && (last ? at[l] > where : at[l] < where)))
      most = best[l], where = at[l];
  }
  return where;
}
// kWalks walks down decision trees side by side, `at` from roots to the nodes reached;
// see Op::Descend. A node that is reached for good has distance 0: deep trees look now
// and then whether all walks are there.
// The sum is written so that a comparison of unsigned numbers becomes its carry.
template <int kSteps, int kWalks, class K>
SVOD_INLINE void descend(const K* const* keys, iptr stride, const K* nodes, iptr* at) {
  constexpr int kHalf = 4 * sizeof(K), kLook = 4;
  K moved = 0;
#pragma clang loop unroll(disable)
  for (int step = 0; step < kSteps; ++step) {
    if (kSteps > 2 * kLook && step > kLook && step % kLook == 0) {
      if (moved == 0) break;
      moved = 0;
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < kWalks; ++i) {
      const K link = nodes[2 * at[i] + 1];
      const K column = K(link << kHalf) >> kHalf, distance = link >> kHalf;
      const bool further = keys[i][iptr(column) * stride] > nodes[2 * at[i]];
      at[i] = iptr(uptr(at[i]) + uptr(distance) + further);
      moved |= distance;
    }
  }
}
template <int kSteps, class K>
SVOD_INLINE K descend_one(const K* keys, iptr stride, const K* nodes, iptr at) {
  descend<kSteps, 1>(&keys, stride, nodes, &at);
  return nodes[2 * at];
}
// Records an index outside [0, limit) and replaces it by 0.
template <class T> SVOD_INLINE T checked(T index, u64 limit, i32& bad) {
  if constexpr (kVector<T>) {
    auto outside = index < T(0);
    if (limit <= u64(kHighest<Element<T>>)) outside |= index >= T(Element<T>(limit));
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) bad |= outside[i] != 0;
    index = choose(outside, T(0), index);
  } else if (u64(i64(index)) >= limit) {
    bad = 1;
    index = 0;
  }
  return index;
}
} // namespace kernel
