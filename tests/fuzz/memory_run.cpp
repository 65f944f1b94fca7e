// Runs a packed image whose kernels, and the stub that replays it, are compiled with
// MemorySanitizer, for tests/conformance/memory_sanitized.py. Before each run everything
// but the inputs and the weights holds nothing: a branch, an address or an output that
// hangs on a byte that nobody has written in this run is reported.
//   memory_run    every entry, by every packed level, twice
// Of this process only C's library is instrumented, so nothing of C++'s is used.
#include "runtime_stub/replay.h"
#include "runtime_stub/states.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sanitizer/msan_interface.h>

namespace {

constexpr uint32_t kMostTensors = 256;
constexpr int kFloat = 1, kHalf = 10, kDouble = 11, kBrain = 16;

void* block(uint64_t bytes) {
  void* out = nullptr;
  if (posix_memalign(&out, SVOD_ALIGN, bytes == 0 ? 1 : bytes) != 0) std::abort();
  __msan_poison(out, bytes);
  return out;
}

// Numbers in [-1, 1); integers, which may be positions of something, are zeros.
void* input(const void* image, const SvodTensor& tensor) {
  auto* out = static_cast<uint8_t*>(block(tensor.bytes));
  std::memset(out, 0, tensor.bytes);
  if (tensor.fixed.size != 0) {
    std::memcpy(out, svod_text(image, tensor.fixed), tensor.fixed.size);
    return out;
  }
  uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / (1 << 23) - 1;
  };
  const auto fill = [&](auto kind, auto convert) {
    for (uint64_t at = 0; at + sizeof kind <= tensor.bytes; at += sizeof kind) {
      kind = convert(next());
      std::memcpy(out + at, &kind, sizeof kind);
    }
  };
  if (tensor.dtype == kFloat) fill(0.0f, [](float x) { return x; });
  if (tensor.dtype == kDouble) fill(0.0, [](float x) { return double{x}; });
  if (tensor.dtype == kHalf)
    fill(uint16_t{}, [](float x) { return uint16_t(x < 0 ? 0xb800 : 0x3800); });
  if (tensor.dtype == kBrain)
    fill(uint16_t{}, [](float x) { return uint16_t(x < 0 ? 0xbf00 : 0x3f00); });
  return out;
}

// All elements, but of what a run's extents may leave out: the extents alone.
void check_outputs(const void* image, const SvodEntry& entry, void* const* outputs) {
  for (uint32_t i = 0; i < entry.output_count; ++i) {
    const SvodTensor& tensor = *svod_output(image, &entry, i);
    if (tensor.role == SVOD_ROLE_STATE || tensor.shape_output != 0) continue;
    __msan_check_mem_is_initialized(outputs[i], tensor.bytes);
  }
}

// The status of the last run.
int32_t run_entry(const SvodModel& model, const SvodEntry& entry, uint32_t level) {
  const void* image = model.image;
  if (entry.input_count > kMostTensors || entry.output_count > kMostTensors) std::abort();
  const void* inputs[kMostTensors];
  void* outputs[kMostTensors];
  for (uint32_t i = 0; i < entry.input_count; ++i)
    inputs[i] = input(image, *svod_input(image, &entry, i));
  for (uint32_t i = 0; i < entry.output_count; ++i)
    outputs[i] = block(svod_output(image, &entry, i)->bytes);
  const uint64_t states = svod_states_bytes(image, &entry);
  void* kept = block(states);
  std::memset(kept, 0, states);
  const uint64_t arena_bytes = svod_arena_bytes(image, &entry, 1);
  void* arena = block(arena_bytes);
  SvodRun run = {};
  run.model = &model, run.entry = &entry, run.level = level, run.threads = 1;
  run.arena = arena, run.arena_bytes = arena_bytes;
  int32_t status = SVOD_OK;
  for (int round = 0; round < 2 && status == SVOD_OK; ++round) {
    __msan_poison(arena, arena_bytes);
    for (uint32_t i = 0; i < entry.output_count; ++i)
      if (svod_output(image, &entry, i)->role != SVOD_ROLE_STATE)
        __msan_poison(outputs[i], svod_output(image, &entry, i)->bytes);
    svod_bind_states(image, &entry, kept, inputs, outputs);
    run.inputs = inputs, run.outputs = outputs;
    status = svod_replay(&run);
    if (status != SVOD_OK) break;
    check_outputs(image, entry, outputs);
    svod_keep_states(image, &entry, kept);
  }
  return status;
}

} // namespace

int main() {
  SvodModel model = {};
  svod_get_model(&model);
  if (const int32_t status = svod_check_image(&model); status != SVOD_OK) {
    std::printf("the image is refused: %d\n", status);
    return 1;
  }
  for (uint32_t level = 0; level < model.level_count; ++level)
    for (uint32_t i = 0; i < svod_header(model.image)->entries.count; ++i)
      std::printf("%s entry %u: status %d\n", model.levels[level].name, i,
                  run_entry(model, *svod_entry(model.image, i), level));
  return 0;
}
