// What kernels for a GPU start with, after the prelude that all kernels have: the number
// of a thread and of its block, memory that a block's threads share, waiting for each
// other, and shuffles, which hand values from thread to thread of a warp. The same text
// compiles for a processor, where tests run it: whoever calls it there says what the
// numbers are and switches between the threads of a block.
#ifdef __NVPTX__
#define SVOD_ENTRY extern "C" __attribute__((nvptx_kernel)) void
#define SVOD_SHARED static __attribute__((address_space(3), loader_uninitialized))
#define SVOD_OF_BLOCK __attribute__((address_space(3)))
#else
#define SVOD_ENTRY static void
#define SVOD_SHARED static
#define SVOD_OF_BLOCK
extern "C" {
unsigned svod_thread_number();
unsigned svod_block_number();
void svod_wait_for_block();
unsigned svod_shuffled(unsigned word, unsigned lane);
}
#endif
namespace kernel {
#ifdef __NVPTX__
SVOD_INLINE u32 thread_number() { return u32(__nvvm_read_ptx_sreg_tid_x()); }
SVOD_INLINE u32 block_number() { return u32(__nvvm_read_ptx_sreg_ctaid_x()); }
SVOD_INLINE void wait_for_block() { __syncthreads(); }
template <u32 kLanes> SVOD_INLINE u32 shuffled(u32 word, u32 lane) {
  constexpr u32 kAll = u32((u64(1) << kLanes) - 1), kWholeWarp = 31;
  return u32(__nvvm_shfl_sync_idx_i32(kAll, i32(word), i32(lane), kWholeWarp));
}
#else
SVOD_INLINE u32 thread_number() { return svod_thread_number(); }
SVOD_INLINE u32 block_number() { return svod_block_number(); }
SVOD_INLINE void wait_for_block() { svod_wait_for_block(); }
template <u32 kLanes> SVOD_INLINE u32 shuffled(u32 word, u32 lane) {
  return svod_shuffled(word, lane);
}
#endif
// PTX has warps of this many threads on all GPUs.
inline constexpr u32 kWarpThreads = 32;
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
SVOD_INLINE i64 best_of_block(T value, i64 at, bool greater, bool last,
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
} // namespace kernel
