// The packed library: the C functions of its header, under the prefix given with
// -DSVOD_PREFIX=infer. It writes no global; what it knows from earlier calls (the image
// is sound, the CPU level to use) it keeps at the start of the caller's arena, under a
// key that only this model at this address writes. So a run on a used arena starts
// without asking anything again.
//
// An arena that is not known yet has states of zeros, which stay in it from run to run.
// Where weights are made at the start, they lie in memory of the caller that any number
// of arenas share; the arena notes where.
//
//   arena:  what is known | states | the arena of svod_replay
#include "runtime_stub/cpu.h"
#include "runtime_stub/replay.h"
#ifdef SVOD_STATES
#include "runtime_stub/states.h"
#endif
#ifdef SVOD_CHANGES
#include "runtime_stub/changes.h"
#endif
#include "runtime_stub/status_text.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/library_device.h"
#endif
#ifdef SVOD_MAKES_WEIGHTS
#include "runtime_stub/expansion.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/stored_weights.h"
#endif

#define SVOD_JOIN2(a, b) a##_##b
#define SVOD_JOIN(a, b) SVOD_JOIN2(a, b)
#define SVOD_API(name) SVOD_JOIN(SVOD_PREFIX, name)

namespace {

struct Known {
  uint64_t key;
  uint32_t level;
  uint32_t unused;
  uint64_t weights_key, weights; // of made ones, the address of what stands before them
  uint32_t unused_too[8];
};
static_assert(sizeof(Known) == SVOD_ARENA_NOTES && SVOD_ARENA_NOTES % SVOD_ALIGN == 0);

uint64_t key_of(const void* arena, const void* image) {
  return svod_header(image)->image_checksum ^ reinterpret_cast<uintptr_t>(arena);
}

#ifdef SVOD_MAKES_WEIGHTS
// In front of made weights: that they are made, of this model and at this address.
struct Made {
  uint64_t key;
  uint32_t unused[14];
};
static_assert(sizeof(Made) == SVOD_ALIGN);

constexpr uint64_t kMadeSalt = 0x7365747472616d65u; // no arena has this key

// Null: init was not called with this arena.
const uint8_t* made_weights(const Known* known, const void* image) {
  if (known->weights_key != (key_of(known, image) ^ known->weights ^ kMadeSalt))
    return nullptr;
  const auto* made =
      reinterpret_cast<const Made*>(static_cast<uintptr_t>(known->weights));
  return reinterpret_cast<const uint8_t*>(made + 1);
}

struct Stored {
  const void* data;
  uint64_t bytes;
};

Stored stored_weights() {
  Stored out = {};
  svod_get_stored(&out.data, &out.bytes);
  return out;
}

int32_t make(const void* image, Made* made, uint8_t* scratch) {
  const Stored stored = stored_weights();
  auto* weights = reinterpret_cast<uint8_t*>(made + 1);
  const uint64_t bytes = svod_header(image)->weight_bytes;
  if (bytes == 0) return SVOD_OK;
  int32_t status = svod_check_expansion(stored.data, stored.bytes, bytes);
  if (status != SVOD_OK) return status;
  const auto* header = static_cast<const SvodExpansionHeader*>(stored.data);
  memset(weights, 0, static_cast<size_t>(bytes));
  for (uint32_t job = 0; status == SVOD_OK && job < header->jobs; job++)
    status = svod_expand(stored.data, stored.bytes, job, weights, scratch);
  return status;
}
#endif

// Fills `known` unless it was filled before.
int32_t prepare(const SvodModel& model, Known* known) {
  uint64_t key = key_of(known, model.image);
  if (known->key == key && known->level < model.level_count) return SVOD_OK;
  int32_t status = svod_check_image(&model);
  if (status != SVOD_OK) return status;
#ifdef SVOD_SEVERAL_ENTRIES
  if (svod_header(model.image)->entries.count == 0) return SVOD_CORRUPT;
#else
  if (svod_header(model.image)->entries.count != 1) return SVOD_CORRUPT;
#endif
  int32_t level = svod_choose_level(&model);
  if (level < 0) return SVOD_CPU;
  known->level = static_cast<uint32_t>(level);
#ifdef SVOD_STATES
  __builtin_memset(
      known + 1, 0,
      static_cast<size_t>(svod_states_bytes(model.image, svod_entry(model.image, 0))));
#endif
  known->key = key;
  return SVOD_OK;
}

uint64_t state_bytes([[maybe_unused]] const void* image) {
#ifdef SVOD_STATES
  return svod_states_bytes(image, svod_entry(image, 0));
#else
  return 0;
#endif
}

#ifdef SVOD_STATES
// The caller's tensors in their order, with the states between them.
int32_t bind(SvodRun& run, void* states, const void* const inputs[],
             void* const outputs[]) {
  const void* image = run.model->image;
  if (inputs == nullptr || outputs == nullptr) return SVOD_BAD_ARGUMENT;
  const void** all_inputs = svod_state_inputs(run.entry, states);
  void** all_outputs = svod_state_outputs(run.entry, states);
  for (uint32_t i = 0; i < run.entry->input_count; i++) {
    if (svod_input(image, run.entry, i)->role != SVOD_ROLE_STATE)
      all_inputs[i] = *inputs++;
  }
  for (uint32_t i = 0; i < run.entry->output_count; i++) {
    if (svod_output(image, run.entry, i)->role != SVOD_ROLE_STATE)
      all_outputs[i] = *outputs++;
  }
  svod_bind_states(image, run.entry, states, all_inputs, all_outputs);
  run.inputs = all_inputs;
  run.outputs = all_outputs;
  return SVOD_OK;
}
#endif

// Of the entry that needs most, so that one arena serves all.
uint64_t bytes_needed(const void* image) {
  uint64_t most = svod_arena_bytes(image, svod_entry(image, 0), 1);
#ifdef SVOD_SEVERAL_ENTRIES
  for (uint32_t e = 1; e < svod_header(image)->entries.count; e++) {
    const uint64_t bytes = svod_arena_bytes(image, svod_entry(image, e), 1);
    if (bytes > most) most = bytes;
  }
#endif
#ifdef SVOD_DEVICE
  most += svod_library::gpu_room();
#endif
  return sizeof(Known) + state_bytes(image) + most;
}

#ifdef SVOD_DEVICE
// What the arena holds for a GPU, behind all else.
struct GpuPart {
  void* room;
  uint64_t key;
};

GpuPart gpu_part(void* arena, const void* image) {
  const uint64_t at = bytes_needed(image) - svod_library::gpu_room();
  void* room = static_cast<uint8_t*>(arena) + static_cast<size_t>(at);
  return {room, key_of(room, image)};
}

int32_t check_arena(const void* arena) {
  if (arena == nullptr) return SVOD_BAD_ARGUMENT;
  const bool aligned = reinterpret_cast<uintptr_t>(arena) % SVOD_ALIGN == 0;
  return aligned ? SVOD_OK : SVOD_MISALIGNED;
}

const void* packed_image() {
  SvodModel model;
  svod_get_model(&model);
  return model.image;
}

int run_there(uint32_t entry, void* arena, const void* const inputs[],
              void* const outputs[], void* stream) {
  const int32_t status = check_arena(arena);
  if (status != SVOD_OK) return status;
  const GpuPart gpu = gpu_part(arena, packed_image());
  if (!svod_library::runs_on_gpu(gpu.room, gpu.key)) return SVOD_NO_DEVICE;
  return svod_library::run_gpu_there(gpu.room, entry, inputs, outputs, stream);
}
#endif

#ifdef SVOD_CHANGES
constexpr uint64_t kMasks[] = {SVOD_CHANGES};

uint8_t* changes_of(const SvodRun& run) {
  return static_cast<uint8_t*>(run.arena) + static_cast<size_t>(SVOD_CHANGES_AT);
}

#endif

// `changed`: null where all inputs may be others than in the run before.
int32_t replay(SvodRun& run, [[maybe_unused]] const uint64_t* changed) {
#ifdef SVOD_CHANGES
  const uint64_t key = svod_changes_key(SVOD_CHANGES_KEY, run.arena);
  if (changed == nullptr) svod_forget_changes(changes_of(run));
  svod_begin_changes(changes_of(run), key, kMasks, sizeof kMasks / sizeof *kMasks,
                     changed == nullptr ? 0 : *changed);
  const int32_t status = svod_replay(&run);
  if (status == SVOD_OK) svod_end_changes(changes_of(run), key);
  return status;
#else
  return svod_replay(&run);
#endif
}

#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
constexpr uint32_t kNextEntry = ~0u; // the first that has room for what the states hold
#endif

int run_entry(uint32_t entry, void* arena, size_t arena_bytes, const void* const inputs[],
              void* const outputs[], const uint64_t* changed = nullptr) {
  if (arena == nullptr) return SVOD_BAD_ARGUMENT;
  if (reinterpret_cast<uintptr_t>(arena) % SVOD_ALIGN != 0) return SVOD_MISALIGNED;
  if (arena_bytes < sizeof(Known)) return SVOD_ARENA_SMALL;
  SvodModel model;
  svod_get_model(&model);
  const uint64_t states = state_bytes(model.image);
  if (arena_bytes - sizeof(Known) < states) return SVOD_ARENA_SMALL;
#ifdef SVOD_DEVICE
  if (arena_bytes < bytes_needed(model.image)) return SVOD_ARENA_SMALL;
  const GpuPart gpu = gpu_part(arena, model.image);
  if (svod_library::runs_on_gpu(gpu.room, gpu.key))
    return svod_library::run_gpu(gpu.room, entry, inputs, outputs);
#endif
  Known* known = static_cast<Known*>(arena);
#ifdef SVOD_MAKES_WEIGHTS
  model.weights = made_weights(known, model.image);
  if (model.weights == nullptr) return SVOD_NO_WEIGHTS;
  model.weight_bytes = svod_header(model.image)->weight_bytes;
#endif
  int32_t status = prepare(model, known);
  if (status != SVOD_OK) return status;
  SvodRun run = {};
  run.model = &model;
#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
  if (entry == kNextEntry) entry = svod_state_entry(model.image, known + 1);
#endif
  run.entry = svod_entry(model.image, entry);
  run.level = known->level;
  run.threads = 1;
  run.arena = reinterpret_cast<uint8_t*>(known + 1) + static_cast<size_t>(states);
  run.arena_bytes = arena_bytes - sizeof(Known) - states;
#ifdef SVOD_STATES
  if (svod_full_state(model.image, run.entry, known + 1) != run.entry->state_count)
    return SVOD_LIMIT;
  status = bind(run, known + 1, inputs, outputs);
  if (status == SVOD_OK) status = replay(run, changed);
  if (status == SVOD_OK) svod_keep_states(model.image, run.entry, known + 1);
  return status;
#else
  run.inputs = inputs;
  run.outputs = outputs;
  return replay(run, changed);
#endif
}

} // namespace

