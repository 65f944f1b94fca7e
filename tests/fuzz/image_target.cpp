// A packed image, mutated, with its checksum put right. What passes the check must run
// without touching anything but the image, the weights, the arena, and the caller's
// tensors, each of which is a block of the heap of its own size.
#include "runtime_stub/checksum.h"
#include "runtime_stub/replay.h"
#include "runtime_stub/states.h"
#include "tests/fuzz/address_sanitizer.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace svod::fuzz {

namespace {

constexpr uint64_t kMostBytes = 1 << 20; // of all that a run needs
constexpr uint64_t kMostWork = 1 << 16;  // launches

struct Block {
  uint8_t* data = nullptr;
  explicit Block(uint64_t bytes) {
    void* out = nullptr;
    must(posix_memalign(&out, SVOD_ALIGN, std::max<uint64_t>(bytes, 1)) == 0, "memory");
    data = static_cast<uint8_t*>(out);
    std::memset(data, 0x01, std::min<uint64_t>(bytes, 4096));
  }
  Block(Block&& other) noexcept : data(std::exchange(other.data, nullptr)) {}
  Block(const Block&) = delete;
  Block& operator=(Block&&) = delete;
  ~Block() { std::free(data); }
};

// What a launch was given, until the step that it was of is told.
struct Watch {
  const SvodModel* model = nullptr;
  const SvodEntry* entry = nullptr;
  std::vector<void*> buffers;
  void* scratch = nullptr;
  uint32_t chunk = 0;
  uint64_t work = 0;
};
Watch watch;

const SvodSlot& slot_at(uint32_t number) {
  return *svod_at<SvodSlot>(watch.model->image, svod_header(watch.model->image)->slots,
                            uint64_t{watch.entry->first_slot} + number);
}

bool is_written(uint32_t number) {
  while (slot_at(number).slot_class == SVOD_SLOT_SLICE)
    number =
        svod_at<SvodSlice>(watch.model->image, svod_header(watch.model->image)->slices,
                           slot_at(number).io)
            ->parent;
  const uint32_t kind = slot_at(number).slot_class;
  return kind == SVOD_SLOT_OUTPUT || kind == SVOD_SLOT_TEMPORARY ||
         kind == SVOD_SLOT_PART;
}

// Every byte is inside one block of the heap. The ends are read, and where kernels write
// they are written: small numbers, so that loops count on them.
void touch(uint8_t* data, uint64_t bytes, bool written) {
  if (bytes == 0) return;
#ifdef SVOD_ADDRESS_SANITIZER
  must(__asan_region_is_poisoned(data, bytes) == nullptr, "a buffer is inside its block");
#endif
  static volatile uint8_t sink;
  sink = sink ^ data[0] ^ data[bytes - 1];
  if (!written) return;
  data[bytes - 1] = 0;
  for (uint64_t k = 0; k < bytes && k < 16; ++k)
    data[k] = k % 8 == 0 ? static_cast<uint8_t>(watch.work % 3) : 0;
}

// Kernels know what of a state that moves is the tensor: the least room that it has.
uint64_t room_of(const SvodSlot& slot) {
  if (slot.slot_class != SVOD_SLOT_INPUT && slot.slot_class != SVOD_SLOT_OUTPUT)
    return slot.bytes;
  const void* image = watch.model->image;
  const bool in = slot.slot_class == SVOD_SLOT_INPUT;
  const SvodTensor& tensor = in ? *svod_input(image, watch.entry, slot.io)
                                : *svod_output(image, watch.entry, slot.io);
  if (tensor.role != SVOD_ROLE_STATE) return slot.bytes;
  const SvodState& state = *svod_state(image, watch.entry, tensor.shape_output - 1);
  const uint64_t room =
      state.bytes -
      (state.kind == SVOD_STATE_MOVES ? uint64_t{state.period - 1} * state.step : 0);
  return slot.offset >= room ? 0 : std::min(slot.bytes, room - slot.offset);
}

// The kernel's own doing, once the step is known.
void step_done(void*, uint32_t number) {
  const void* image = watch.model->image;
  const SvodStep& step = *svod_step(image, watch.entry, number);
  // A step of no chunks launches nothing.
  if (step.kind != SVOD_STEP_LAUNCH || step.chunks == 0) return;
  for (uint32_t i = 0; i < step.arg_count; ++i) {
    const uint32_t arg =
        *svod_at<uint32_t>(image, svod_header(image)->args, uint64_t{step.first_arg} + i);
    const SvodSlot& slot = slot_at(arg);
    auto* data = static_cast<uint8_t*>(watch.buffers[i]);
    // Of a part only what the chunk has is there.
    if (slot.slot_class == SVOD_SLOT_PART)
      data = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(data) +
                                        static_cast<uintptr_t>(slot.bytes) * watch.chunk);
    touch(data, room_of(slot), is_written(arg));
  }
  touch(static_cast<uint8_t*>(watch.scratch), watch.entry->scratch_bytes, true);
}

