// What kernels for a GPU start with, after the prelude that all kernels have: the number
// of a thread and of its block, memory that a block's threads share, waiting for each
// other, and shuffles, which hand values from thread to thread of a warp. The same text
// compiles for a processor, where tests run it: whoever calls it there says what the
// numbers are and switches between the threads of a block.
#ifdef __NVPTX__
#define SVOD_ENTRY extern "C" __attribute__((nvptx_kernel)) void
#define SVOD_SHARED                                                                      \
  static __attribute__((aligned(16), address_space(3), loader_uninitialized))
#define SVOD_OF_BLOCK __attribute__((address_space(3)))
// As much as a launch says.
#define SVOD_TILES(bytes, alignment)                                                     \
  extern __attribute__((aligned(alignment), address_space(3))) u8 tiles[]
#else
#define SVOD_ENTRY static void
#define SVOD_SHARED static __attribute__((aligned(16)))
#define SVOD_OF_BLOCK
#define SVOD_TILES(bytes, alignment)                                                     \
  static __attribute__((aligned(alignment))) u8 tiles[bytes]
extern "C" {
unsigned svod_thread_number();
unsigned svod_block_number();
void svod_wait_for_block();
unsigned svod_shuffled(unsigned word, unsigned lane);
void svod_exchanged(const unsigned* words, unsigned count, unsigned* of_all);
unsigned svod_arrived(unsigned* at);
void svod_copied(void* to, const void* from, unsigned bytes, bool there);
void svod_end_copies();
void svod_wait_for_copies(unsigned but);
}
#endif
#define SVOD_INLINED __attribute__((always_inline))
namespace kernel {
#ifdef __NVPTX__
SVOD_INLINE u32 thread_number() { return u32(__nvvm_read_ptx_sreg_tid_x()); }
SVOD_INLINE u32 block_number() { return u32(__nvvm_read_ptx_sreg_ctaid_x()); }
SVOD_INLINE void wait_for_block() { __syncthreads(); }
// What this thread has written is seen by all blocks that see what it writes next.
SVOD_INLINE void publish() { __nvvm_membar_gl(); }
SVOD_INLINE u32 count_arrival(u32* at) {
  return __atomic_fetch_add(at, 1u, __ATOMIC_RELAXED);
}
// To shared memory while the thread goes on: what is there, else zeros. Copies up to
// each end are waited for together, all but those of the last `kBut` ends.
template <int kBytes, class E>
SVOD_INLINE void copy_ahead(SVOD_OF_BLOCK E* to, const E* from, bool there) {
  const u32 place = u32(u64(to)), bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(place), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(place), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
}
SVOD_INLINE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kBut> SVOD_INLINE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kBut) : "memory");
}
template <u32 kLanes> SVOD_INLINE u32 shuffled(u32 word, u32 lane) {
  constexpr u32 kAll = u32((u64(1) << kLanes) - 1), kWholeWarp = 31;
  return u32(__nvvm_shfl_sync_idx_i32(kAll, i32(word), i32(lane), kWholeWarp));
}
#else
SVOD_INLINE u32 thread_number() { return svod_thread_number(); }
SVOD_INLINE u32 block_number() { return svod_block_number(); }
SVOD_INLINE void wait_for_block() { svod_wait_for_block(); }
SVOD_INLINE void publish() {}
SVOD_INLINE u32 count_arrival(u32* at) { return svod_arrived(at); }
template <int kBytes, class E>
SVOD_INLINE void copy_ahead(E* to, const E* from, bool there) {
  svod_copied(to, from, kBytes, there);
}
SVOD_INLINE void end_copies() { svod_end_copies(); }
template <int kBut> SVOD_INLINE void wait_for_copies() { svod_wait_for_copies(kBut); }
template <u32 kLanes> SVOD_INLINE u32 shuffled(u32 word, u32 lane) {
  return svod_shuffled(word, lane);
}
#endif
// PTX has warps of this many threads on all GPUs.
inline constexpr u32 kWarpThreads = 32;
// Runs of neighbours that are read or written at once, from where they are aligned.
template <int kCount, class E> SVOD_INLINE Vector<E, kCount> load_run(const E* from) {
  return *reinterpret_cast<const Vector<E, kCount>*>(from);
}
template <int kCount, class E> SVOD_INLINE void put_run(E* to, Vector<E, kCount> run) {
  *reinterpret_cast<Vector<E, kCount>*>(to) = run;
}
// What was read may be wider by then: shared memory is aligned to no more than 16 bytes.
template <int kCount, class E>
SVOD_INLINE void store_run(SVOD_OF_BLOCK E* to, Vector<E, kCount> run) {
  constexpr int kBytes = sizeof(E) * kCount, kAligned = kBytes < 16 ? kBytes : 16;
  typedef Vector<E, kCount> Run __attribute__((aligned(kAligned)));
  *(SVOD_OF_BLOCK Run*)to = run;
}
// Elements of a run that lie `kApart` from each other there.
template <u32 kApart, int kCount, class E>
SVOD_INLINE void scatter_run(SVOD_OF_BLOCK E* to, Vector<E, kCount> run) {
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kCount; ++i) to[i * kApart] = run[i];
}
// Runs of `kRun` neighbours, `kApart` from one to the next.
template <u32 kRun, u32 kApart, u32 kCount, class E>
SVOD_INLINE void take_runs(E (&to)[kCount], SVOD_OF_BLOCK const E* from) {
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kCount; i += kRun) {
    if constexpr (kRun == 1) {
      to[i] = from[i * kApart];
    } else {
      const auto run = *(SVOD_OF_BLOCK const Vector<E, kRun>*)(from + i / kRun * kApart);
#pragma clang loop unroll(full)
      for (u32 j = 0; j < kRun; ++j) to[i + j] = run[j];
    }
  }
}
// Threads whose values are combined by shuffles: a warp, or a block that is smaller.
template <int kThreads>
inline constexpr u32 kLanesOf = kThreads < kWarpThreads ? kThreads : kWarpThreads;
template <int kThreads> inline constexpr u32 kWarpsOf = kThreads / kLanesOf<kThreads>;
// What another thread of the warp has. All of the `kLanes` first threads of the warp take
// part: what one has that does not is undefined.
template <u32 kLanes, class T> SVOD_INLINE T of_lane(T value, u32 lane) {
  constexpr u32 kWords = (sizeof(T) + 3) / 4;
  u32 words[kWords] = {};
  __builtin_memcpy(words, &value, sizeof value);
  for (u32 i = 0; i < kWords; ++i) words[i] = shuffled<kLanes>(words[i], lane);
  __builtin_memcpy(&value, words, sizeof value);
  return value;
}
// What all threads of a block have, combined in a fixed tree: first that of each warp, by
// shuffles, then the warps' results, which each warp combines by itself. All threads get
// the result of the same thread's tree, bit for bit. `room` has an element for each warp,
// and is free for other uses again.
template <class How, u32 kLanes, u32 kCount, class T>
SVOD_INLINE T across_lanes(T value) {
  const u32 lane = thread_number() % kLanes;
#pragma clang loop unroll(full)
  for (u32 half = kCount / 2; half > 0; half /= 2)
    value = How::template of<T>(value, of_lane<kLanes>(value, (lane + half) % kLanes));
  return of_lane<kLanes>(value, 0);
}
template <class How, int kThreads, class T>
SVOD_INLINE T across_block(T value, SVOD_OF_BLOCK T* room) {
  constexpr u32 kLanes = kLanesOf<kThreads>, kWarps = kWarpsOf<kThreads>;
  value = across_lanes<How, kLanes, kLanes>(value);
  if (kWarps == 1) return value;
  const u32 thread = thread_number();
  if (thread % kLanes == 0) room[thread / kLanes] = value;
  wait_for_block();
  value = across_lanes<How, kLanes, kWarps>(T(room[thread % kWarps]));
  wait_for_block();
  return value;
}
// What the threads of a block have up to each of them, combined in a fixed tree, behind
// what was `before` all of them, which is then before those that follow. `room` has an
// element for each warp, and is free for other uses again.
template <class How, int kThreads, class T>
SVOD_INLINE T running(T value, T& before, SVOD_OF_BLOCK T* room) {
  constexpr u32 kLanes = kLanesOf<kThreads>, kWarps = kWarpsOf<kThreads>;
  const u32 lane = thread_number() % kLanes, warp = thread_number() / kLanes;
#pragma clang loop unroll(full)
  for (u32 step = 1; step < kLanes; step *= 2) {
    const T other = of_lane<kLanes>(value, (lane - step) % kLanes);
    if (lane >= step) value = How::template of<T>(other, value);
  }
  if (lane == kLanes - 1) room[warp] = value;
  wait_for_block();
  T first = before;
#pragma clang loop unroll(full)
  for (u32 w = 0; w < kWarps; ++w) {
    if (w == warp) first = before;
    before = How::template of<T>(before, T(room[w]));
  }
  wait_for_block();
  return How::template of<T>(first, value);
}
// The position of the most extreme of the threads' best values; of equals the first, or
// the last.
template <u32 kLanes, u32 kCount, class T>
SVOD_INLINE void best_of_lanes(T& value, i64& at, bool greater, bool last) {
  const u32 lane = thread_number() % kLanes;
#pragma clang loop unroll(full)
  for (u32 half = kCount / 2; half > 0; half /= 2) {
    const T other = of_lane<kLanes>(value, (lane + half) % kLanes);
    const i64 place = of_lane<kLanes>(at, (lane + half) % kLanes);
    const bool better = beats(other, value, greater, false);
    const bool equal = !better && beats(other, value, greater, true);
    if (better || (equal && (last ? place > at : place < at))) value = other, at = place;
  }
  value = of_lane<kLanes>(value, 0);
  at = of_lane<kLanes>(at, 0);
}
template <int kThreads, class T>
SVOD_INLINE i64 best_of_block(T& value, i64 at, bool greater, bool last,
                              SVOD_OF_BLOCK T* room, SVOD_OF_BLOCK i64* places) {
  constexpr u32 kLanes = kLanesOf<kThreads>, kWarps = kWarpsOf<kThreads>;
  best_of_lanes<kLanes, kLanes>(value, at, greater, last);
  if (kWarps == 1) return at;
  const u32 thread = thread_number();
  if (thread % kLanes == 0) room[thread / kLanes] = value, places[thread / kLanes] = at;
  wait_for_block();
  value = room[thread % kWarps];
  at = places[thread % kWarps];
  best_of_lanes<kLanes, kWarps>(value, at, greater, last);
  wait_for_block();
  return at;
}
// Which of the next places of a scatter have this owner among so many, a power of two: a
// bit for each, of which `left` count.
inline constexpr u32 kOwnedAtOnce = 32;
template <u32 kOwners, class E>
SVOD_INLINE u32 owned(SVOD_OF_BLOCK const E* places, u32 left, u32 owner) {
  constexpr u32 kRun = 16 / sizeof(E);
  E some[kOwnedAtOnce];
  take_runs<kRun, kRun>(some, places);
  u32 out = 0;
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kOwnedAtOnce; ++i) out |= u32(u32(some[i]) % kOwners == owner) << i;
  return left < kOwnedAtOnce ? out & ((1u << left) - 1) : out;
}
// The number of the lowest bit, which is cleared.
SVOD_INLINE u32 take_lowest(u32& bits) {
  const u32 out = u32(__builtin_ctz(bits));
  bits &= bits - 1;
  return out;
}
// Whether this block is the last one of `kShares` to be done with its part. It then sees
// what the others have written before. `arrived` counts the blocks, from zero and back to
// zero.
template <u32 kShares>
SVOD_INLINE bool is_last_share(u32* arrived, SVOD_OF_BLOCK u32* is_last) {
  const u32 thread = thread_number();
  publish();
  wait_for_block();
  if (thread == 0) *is_last = count_arrival(arrived) == kShares - 1;
  wait_for_block();
  if (*is_last == 0) return false;
  publish();
  if (thread == 0) *arrived = 0; // as the next launch wants it
  return true;
}
// The same of a part of the sums, all of which the last block then has, added up in the
// order of the parts. Each thread has `kSums`,
// which lie in `parts` for all shares, threads side by side.
template <u32 kShares, u32 kThreads, u32 kSums, class E>
SVOD_INLINE bool joined(E (&sums)[kSums], E* parts, u32 share, u32* arrived,
                        SVOD_OF_BLOCK u32* is_last) {
  constexpr u32 kPart = kThreads * kSums;
  const u32 thread = thread_number();
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kSums; ++i) parts[share * kPart + i * kThreads + thread] = sums[i];
  if (!is_last_share<kShares>(arrived, is_last)) return false;
