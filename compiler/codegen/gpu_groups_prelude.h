// Groups of four warps that multiply tiles straight from shared memory, while their
// threads go on ("wgmma", PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
// A factor's tile consists of rows of 128 bytes: of one position's steps, or of one
// step's positions. Units of 16 bytes of a row are exchanged by the row's number, so that
// neither who writes along one nor who reads across eight of them meets in a bank
// ("128-byte swizzle").
namespace kernel {
template <class E> inline constexpr u32 kOfRow = 128 / sizeof(E);
// The place of a factor's element, in elements.
template <bool kBySteps, u32 kSteps, class E>
SVOD_INLINE u32 swizzled_place(u32 position, u32 step) {
  constexpr u32 kRow = kOfRow<E>, kUnit = 16 / sizeof(E);
  const u32 row = kBySteps ? position : position / kRow * kSteps + step,
            column = kBySteps ? step : position % kRow;
  return row * kRow + (column / kUnit ^ row % 8) * kUnit + column % kUnit;
}
#ifdef __NVPTX__
// A factor's part from a position and step on, as the instruction wants it: an address,
// how far the next eight rows are, and how far those of the positions behind a row.
template <bool kBySteps, u32 kSteps, class E>
SVOD_INLINE u64 factor_of_group(SVOD_OF_BLOCK const E* tile, u32 position, u32 step) {
  constexpr u32 kRow = kOfRow<E>;
  const u32 at =
      kBySteps ? position * kRow + step : position / kRow * kRow * kSteps + step * kRow;
  constexpr u64 kSwizzled = u64(1) << 62, kEightRows = u64(8 * 128 / 16) << 32,
                kBehind = u64(kBySteps ? 1 : kSteps * 128 / 16) << 16;
  return kSwizzled | kEightRows | kBehind | (u32(u64(tile + at)) & 0x3ffff) >> 4;
}
// What was copied to shared memory is seen by those who read it beside the threads.
SVOD_INLINE void show_to_groups() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
struct GroupProducts {};
SVOD_INLINE void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SVOD_INLINE void end_products(GroupProducts&) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Sums are in registers of their own before and behind products, which the compiler knows
// nothing of.
template <u32 kSums, class S> SVOD_INLINE void hold(S (&sums)[kSums]) {
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kSums; ++i)
    if constexpr (__is_same(S, f32))
      asm volatile("" : "+f"(sums[i]) : : "memory");
    else
      asm volatile("" : "+r"(sums[i]) : : "memory");
}
// Sums are there when all products are done but those of the last `kBut` ends.
template <int kBut, u32 kSums, class S>
SVOD_INLINE void wait_for_products(GroupProducts&, S (&sums)[kSums]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kBut) : "memory");
  if constexpr (kBut == 0) hold(sums);
}
#else
template <class E> struct FactorOfGroup {
  const E* tile;
  u32 position, step;
};
template <bool kBySteps, u32 kSteps, class E>
SVOD_INLINE FactorOfGroup<E> factor_of_group(const E* tile, u32 position, u32 step) {
  return {tile, position, step};
}
SVOD_INLINE void show_to_groups() {}
SVOD_INLINE void begin_products() {}
template <class S> SVOD_INLINE void hold(S&) {}
template <class T, class S, class E> SVOD_INLINE S as_factor(E element) {
  if constexpr (__is_same(T, f16))
    return f16_to_float(element);
  else if constexpr (__is_same(T, bf16))
    return bf16_to_float(element);
  else if constexpr (__is_same(T, tf32))
    return tf32_of(__builtin_bit_cast(u32, element));
  else
    return S(element);
}
// Products of a thread that nobody has waited for yet: they are computed as late as they
// may be, of what shared memory holds by then.
template <class A, class B, u32 kColumns, bool kRowsBySteps, bool kColumnsBySteps,
          u32 kSteps, class E, class F, class S>
struct GroupProducts {
  struct Product {
    S* sums;
    FactorOfGroup<E> rows;
    FactorOfGroup<F> columns;
  };
  static constexpr u32 kMost = 64;
  Product waiting[kMost];
  u32 begin = 0, end = 0, ends[4] = {};
  void add(S* sums, FactorOfGroup<E> rows, FactorOfGroup<F> columns) {
    waiting[end++ % kMost] = {sums, rows, columns};
  }
  void finish() {
    for (u32 i = 3; i > 0; --i) ends[i] = ends[i - 1];
    ends[0] = end;
  }
  void compute(const Product& p) {
    const u32 thread = thread_number() % 128, lane = thread % kWarpThreads;
    for (u32 n = 0; n < kColumns / 2; ++n) {
      const u32 row = p.rows.position + thread / kWarpThreads * 16 + n / 2 % 2 * 8 +
                      lane / 4,
                column = p.columns.position + n / 4 * 8 + lane % 4 * 2 + n % 2;
      for (u32 s = 0; s < 32 / sizeof(E); ++s)
        p.sums[n] +=
            as_factor<A, S>(p.rows.tile[swizzled_place<kRowsBySteps, kSteps, E>(
                row, p.rows.step + s)]) *
            as_factor<B, S>(p.columns.tile[swizzled_place<kColumnsBySteps, kSteps, F>(
                column, p.columns.step + s)]);
    }
  }
};
template <class P> SVOD_INLINE void end_products(P& products) { products.finish(); }
template <int kBut, class P, class S>
SVOD_INLINE void wait_for_products(P& products, S&) {
  for (; products.begin < products.ends[kBut]; ++products.begin)
    products.compute(products.waiting[products.begin % P::kMost]);
}
#endif
} // namespace kernel