#pragma GCC visibility push(default) // what a shared object exports

extern "C" {

int SVOD_API(run_sized)(void* arena, size_t arena_bytes, const void* const inputs[],
                        void* const outputs[]) {
#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
  return run_entry(kNextEntry, arena, arena_bytes, inputs, outputs);
#else
  return run_entry(0, arena, arena_bytes, inputs, outputs);
#endif
}

int SVOD_API(run)(void* arena, const void* const inputs[], void* const outputs[]) {
  SvodModel model;
  svod_get_model(&model);
  return SVOD_API(run_sized)(arena, static_cast<size_t>(bytes_needed(model.image)),
                             inputs, outputs);
}

#ifdef SVOD_CHANGES
int SVOD_API(run_changed)(void* arena, const void* const inputs[], void* const outputs[],
                          uint64_t changed) {
  SvodModel model;
  svod_get_model(&model);
  return run_entry(0, arena, static_cast<size_t>(bytes_needed(model.image)), inputs,
                   outputs, &changed);
}
#endif

#ifdef SVOD_SEVERAL_ENTRIES
int SVOD_API(run_entry)(size_t entry, void* arena, const void* const inputs[],
                        void* const outputs[]) {
  SvodModel model;
  svod_get_model(&model);
  if (entry >= svod_header(model.image)->entries.count) return SVOD_BAD_ARGUMENT;
  return run_entry(static_cast<uint32_t>(entry), arena,
                   static_cast<size_t>(bytes_needed(model.image)), inputs, outputs);
}

#ifdef SVOD_STATES
// That of run: an arena that is not known holds nothing.
size_t SVOD_API(next_entry)(const void* arena) {
  SvodModel model;
  svod_get_model(&model);
  const Known* known = static_cast<const Known*>(arena);
  if (arena == nullptr || known->key != key_of(arena, model.image)) return 0;
  return svod_state_entry(model.image, known + 1);
}
#endif

// The number of entries where there is none of these extents.
size_t SVOD_API(find_entry)(const int64_t* const dims[]) {
  SvodModel model;
  svod_get_model(&model);
  const uint32_t count = svod_header(model.image)->entries.count;
  for (uint32_t e = 0; e < count; e++) {
    const SvodEntry* entry = svod_entry(model.image, e);
    bool same = true;
    for (uint32_t i = 0; same && i < entry->input_count; i++) {
      const SvodTensor* input = svod_input(model.image, entry, i);
      const int64_t* packed = svod_dims(model.image, input);
      for (uint32_t axis = 0; axis < input->rank; axis++)
        same = same && packed[axis] == dims[i][axis];
    }
    if (same) return e;
  }
  return count;
}
#endif

#ifdef SVOD_STATES
// The next run finds an arena that it does not know.
void SVOD_API(reset)(void* arena) {
  if (arena != nullptr) static_cast<Known*>(arena)->key = 0;
}
#endif

#ifdef SVOD_MAKES_WEIGHTS
int SVOD_API(init)(void* arena, void* weights, void* scratch) {
  if (arena == nullptr || weights == nullptr) return SVOD_BAD_ARGUMENT;
  const uintptr_t bits = reinterpret_cast<uintptr_t>(arena) |
                         reinterpret_cast<uintptr_t>(weights) |
                         reinterpret_cast<uintptr_t>(scratch);
  if (bits % SVOD_ALIGN != 0) return SVOD_MISALIGNED;
  SvodModel model;
  svod_get_model(&model);
  auto* made = static_cast<Made*>(weights);
  const uint64_t key = key_of(made, model.image) ^ kMadeSalt;
  if (made->key != key) {
    int32_t status = svod_check_image(&model);
    if (status == SVOD_OK && scratch == nullptr) return SVOD_BAD_ARGUMENT;
    if (status == SVOD_OK)
      status = make(model.image, made, static_cast<uint8_t*>(scratch));
    if (status != SVOD_OK) return status;
    made->key = key;
  }
  auto* known = static_cast<Known*>(arena);
  known->weights = reinterpret_cast<uintptr_t>(weights);
  known->weights_key = key_of(known, model.image) ^ known->weights ^ kMadeSalt;
  return SVOD_OK;
}
#endif

#ifdef SVOD_DEVICE
int SVOD_API(open)(void* arena, int place) {
  const int32_t status = check_arena(arena);
  if (status != SVOD_OK) return status;
  const GpuPart gpu = gpu_part(arena, packed_image());
  return svod_library::open_gpu(gpu.room, gpu.key, place);
}

void SVOD_API(close)(void* arena) {
  if (check_arena(arena) != SVOD_OK) return;
  const GpuPart gpu = gpu_part(arena, packed_image());
  svod_library::close_gpu(gpu.room, gpu.key);
}

const char* SVOD_API(device_text)(void* arena) {
  if (check_arena(arena) != SVOD_OK) return "there is no arena";
  const GpuPart gpu = gpu_part(arena, packed_image());
  return svod_library::gpu_text(gpu.room, gpu.key);
}

int SVOD_API(runs_on_device)(void* arena) {
  if (check_arena(arena) != SVOD_OK) return 0;
  const GpuPart gpu = gpu_part(arena, packed_image());
  return svod_library::runs_on_gpu(gpu.room, gpu.key) ? 1 : 0;
}

int SVOD_API(run_device)(void* arena, const void* const inputs[], void* const outputs[],
                         void* stream) {
  return run_there(0, arena, inputs, outputs, stream);
}

#ifdef SVOD_SEVERAL_ENTRIES
int SVOD_API(run_entry_device)(size_t entry, void* arena, const void* const inputs[],
                               void* const outputs[], void* stream) {
  if (entry >= svod_header(packed_image())->entries.count) return SVOD_BAD_ARGUMENT;
  return run_there(static_cast<uint32_t>(entry), arena, inputs, outputs, stream);
}
#endif

int SVOD_API(finish_device)(void* arena) {
  const int32_t status = check_arena(arena);
  if (status != SVOD_OK) return status;
  const GpuPart gpu = gpu_part(arena, packed_image());
  if (!svod_library::runs_on_gpu(gpu.room, gpu.key)) return SVOD_NO_DEVICE;
  return svod_library::finish_gpu(gpu.room);
}
#endif

size_t SVOD_API(arena_bytes)(void) {
  SvodModel model;
  svod_get_model(&model);
  return static_cast<size_t>(bytes_needed(model.image));
}

const char* SVOD_API(status_text)(int status) { return svod_text_of_status(status); }

// The manifest, which the image ends with a zero byte.
const char* SVOD_API(info)(void) {
  SvodModel model;
  svod_get_model(&model);
  return svod_text(model.image, svod_header(model.image)->manifest);
}

// With --self-check: reads all bytes of image and weights.
#ifdef SVOD_SELF_CHECK
int SVOD_API(self_check)(void) {
  SvodModel model;
  svod_get_model(&model);
  const int32_t status = svod_check_image(&model);
  return status != SVOD_OK ? status : svod_check_bytes(&model);
}
#endif

} // extern "C"

#pragma GCC visibility pop