#pragma clang loop unroll(full)
  for (u32 i = 0; i < kSums; ++i) sums[i] = 0;
  for (u32 s = 0; s < kShares; ++s)
#pragma clang loop unroll(full)
    for (u32 i = 0; i < kSums; ++i) sums[i] += parts[s * kPart + i * kThreads + thread];
  return true;
}
// What tensor cores multiply: 16 rows or columns of 32 bytes of steps, of which each
// thread of a warp has four words. Of the positions `p` and `p + 8`, p a quarter of its
// number, it has the word with the number of its rest, and the one four words further.
struct f16 {};
struct bf16 {};
struct tf32 {};
struct Matrix {
  u32 words[4]; // p, p + 8; then the same in the other half of the steps
};
// From shared memory, `kPitch` elements from run to run: runs of a position's steps, or
// runs of positions, which are turned.
template <bool kBySteps, u32 kPitch, class E>
SVOD_INLINE Matrix matrix_of(SVOD_OF_BLOCK const E* tile, u32 position, u32 step) {
  constexpr u32 kHalf = 16 / sizeof(E); // of the steps
  const u32 lane = thread_number() % kWarpThreads;
  Matrix out;
#ifdef __NVPTX__
  // Each thread names a row of eight that one of four parts consists of.
  const u32 row = lane % 8, low = lane / 8 % 2, high = lane / 16;
  const u32 at = kBySteps ? (position + row + low * 8) * kPitch + step + high * kHalf
                          : (step + row + high * kHalf) * kPitch + position + low * 8;
  const u32 address = u32(u64(tile + at));
  if constexpr (kBySteps)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out.words[0]), "=r"(out.words[1]), "=r"(out.words[2]),
                   "=r"(out.words[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out.words[0]), "=r"(out.words[1]), "=r"(out.words[2]),
                   "=r"(out.words[3])
                 : "r"(address)
                 : "memory");
