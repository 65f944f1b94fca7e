// What kernels of attention start with on a GPU, after gpu_prelude.h: the maximum that
// grows as a block goes through the keys, and what becomes of the sums before it.
namespace kernel {
// exp(x) for weights that are halves afterwards: within 2^-20, in two instructions.
SVOD_INLINE f32 quick_exp(f32 x) {
#ifdef __NVPTX__
  return __nvvm_ex2_approx_ftz_f(x * kLog2E<f32>);
#else
  return exp_(x);
#endif
}
// exp(x - base) for `kCount` scores, four to a row of eight, from their first one on:
// where the base is small one multiply-add gives the exponent, whose error all weights of
// the row share. Of large ones, as masks give them, the difference has to be exact.
template <u32 kCount> SVOD_INLINE void weigh_row(f32* scores, f32 base) {
#ifdef __NVPTX__
  constexpr f32 kSmallBase = 1024;
  if (base > -kSmallBase && base < kSmallBase) {
    const f32 shift = -base * kLog2E<f32>;
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kCount; ++i) {
      f32& score = scores[i / 2 * 4 + i % 2];
      score = __nvvm_ex2_approx_ftz_f(ma_(score, kLog2E<f32>, shift));
    }
    return;
  }
#endif
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kCount; ++i) {
    f32& score = scores[i / 2 * 4 + i % 2];
    score = quick_exp(score - base);
  }
}
// How far a score may be above what is subtracted from it, before the sums are made
// ready for a higher one: weights below e^8 are halves like those below 1.
inline constexpr f32 kRaised = 8;
// What scores are subtracted from: of a row that has no other score than -inf until now
// nothing is added, whatever comes later. If all are, its sum is 0, and 0 / 0 is NaN, as
// exp(-inf - -inf) is.
SVOD_INLINE f32 base_of(f32 top) { return top == -kInf<f32> ? 0.0f : top; }
// A NaN is no maximum: its weight makes the row NaN.
SVOD_INLINE f32 higher(f32 a, f32 b) {
#ifdef __NVPTX__
  return __nvvm_fmax_f(a, b);
#else
  return b > a ? b : a;
#endif
}
// Among `kLanes` neighbouring threads of a warp.
template <u32 kLanes> SVOD_INLINE f32 highest_of(f32 value) {
  const u32 lane = thread_number() % kWarpThreads;
#pragma clang loop unroll(full)
  for (u32 apart = 1; apart < kLanes; apart *= 2)
    value = higher(value, of_lane<kWarpThreads>(value, lane ^ apart));
  return value;
}
template <u32 kLanes> SVOD_INLINE f32 sum_of(f32 value) {
  const u32 lane = thread_number() % kWarpThreads;
#pragma clang loop unroll(full)
  for (u32 apart = 1; apart < kLanes; apart *= 2)
    value += of_lane<kWarpThreads>(value, lane ^ apart);
  return value;
}
// Two sums as halves, the first one in the lower bits.
template <class A> SVOD_INLINE u32 halves_of(f32 low, f32 high) {
#if defined(__NVPTX__) && !defined(SVOD_TURING)
  u32 both;
  if constexpr (__is_same(A, f16))
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  if constexpr (__is_same(A, f16))
    return u32(float_to_f16(low)) | u32(float_to_f16(high)) << 16;
  else
    return u32(float_to_bf16(low)) | u32(float_to_bf16(high)) << 16;
#endif
}
// Sums of 16 queries and keys, as multiply_matrices() leaves them, as its next rows.
template <class A> SVOD_INLINE Matrix weights_of(const f32* sums) {
  Matrix out;
#pragma clang loop unroll(full)
  for (u32 i = 0; i < 4; ++i) out.words[i] = halves_of<A>(sums[2 * i], sums[2 * i + 1]);
  return out;
}
// Of a warp: `kDown` times 16 queries, `kAcross` times 16 keys. Four threads have each
// row, of which there are two in each sixteen: two neighbouring sums of eight are of the
// first, two of the second. Scores become weights, what was summed before is multiplied.
template <u32 kDown, u32 kAcross, u32 kColumns>
SVOD_INLINE void weigh(f32 (&scores)[kDown * kAcross * 8],
                       f32 (&sums)[kDown * kColumns * 8], f32 (&tops)[kDown * 2],
                       f32 (&totals)[kDown * 2]) {
#pragma clang loop unroll(full)
  for (u32 row = 0; row < kDown * 2; ++row) {
    f32* const scores_of_row = scores + row / 2 * kAcross * 8 + row % 2 * 2;
    f32 top = tops[row];
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kAcross * 8; i += 4)
      top = higher(top, higher(scores_of_row[i], scores_of_row[i + 1]));
    top = highest_of<4>(top);
    if (top > tops[row] + kRaised) {
      const f32 scale = quick_exp(tops[row] - base_of(top));
      tops[row] = top;
      totals[row] *= scale;
      f32* const sums_of_row = sums + row / 2 * kColumns * 8 + row % 2 * 2;
#pragma clang loop unroll(full)
      for (u32 i = 0; i < kColumns * 4; ++i) sums_of_row[i / 2 * 4 + i % 2] *= scale;
    }
    weigh_row<kAcross * 4>(scores_of_row, base_of(tops[row]));
    f32 total = 0;
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kAcross * 8; i += 4)
      total += scores_of_row[i] + scores_of_row[i + 1];
    totals[row] += total;
  }
}
template <u32 kDown, u32 kColumns>
SVOD_INLINE void divide_by_totals(f32 (&sums)[kDown * kColumns * 8],
                                  const f32 (&totals)[kDown * 2]) {
#pragma clang loop unroll(full)
  for (u32 row = 0; row < kDown * 2; ++row) {
    const f32 share = 1.0f / sum_of<4>(totals[row]);
    f32* const sums_of_row = sums + row / 2 * kColumns * 8 + row % 2 * 2;
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kColumns * 4; ++i) sums_of_row[i / 2 * 4 + i % 2] *= share;
  }
}
// The same of a thread that has `kRows` queries with `kKeys` scores and `kColumns` sums
// each, as `kLanes` neighbours have: the bases of its rows, and the sums made ready for
// weights by these.
template <u32 kLanes, u32 kRows, u32 kKeys, u32 kColumns>
SVOD_INLINE void raise(const f32 (&scores)[kRows * kKeys], f32 (&sums)[kRows * kColumns],
                       f32 (&tops)[kRows], f32 (&totals)[kRows], f32 (&bases)[kRows]) {
#pragma clang loop unroll(full)
  for (u32 row = 0; row < kRows; ++row) {
    f32 top = tops[row];
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kKeys; ++i) top = higher(top, scores[row * kKeys + i]);
    top = highest_of<kLanes>(top);
    bases[row] = base_of(top);
    const f32 scale = exp_(tops[row] - bases[row]);
    tops[row] = top;
    totals[row] *= scale;
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kColumns; ++i) sums[row * kColumns + i] *= scale;
  }
}
template <u32 kLanes, u32 kRows, u32 kColumns>
SVOD_INLINE void divide_rows(f32 (&sums)[kRows * kColumns], const f32 (&totals)[kRows]) {
#pragma clang loop unroll(full)
  for (u32 row = 0; row < kRows; ++row) {
    const f32 share = 1.0f / sum_of<kLanes>(totals[row]);
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kColumns; ++i) sums[row * kColumns + i] *= share;
  }
}
} // namespace kernel
