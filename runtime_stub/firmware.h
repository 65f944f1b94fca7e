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
