// What kernels for a GPU start with, after the prelude that all kernels have: the number
// of a thread and of its block, memory that a block's threads share, and waiting for each
// other. The same text compiles for a processor, where tests run it: whoever calls it
// there says what the numbers are and switches between the threads of a block.
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
}
#endif
namespace kernel {
#ifdef __NVPTX__
SVOD_INLINE u32 thread_number() { return u32(__nvvm_read_ptx_sreg_tid_x()); }
SVOD_INLINE u32 block_number() { return u32(__nvvm_read_ptx_sreg_ctaid_x()); }
SVOD_INLINE void wait_for_block() { __syncthreads(); }
#else
SVOD_INLINE u32 thread_number() { return svod_thread_number(); }
SVOD_INLINE u32 block_number() { return svod_block_number(); }
SVOD_INLINE void wait_for_block() { svod_wait_for_block(); }
#endif
// What all threads of a block have, combined in a fixed tree; all of them get the result.
// `room` has an element for each thread, and is free for other uses again.
template <class How, int kThreads, class T>
SVOD_INLINE T across_block(T value, SVOD_OF_BLOCK T* room) {
  const u32 thread = thread_number();
  room[thread] = value;
  wait_for_block();
#pragma clang loop unroll(disable)
  for (u32 half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half)
      room[thread] = How::template of<T>(room[thread], room[thread + half]);
    wait_for_block();
  }
  const T out = room[0];
  wait_for_block();
  return out;
}
// The position of the most extreme of the threads' best values; of equals the first, or
// the last.
template <int kThreads, class T>
SVOD_INLINE i64 best_of_block(T value, i64 at, bool greater, bool last,
                              SVOD_OF_BLOCK T* room, SVOD_OF_BLOCK i64* places) {
  const u32 thread = thread_number();
  room[thread] = value;
  places[thread] = at;
  wait_for_block();
#pragma clang loop unroll(disable)
  for (u32 half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      const T mine = room[thread], other = room[thread + half];
      const i64 my_place = places[thread], place = places[thread + half];
      const bool better = beats(other, mine, greater, false);
      const bool equal = !better && beats(other, mine, greater, true);
      if (better || (equal && (last ? place > my_place : place < my_place)))
        room[thread] = other, places[thread] = place;
    }
    wait_for_block();
  }
  const i64 out = places[0];
  wait_for_block();
  return out;
}
} // namespace kernel