#else
  constexpr u32 kOfWord = 4 / sizeof(E);
  for (u32 i = 0; i < 4; ++i) {
    const u32 p = position + lane / 4 + i % 2 * 8,
              s = step + i / 2 * kHalf + lane % 4 * kOfWord;
    E elements[kOfWord];
    for (u32 e = 0; e < kOfWord; ++e)
      elements[e] = kBySteps ? tile[p * kPitch + s + e] : tile[(s + e) * kPitch + p];
    __builtin_memcpy(&out.words[i], elements, sizeof elements);
  }
#endif
  return out;
}
#if defined(__NVPTX__) && defined(SVOD_TURING)
// Turing's tensor cores take half the steps of halves, and of bytes half the rows, too.
#define SVOD_MULTIPLIED_BYTES(A, B, FIRST, SECOND, ROWS, COLUMNS)                        \
  asm("mma.sync.aligned.m8n8k16.row.col.s32." A "." B ".s32 {%0,%1}, {%2}, {%3}, "       \
      "{%0,%1};"                                                                         \
      : "+r"(FIRST), "+r"(SECOND)                                                        \
      : "r"(ROWS), "r"(COLUMNS))
template <class S>
SVOD_INLINE void multiply_halves(S* sums, u32 row, u32 further, u32 column) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(row), "r"(further), "r"(column));
}
// Of a row and eight further, in either half of the steps.
template <class A, class B, class S>
SVOD_INLINE void multiply_bytes(S& first, S& second, u32 row, u32 column) {
  if constexpr (__is_same(A, i8) && __is_same(B, i8))
    SVOD_MULTIPLIED_BYTES("s8", "s8", first, second, row, column);
  else if constexpr (__is_same(A, i8))
    SVOD_MULTIPLIED_BYTES("s8", "u8", first, second, row, column);
  else if constexpr (__is_same(B, i8))
    SVOD_MULTIPLIED_BYTES("u8", "s8", first, second, row, column);
  else
    SVOD_MULTIPLIED_BYTES("u8", "u8", first, second, row, column);
}
template <class A, class B, class S>
SVOD_INLINE void multiply_eight(S* sums, const Matrix& rows, u32 low, u32 high) {
  if constexpr (__is_same(A, f16)) {
    multiply_halves(sums, rows.words[0], rows.words[1], low);
    multiply_halves(sums, rows.words[2], rows.words[3], high);
  } else {
    for (u32 i = 0; i < 2; ++i) {
      multiply_bytes<A, B>(sums[2 * i], sums[2 * i + 1], rows.words[i], low);
      multiply_bytes<A, B>(sums[2 * i], sums[2 * i + 1], rows.words[i + 2], high);
    }
  }
}
#elif defined(__NVPTX__)
#define SVOD_MULTIPLIED(SHAPE, A, B, SUM, REGISTER)                                      \
  asm("mma.sync.aligned." SHAPE ".row.col." SUM "." A "." B "." SUM                      \
      " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                           \
      : "+" REGISTER(sums[0]), "+" REGISTER(sums[1]), "+" REGISTER(sums[2]),             \
        "+" REGISTER(sums[3])                                                            \
      : "r"(rows.words[0]), "r"(rows.words[1]), "r"(rows.words[2]), "r"(rows.words[3]),  \
        "r"(low), "r"(high))
template <class A, class B, class S>
SVOD_INLINE void multiply_eight(S* sums, const Matrix& rows, u32 low, u32 high) {
  if constexpr (__is_same(A, f16))
    SVOD_MULTIPLIED("m16n8k16", "f16", "f16", "f32", "f");
  else if constexpr (__is_same(A, bf16))
    SVOD_MULTIPLIED("m16n8k16", "bf16", "bf16", "f32", "f");
  else if constexpr (__is_same(A, tf32))
    SVOD_MULTIPLIED("m16n8k8", "tf32", "tf32", "f32", "f");
  else if constexpr (__is_same(A, i8) && __is_same(B, i8))
    SVOD_MULTIPLIED("m16n8k32", "s8", "s8", "s32", "r");
  else if constexpr (__is_same(A, i8))
    SVOD_MULTIPLIED("m16n8k32", "s8", "u8", "s32", "r");
  else if constexpr (__is_same(B, i8))
    SVOD_MULTIPLIED("m16n8k32", "u8", "s8", "s32", "r");
  else
    SVOD_MULTIPLIED("m16n8k32", "u8", "u8", "s32", "r");
}
#else
// What tensor cores take of a float: the sign, the exponent and 10 bits.
SVOD_INLINE f32 tf32_of(u32 word) { return __builtin_bit_cast(f32, word & 0xffffe000u); }
// The products of one word's numbers, added to `sum`.
template <class A, class B, class S> SVOD_INLINE S of_words(u32 a, u32 b, S sum) {
  if constexpr (__is_same(A, f16)) {
    for (u32 i = 0; i < 32; i += 16)
      sum += f16_to_float(u16(a >> i)) * f16_to_float(u16(b >> i));
  } else if constexpr (__is_same(A, bf16)) {
    for (u32 i = 0; i < 32; i += 16)
      sum += bf16_to_float(u16(a >> i)) * bf16_to_float(u16(b >> i));
  } else if constexpr (__is_same(A, tf32)) {
    sum += tf32_of(a) * tf32_of(b);
  } else {
    for (u32 i = 0; i < 32; i += 8) sum += S(A(a >> i)) * S(B(b >> i));
  }
  return sum;
}
template <class A, class B, class S>
SVOD_INLINE void multiply_eight(S* sums, const Matrix& rows, u32 low, u32 high) {
  constexpr u32 kWords = 6, kParts = 4;
  const u32 mine[kWords] = {rows.words[0], rows.words[1], rows.words[2],
                            rows.words[3], low,           high};
  u32 all[kWarpThreads * kWords];
  svod_exchanged(mine, kWords, all);
  const u32 lane = thread_number() % kWarpThreads;
  for (u32 n = 0; n < 4; ++n) // of row lane / 4, and eight further
    for (u32 half = 0; half < 2; ++half)
      for (u32 part = 0; part < kParts; ++part) {
        const u32 row = lane / 4 * kParts + part,
                  column = (lane % 4 * 2 + n % 2) * kParts + part;
        sums[n] = of_words<A, B>(all[row * kWords + n / 2 + half * 2],
                                 all[column * kWords + 4 + half], sums[n]);
      }
}
#endif
// 16 rows by 16 columns, of which each thread has eight sums: of two rows, eight apart,
// two neighbours of either half of the columns.
template <class A, class B, class S>
SVOD_INLINE void multiply_matrices(S* sums, const Matrix& rows, const Matrix& columns) {
  multiply_eight<A, B>(sums, rows, columns.words[0], columns.words[2]);
  multiply_eight<A, B>(sums + 4, rows, columns.words[1], columns.words[3]);
}
} // namespace kernel
