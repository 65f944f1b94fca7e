// Runs that leave out steps whose inputs are as they were in the run before. The plan has
// a byte of the arena for each set of inputs that steps hang on, and branches over them.
//
//   a number that says that the run before came to its end | a condition, a condition ...
#ifndef SVOD_CHANGES_H
#define SVOD_CHANGES_H

#include "runtime_stub/types.h"

inline uint32_t svod_condition_at(uint32_t number) { return 8 + number; }
inline uint32_t svod_changes_bytes(uint32_t conditions) { return 8 + conditions; }

// Of a model and the memory that its runs are in; memory of zeros has no such number.
inline uint64_t svod_changes_key(uint64_t model, const void* arena) {
  return (model ^ reinterpret_cast<uintptr_t>(arena)) | 1;
}

// Before a run with an arena whose bytes `at` are these; `key` is of this model and this
// arena. `changed`: a bit for each input that may be another one than in the run before,
// which is asked only where that one came to its end.
inline void svod_begin_changes(uint8_t* at, uint64_t key, const uint64_t* masks,
                               uint32_t conditions, uint64_t changed) {
  uint64_t known = 0;
  __builtin_memcpy(&known, at, 8);
  for (uint32_t i = 0; i < conditions; i++)
    at[svod_condition_at(i)] = known != key || (masks[i] & changed) != 0;
  __builtin_memset(at, 0, 8);
}

// Of a run that does all: nothing is as it was.
inline void svod_forget_changes(uint8_t* at) { __builtin_memset(at, 0, 8); }

// After a run that came to its end.
inline void svod_end_changes(uint8_t* at, uint64_t key) { __builtin_memcpy(at, &key, 8); }

#endif
