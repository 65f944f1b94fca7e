// Builds the bytes of a packed image (runtime_stub/format.h) from a plan told in
// plain structs. Deterministic: the same contents give the same bytes.
#pragma once

#include "compiler/support/digest.h"
#include "runtime_stub/format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace svod::packager {

struct ImageTensor {
  std::string name;
  int onnx_type = 0;
  std::vector<int64_t> dims;
  uint32_t alignment = 1; // of the caller's pointer
  uint64_t bytes = 0;
  std::string fixed = {};    // bytes of an input's only value; empty: any
  uint32_t shape_output = 0; // as in SvodTensor
  SvodTensorRole role = SVOD_ROLE_MODEL;
  uint32_t counter = 0, counted_axes = 0; // likewise
  std::string prepared = {}; // of a picture file: what becomes of it (--image)
  uint64_t elements() const;
};

// Those that the caller of a run passes: states come last, and are not.
inline std::span<const ImageTensor> callers(const std::vector<ImageTensor>& tensors) {
  size_t count = 0;
  while (count < tensors.size() && tensors[count].role != SVOD_ROLE_STATE) ++count;
  return std::span(tensors).first(count);
}

struct ImageStep {
  SvodStepKind kind = SVOD_STEP_LAUNCH;
  uint32_t program = 0;
  std::vector<uint32_t> args; // slots of the entry
  uint32_t chunks = 1, followers = 0;
  uint64_t flops = 0, bytes = 0;
  uint64_t repeats = 1; // known iterations of the loops around it; not in the image
  SvodRegion region{};  // of a loop or an if
  std::string sources;  // ONNX nodes, comma separated
};

// What the model calls one input or output; numbers as in SvodValue.
struct ImageKey {
  int64_t number = 0;
  std::string text;
};
struct ImageValue {
  std::string name;
  uint32_t kind = SVOD_VALUE_TENSOR, flags = 0, first = 0, count = 1;
  std::vector<ImageKey> keys; // in the order of the values
  int onnx_type = 0;
  uint32_t presence = 0;
};

struct ImageEntry {
  std::string name = {}; // of several; not in the image
  Digest digest;
  std::vector<ImageTensor> inputs, outputs;
  std::vector<ImageValue> input_values, output_values; // none: all are tensors
  std::vector<SvodSlot> slots; // `io` of a slice counts within the entry
  std::vector<SvodSlice> slices;
  std::vector<SvodState> states; // each place at its offset
  uint64_t state_bytes = 0;      // of all places
  bool has_counters() const {
    return std::ranges::any_of(states, [](const SvodState& s) { return s.counter != 0; });
  }
  std::vector<ImageStep> steps;
  uint64_t arena_bytes = 0, scratch_bytes = 0, arena_lower_bound = 0;
};

// Whether a state says how many rows others hold.
inline bool is_counter(const ImageEntry& entry, size_t state) {
  return std::ranges::count(entry.states, state + 1, &SvodState::counter) != 0;
}

struct ImageContents {
  Digest model;
  std::vector<ImageEntry> entries;
  std::vector<std::string> programs; // names
  std::string manifest;              // JSON
  uint64_t weight_bytes = 0, weight_checksum = 0;
  uint32_t threads = 0;
  uint64_t align = SVOD_ALIGN; // of arena and weights
  bool straight = false;       // the run is emitted: no image, no notes in the arena
  struct Pool {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Pool> pools; // memories that the arena lies in; none: one
  // Of a run that can leave out steps (runtime_stub/changes.h); no masks: it cannot.
  struct Changes {
    uint64_t offset = 0; // in the arena
    uint64_t key = 0;
    std::vector<uint64_t> masks;
  };
  Changes changes;
};

std::vector<std::byte> build_image(const ImageContents& contents);

// What a file of weights ends with.
SvodWeightsEnd weights_end(const ImageContents& contents);

// What one call needs with so many threads, by what it is for: the sum is
// svod_arena_bytes of the stub and the notes in front of it.
struct ArenaBytes {
  uint64_t temporaries = 0, scratch = 0;
  uint64_t tables = 0; // addresses of a step's buffers, and notes
  uint64_t states = 0; // what stays from run to run
  uint64_t device = 0; // of a library for a GPU: what it knows of that
  uint64_t all() const { return temporaries + scratch + tables + states + device; }
};
ArenaBytes arena_bytes(const ImageContents& contents, const ImageEntry& entry,
                       uint32_t threads, int pointer_bytes);
// Of the weights that an entry reads.
uint64_t weight_bytes(const ImageEntry& entry);

} // namespace svod::packager