int32_t launch(uint32_t, uint32_t program, void* const* buffers, void* scratch,
               uint32_t chunk) {
  const SvodHeader& header = *svod_header(watch.model->image);
  must(program < header.programs.count, "a launch is of a program that is there");
  watch.buffers.assign(buffers, buffers + header.max_buffers);
  watch.scratch = scratch;
  watch.chunk = chunk;
  return ++watch.work < kMostWork ? SVOD_OK : SVOD_LIMIT;
}

// Nothing here is about long runs: loops of copies alone and steps of many chunks.
bool is_short(const SvodModel& model, const SvodEntry& entry) {
  const SvodHeader& header = *svod_header(model.image);
  for (uint32_t i = 0; i < header.regions.count; ++i)
    if (svod_at<SvodRegion>(&header, header.regions, i)->limit > 8) return false;
  for (uint32_t i = 0; i < entry.step_count; ++i)
    if (svod_step(&header, &entry, i)->chunks > 64) return false;
  return header.max_buffers < 1024;
}

uint64_t bytes_of(const SvodTensor& tensor) { return std::min(tensor.bytes, kMostBytes); }

void run_entry(const SvodModel& model, const SvodEntry& entry) {
  const void* image = model.image;
  const uint64_t states = svod_states_bytes(image, &entry);
  if (!is_short(model, entry) || entry.arena_bytes > kMostBytes ||
      entry.scratch_bytes > kMostBytes || states > kMostBytes)
    return;
  uint64_t all = 0;
  std::vector<Block> blocks;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const auto add = [&](const SvodTensor& tensor) {
    all += tensor.bytes;
    blocks.emplace_back(bytes_of(tensor));
    return blocks.back().data;
  };
  for (uint32_t i = 0; i < entry.input_count && all <= kMostBytes; ++i) {
    const SvodTensor& tensor = *svod_input(image, &entry, i);
    inputs.push_back(add(tensor));
    // What was packed for one value gets it.
    if (all <= kMostBytes && tensor.fixed.size != 0)
      std::memcpy(blocks.back().data, svod_text(image, tensor.fixed), tensor.fixed.size);
  }
  for (uint32_t i = 0; i < entry.output_count && all <= kMostBytes; ++i)
    outputs.push_back(add(*svod_output(image, &entry, i)));
  if (all > kMostBytes) return;
  const Block kept(states);
  std::memset(kept.data, 0, states);
  const uint64_t arena_bytes = svod_arena_bytes(image, &entry, 1);
  const Block arena(arena_bytes);
  watch = {&model, &entry, {}, nullptr, 0, 0};
  SvodRun run = {};
  run.model = &model, run.entry = &entry, run.threads = 1;
  run.arena = arena.data, run.arena_bytes = arena_bytes;
  run.step_done = step_done;
  // States move from run to run.
  for (int round = 0; round < 3; ++round) {
    run.inputs = inputs.data(), run.outputs = outputs.data();
    svod_bind_states(image, &entry, kept.data, inputs.data(), outputs.data());
    const int32_t status = svod_replay(&run);
    must(status == SVOD_OK || status == SVOD_LIMIT || status == SVOD_INDEX ||
             status == SVOD_MISALIGNED || status == SVOD_BAD_ARGUMENT,
         "a run ends as runs end");
    if (status != SVOD_OK) return;
    svod_keep_states(image, &entry, kept.data);
  }
}

} // namespace

void fuzz_image(Bytes bytes) {
  if (bytes.size() < sizeof(SvodHeader)) return;
  const Block image(bytes.size());
  std::memcpy(image.data, bytes.data(), bytes.size());
  auto& header = *reinterpret_cast<SvodHeader*>(image.data);
  // A mutation of these would only end sooner.
  std::memcpy(header.magic, "SVODIMG", 8);
  header.version = SVOD_FORMAT_VERSION;
  header.image_bytes = std::min(header.image_bytes, static_cast<uint32_t>(bytes.size()));
  if (header.image_bytes < sizeof(header)) return;
  header.weight_bytes = std::min(header.weight_bytes, kMostBytes);
  header.image_checksum = 0;
  header.image_checksum = svod_checksum(image.data, header.image_bytes);
  const Block weights(header.weight_bytes);
  static const SvodLevel kLevel{"base", 0};
  const SvodModel model{
      image.data, bytes.size(), weights.data, header.weight_bytes, launch, &kLevel, 1};
  if (svod_check_image(&model) != SVOD_OK) return;
  must(header.image_bytes <= bytes.size(), "the image is no longer than its bytes");
  for (uint32_t i = 0; i < std::min(header.entries.count, 4u); ++i)
    run_entry(model, *svod_entry(image.data, i));
}

} // namespace svod::fuzz
