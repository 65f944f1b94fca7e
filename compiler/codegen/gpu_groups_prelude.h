// Groups of four warps that multiply tiles straight from shared memory, while their
// threads go on ("wgmma", PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
// A factor's tile consists of rows of 128 bytes: of one position's steps, or of one
// step's positions. Units of 16 bytes of a row are exchanged by the row's number, so that
// neither who writes along one nor who reads across eight of them meets in a bank
// ("128-byte swizzle").
namespace kernel {
template <class E> inline constexpr u32 kOfRow = 128 / sizeof(E);
// The place of a factor's element, in elements. What is further along a row than it is
// long lies behind the rows of all `kRuns` positions, or steps.
template <bool kBySteps, u32 kRuns, class E>
SVOD_INLINE u32 swizzled_place(u32 position, u32 step) {
  constexpr u32 kRow = kOfRow<E>, kUnit = 16 / sizeof(E);
  const u32 along = kBySteps ? step : position, run = kBySteps ? position : step,
            row = along / kRow * kRuns + run, column = along % kRow;
  return row * kRow + (column / kUnit ^ run % 8) * kUnit + column % kUnit;
}
#ifdef __NVPTX__
// A factor's part from a position and step on, as the instruction wants it: an address,
// how far the next eight rows are, and how far those of the positions behind a row.
template <bool kBySteps, u32 kRuns, class E> using FactorOfGroup = u64;
template <bool kBySteps, u32 kRuns, class E>
SVOD_INLINE u64 factor_of_group(SVOD_OF_BLOCK const E* tile, u32 position, u32 step) {
  constexpr u32 kRow = kOfRow<E>;
  const u32 along = kBySteps ? step : position, run = kBySteps ? position : step,
            at = (along / kRow * kRuns + run) * kRow + along % kRow;
  constexpr u64 kSwizzled = u64(1) << 62, kEightRows = u64(8 * 128 / 16) << 32,
                kBehind = u64(kBySteps ? 1 : kRuns * 128 / 16) << 16;
  return kSwizzled | kEightRows | kBehind | (u32(u64(tile + at)) & 0x3ffff) >> 4;
}
// What was copied to shared memory is seen by those who read it beside the threads.
SVOD_INLINE void show_to_groups() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
template <class A, class B, u32 kColumns, class R, class C, class S>
struct GroupProducts {};
SVOD_INLINE void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class P> SVOD_INLINE void end_products(P&) {
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
template <u32 kCount> SVOD_INLINE void hold(Matrix (&rows)[kCount]) {
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kCount; ++i)
#pragma clang loop unroll(full)
    for (u32 w = 0; w < 4; ++w) asm volatile("" : "+r"(rows[i].words[w]) : : "memory");
}
// Sums are there when all products are done but those of the last `kBut` ends.
template <int kBut, class P, u32 kSums, class S>
SVOD_INLINE void wait_for_products(P&, S (&sums)[kSums]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kBut) : "memory");
  if constexpr (kBut == 0) hold(sums);
}
#else
template <bool kBySteps, u32 kRuns, class E> struct FactorOfGroup {
  const E* tile;
  u32 position, step;
  E at(u32 p, u32 s) const {
    return tile[swizzled_place<kBySteps, kRuns, E>(position + p, step + s)];
  }
};
template <bool kBySteps, u32 kRuns, class E>
SVOD_INLINE FactorOfGroup<kBySteps, kRuns, E> factor_of_group(const E* tile, u32 position,
                                                              u32 step) {
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
// The rows of a warp's threads: of their group's in shared memory, or halves of those
// that they have in registers.
template <class A, class S, class R> struct RowsOfWarp {
  const R& rows;
  RowsOfWarp(const R& of) : rows(of) {}
  S at(u32 row, u32 step) const {
    const u32 warp = thread_number() % 128 / kWarpThreads;
    return as_factor<A, S>(rows.at(warp * 16 + row, step));
  }
};
template <class A, class S> struct RowsOfWarp<A, S, const Matrix*> {
  u32 words[kWarpThreads * 4];
  RowsOfWarp(const Matrix* rows) { svod_exchanged(rows->words, 4, words); }
  S at(u32 row, u32 step) const {
    const u32 word = words[(row % 8 * 4 + step % 8 / 2) * 4 + row / 8 + step / 8 * 2];
    return as_factor<A, S>(u16(word >> step % 2 * 16));
  }
};
// Products of a thread that nobody has waited for yet: they are computed as late as they
// may be, of what shared memory and registers hold by then.
template <class A, class B, u32 kColumns, class R, class C, class S>
struct GroupProducts {
  struct Product {
    S* sums;
    R rows;
    C columns;
    u32 steps;
    bool adds;
  };
  static constexpr u32 kMost = 64;
  Product waiting[kMost];
  u32 begin = 0, end = 0, ends[4] = {};
  void add(S* sums, R rows, C columns, u32 steps, bool adds) {
    waiting[end++ % kMost] = {sums, rows, columns, steps, adds};
  }
  void finish() {
    for (u32 i = 3; i > 0; --i) ends[i] = ends[i - 1];
    ends[0] = end;
  }
  void compute(const Product& p) {
    const u32 lane = thread_number() % kWarpThreads;
    const RowsOfWarp<A, S, R> rows(p.rows);
    for (u32 n = 0; n < kColumns / 2; ++n) {
      const u32 row = n / 2 % 2 * 8 + lane / 4, column = n / 4 * 8 + lane % 4 * 2 + n % 2;
      if (!p.adds) p.sums[n] = 0;
      for (u32 s = 0; s < p.steps; ++s)
        p.sums[n] += rows.at(row, s) * as_factor<B, S>(p.columns.at(column, s));
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
