// Runs a packed image: checks it, looks the input shapes up in the frozen cache, turns
// slots into addresses and does the steps in order. No heap, no library, no state but the
// image, the arena and what the caller passes; everything here is re-entrant.
//
// Order of calls: svod_get_model, svod_check_image (once, before anything reads the
// image), then svod_find_entry, svod_arena_bytes, svod_replay as often as wanted.
#ifndef SVOD_REPLAY_H
#define SVOD_REPLAY_H

#include "runtime_stub/format.h"

// A CPU level that is packed; `features` are the bits of runtime_stub/cpu.h it needs.
struct SvodLevel {
  char name[24]; // terminated: "x86-64-v3"
  uint32_t features;
};

// All that was packed. Pointers are made by code, not stored, so no relocation is needed.
struct SvodModel {
  const void* image; // aligned to 8
  uint64_t image_bytes;
  const void* weights; // aligned to SVOD_ALIGN; null when they are in a file of their own
  uint64_t weight_bytes;
  SvodLaunch launch;
  const struct SvodLevel* levels; // from the lowest to the highest
  uint32_t level_count;
};

// One part of a parallel region. `thread` < number of threads tells whose scratch to use.
typedef void (*SvodTask)(void* context, uint32_t chunk, uint32_t thread);
// Calls task(context, 0..chunks-1, thread), each chunk once, in any order, and returns
// when all are done. svod_pool_run of pool.h is one.
typedef void (*SvodParallel)(void* pool, uint32_t chunks, SvodTask task, void* context);
// Called after each step of the entry, for profiles. A step in a loop is told as often as
// it runs, a loop or an if itself when its steps begin. A step of a chain is told after
// each chunk; where several threads run the chain, only its first step is, at the end.
typedef void (*SvodStepDone)(void* context, uint32_t step);

struct SvodRun {
  const struct SvodModel* model;
  const struct SvodEntry* entry; // of svod_find_entry
  uint32_t level;                // into model->levels
  uint32_t threads;              // the arena has scratch for so many; at least 1
  void* arena;                   // aligned to SVOD_ALIGN, svod_arena_bytes long
  uint64_t arena_bytes;
  const void* const* inputs; // in the model's order, each SvodTensor.bytes long
  void* const* outputs;
  SvodParallel parallel; // null: the calling thread does all
  void* pool;
  SvodStepDone step_done; // null: nobody listens
  void* listener;
  // Written when a step fails, so with SVOD_INDEX, SVOD_LIMIT, and with SVOD_BAD_ARGUMENT
  // of an input that is no picture: its number within the entry.
  uint32_t failed_step;
};

struct SvodShape {
  uint32_t dtype; // TensorProto.DataType
  uint32_t rank;
  const int64_t* dims;
};

#ifdef __cplusplus
extern "C" {
#endif

// Written by the packager beside the launch switch.
void svod_get_model(struct SvodModel* model);

// Magic, version, the image's checksum, bounds of every table, and every number in them
// that is used as an index. SVOD_OK, SVOD_ABI or SVOD_CORRUPT. After SVOD_OK no read
// through the image leaves it.
int32_t svod_check_image(const struct SvodModel* model);

// The checksums of image and weights, a pass over all bytes. SVOD_OK or SVOD_CORRUPT.
int32_t svod_check_bytes(const struct SvodModel* model);

// The entry packed for these inputs; null if there is none.
const struct SvodEntry* svod_find_entry(const void* image, const struct SvodShape* inputs,
                                        uint32_t count);

// Bytes that a run with so many threads needs: temporaries, scratch per thread, buffer
// addresses.
uint64_t svod_arena_bytes(const void* image, const struct SvodEntry* entry,
                          uint32_t threads);

// SVOD_OK, SVOD_BAD_ARGUMENT, SVOD_MISALIGNED, SVOD_ARENA_SMALL, SVOD_INDEX or
// SVOD_LIMIT. Outputs are unspecified, and nothing else is touched, unless SVOD_OK.
int32_t svod_replay(struct SvodRun* run);

#ifdef __cplusplus
}

// Element `i` of a table whose bounds svod_check_image has passed.
template <class T>
inline const T* svod_at(const void* image, SvodTable table, uint64_t i) {
  return reinterpret_cast<const T*>(static_cast<const uint8_t*>(image) + table.offset) +
         i;
}

inline const SvodHeader* svod_header(const void* image) {
  return static_cast<const SvodHeader*>(image);
}

inline const SvodEntry* svod_entry(const void* image, uint32_t i) {
  return svod_at<SvodEntry>(image, svod_header(image)->entries, i);
}

inline const SvodTensor* svod_input(const void* image, const SvodEntry* entry,
                                    uint32_t i) {
  return svod_at<SvodTensor>(image, svod_header(image)->tensors,
                             uint64_t{entry->first_input} + i);
}

inline const SvodTensor* svod_output(const void* image, const SvodEntry* entry,
                                     uint32_t i) {
  return svod_at<SvodTensor>(image, svod_header(image)->tensors,
                             uint64_t{entry->first_output} + i);
}

inline const int64_t* svod_dims(const void* image, const SvodTensor* tensor) {
  return svod_at<int64_t>(image, svod_header(image)->dims, tensor->first_dim);
}

inline const SvodStep* svod_step(const void* image, const SvodEntry* entry, uint32_t i) {
  return svod_at<SvodStep>(image, svod_header(image)->steps,
                           uint64_t{entry->first_step} + i);
}

inline const SvodValue* svod_input_value(const void* image, const SvodEntry* entry,
                                         uint32_t i) {
  return svod_at<SvodValue>(image, svod_header(image)->values,
                            uint64_t{entry->first_input_value} + i);
}

inline const SvodValue* svod_output_value(const void* image, const SvodEntry* entry,
                                          uint32_t i) {
  return svod_at<SvodValue>(image, svod_header(image)->values,
                            uint64_t{entry->first_output_value} + i);
}

inline const SvodRegion* svod_region(const void* image, const SvodStep* step) {
  return svod_at<SvodRegion>(image, svod_header(image)->regions, step->program);
}

inline const SvodState* svod_state(const void* image, const SvodEntry* entry,
                                   uint32_t i) {
  return svod_at<SvodState>(image, svod_header(image)->states,
                            uint64_t{entry->first_state} + i);
}

inline const SvodProgram* svod_program(const void* image, uint32_t i) {
  return svod_at<SvodProgram>(image, svod_header(image)->programs, i);
}

// Whether `data` is what an input was packed for; true for an input of any value.
bool svod_has_packed_value(const void* image, const SvodTensor* input, const void* data);

// First byte of a text; it is `text.size` long and not terminated.
inline const char* svod_text(const void* image, SvodText text) {
  return static_cast<const char*>(image) + text.offset;
}
#endif

#endif
