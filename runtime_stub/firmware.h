// What the emitted run of a firmware library is made of. There is no image and nothing
// interprets one: the packager writes the plan down as calls of the kernels
// (packager/artefact/straight_run.cpp), whose text includes this. What stays at run time
// is checking the caller's pointers, and loops and conditions that depend on data.
#ifndef SVOD_FIRMWARE_H
#define SVOD_FIRMWARE_H

#include "runtime_stub/status.h"
#include "runtime_stub/types.h"

// Of status_text.cpp; linked when the caller asks for a text.
extern "C" const char* svod_status_text(int status);

namespace svod_firmware {

inline bool is_aligned(const void* pointer, uintptr_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

// `alignments`: of each tensor, in the model's order.
inline int32_t check_tensors(const void* const* tensors, const uint8_t* alignments,
                             uint32_t count) {
  if (count != 0 && tensors == nullptr) return SVOD_BAD_ARGUMENT;
  for (uint32_t i = 0; i < count; i++) {
    if (tensors[i] == nullptr) return SVOD_BAD_ARGUMENT;
    if (!is_aligned(tensors[i], alignments[i])) return SVOD_MISALIGNED;
  }
  return SVOD_OK;
}

// An input that was packed for one value.
inline bool has_value(const void* input, const uint8_t* value, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) {
    if (static_cast<const uint8_t*>(input)[i] != value[i]) return false;
  }
  return true;
}

// Kernels read inputs and weights through the same kind of pointer they write by.
inline void* at(const void* base, intptr_t offset) {
  return const_cast<uint8_t*>(static_cast<const uint8_t*>(base) + offset);
}

// Of a tensor of which only one part is there, at `base`: where it would begin.
inline void* whole(void* base, uintptr_t before) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base) - before);
}

// Loops stay loops: memory functions would have to be linked.
#if defined(__clang__)
#define SVOD_LOOPS __attribute__((no_builtin))
#else
#define SVOD_LOOPS
#endif

// Bytes of a border; `value` is four of them.
[[maybe_unused, gnu::noinline]] SVOD_LOOPS static void fill(void* at, uint32_t bytes,
                                                            uint32_t value) {
  uint8_t* to = static_cast<uint8_t*>(at);
  for (uint32_t i = 0; i < bytes; i++) to[i] = static_cast<uint8_t>(value >> (i % 4 * 8));
}

// What a kernel does to a window with each chunk: `by` bytes are new, `kept` stay. From
// chunk `end` on border follows.
struct NewRows {
  uint32_t by, kept;
  int32_t end;
  uint32_t fill;
};

// Makes room for chunk `c`: what stays moves to the front, upwards and by words where
// rows are words. Before the first chunk, which is before anybody reads, all is border.
[[maybe_unused, gnu::noinline]] SVOD_LOOPS static void
make_room(void* window, const NewRows& rows, int32_t c) {
  if (c <= 0) return fill(window, rows.kept + rows.by, rows.fill);
  uint8_t* const to = static_cast<uint8_t*>(window);
  const uint8_t* const from = to + rows.by;
  uint32_t i = 0;
  if (rows.by % 4 == 0) {
    for (; i + 16 <= rows.kept; i += 16) {
      const uint32_t* const in = reinterpret_cast<const uint32_t*>(from + i);
      uint32_t* const out = reinterpret_cast<uint32_t*>(to + i);
      const uint32_t w0 = in[0], w1 = in[1], w2 = in[2], w3 = in[3];
      out[0] = w0, out[1] = w1, out[2] = w2, out[3] = w3;
    }
  }
  for (; i < rows.kept; i++) to[i] = from[i];
  if (c >= rows.end) fill(to + rows.kept, rows.by, rows.fill);
}

inline bool read_truth(const void* from) {
  return *static_cast<const uint8_t*>(from) != 0;
}

// How often a loop is to run.
inline uint64_t read_count(const void* count, const void* start) {
  int64_t wanted = 0;
  __builtin_memcpy(&wanted, count, 8);
  return read_truth(start) && wanted > 0 ? static_cast<uint64_t>(wanted) : 0;
}

inline void write_number(void* to, uint64_t value) { __builtin_memcpy(to, &value, 8); }

} // namespace svod_firmware

#endif
