// Refuses an image before anything trusts it: magic, version, the bounds of every table,
// then every number that is used as an index. The idea: each check needs only what the
// ones before it have passed, so a truncated or bit-flipped image is never read outside
// its bytes, and a run that follows touches only the arena, the weights and the caller's
// tensors. No sum can wrap (image_bounds.h).
#include "runtime_stub/checksum.h"
#include "runtime_stub/image_bounds.h"
#include "runtime_stub/replay.h"

using namespace svod_image;

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 46; // of an arena, a scratch, a tensor

bool tables_fit(const SvodHeader& header) {
  return table_fits(header, header.entries, sizeof(SvodEntry)) &&
         table_fits(header, header.tensors, sizeof(SvodTensor)) &&
         table_fits(header, header.dims, sizeof(int64_t)) &&
         table_fits(header, header.slots, sizeof(SvodSlot)) &&
         table_fits(header, header.steps, sizeof(SvodStep)) &&
         table_fits(header, header.args, sizeof(uint32_t)) &&
         table_fits(header, header.programs, sizeof(SvodProgram)) &&
         table_fits(header, header.slices, sizeof(SvodSlice)) &&
         table_fits(header, header.regions, sizeof(SvodRegion)) &&
         text_fits(header, header.text) && text_fits(header, header.manifest);
}

bool tensor_holds(const SvodHeader& header, const SvodTensor& tensor) {
  if (!text_fits(header, tensor.name) || !text_fits(header, tensor.fixed) ||
      (tensor.fixed.size != 0 && tensor.fixed.size != tensor.bytes) ||
      tensor.rank > SVOD_MAX_RANK ||
      !within(tensor.first_dim, tensor.rank, header.dims.count) ||
      tensor.bytes > kMostBytes || tensor.alignment == 0 ||
      (tensor.alignment & (tensor.alignment - 1)) != 0) {
    return false;
  }
  const int64_t* dims = svod_dims(&header, &tensor);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < tensor.rank; i++) {
    // A dimension stays below 2^32 and the product below 2^46: no step can wrap.
    if (dims[i] < 0 || dims[i] > 0xffffffff) return false;
    uint64_t low = (elements & 0xffff) * static_cast<uint64_t>(dims[i]);
    uint64_t high = (elements >> 16) * static_cast<uint64_t>(dims[i]);
    if (high > kMostBytes >> 16) return false;
    elements = (high << 16) + low;
    if (elements > kMostBytes) return false;
  }
  return elements == tensor.elements;
}

// Offsets of a slice in its parent stay below 2^62: no sum wraps.
constexpr int64_t kMostStride = int64_t{1} << 32;

bool slice_holds(const SvodHeader& header, const SvodEntry& entry, uint32_t number) {
  const SvodSlot* slots = svod_at<SvodSlot>(&header, header.slots, entry.first_slot);
  const SvodSlot& slot = slots[number];
  if (slot.io >= header.slices.count) return false;
  const SvodSlice& slice = *svod_at<SvodSlice>(&header, header.slices, slot.io);
  if (slice.parent >= number || slots[slice.parent].slot_class == SVOD_SLOT_PART ||
      slice.depth >= SVOD_MAX_NESTING || slice.stride > kMostStride ||
      slice.stride < -kMostStride) {
    return false;
  }
  const uint64_t room = slots[slice.parent].bytes;
  if (!within(slot.offset, slot.bytes, room)) return false;
  if (slice.mask == ~0u) return true; // see slot_stays
  const uint64_t other = slot.offset + static_cast<uint64_t>(slice.stride);
  return slice.mask == 1 && within(other, slot.bytes, room);
}

// Of an input or output as kernels see it: a state may have room that its tensor has not.
uint64_t bytes_of([[maybe_unused]] const SvodHeader& header,
                  [[maybe_unused]] const SvodEntry& entry, const SvodTensor& tensor) {
#ifdef SVOD_STATES
  if (tensor.role == SVOD_ROLE_STATE)
    return svod_state(&header, &entry, tensor.shape_output - 1)->bytes;
#endif
  return tensor.bytes;
}

bool slot_holds(const SvodHeader& header, const SvodEntry& entry, uint32_t number) {
  const SvodSlot& slot =
      svod_at<SvodSlot>(&header, header.slots, entry.first_slot)[number];
  switch (slot.slot_class) {
  case SVOD_SLOT_INPUT:
    return slot.io < entry.input_count &&
           within(slot.offset, slot.bytes,
                  bytes_of(header, entry, *svod_input(&header, &entry, slot.io)));
  case SVOD_SLOT_OUTPUT:
    return slot.io < entry.output_count &&
           within(slot.offset, slot.bytes,
                  bytes_of(header, entry, *svod_output(&header, &entry, slot.io)));
  case SVOD_SLOT_WEIGHT:
    return within(slot.offset, slot.bytes, header.weight_bytes);
  case SVOD_SLOT_TEMPORARY:
    return within(slot.offset, slot.bytes, entry.arena_bytes);
  case SVOD_SLOT_PART:
    return within(slot.offset, slot.bytes, entry.scratch_bytes);
  case SVOD_SLOT_SLICE:
    return slice_holds(header, entry, number);
  default:
    return false;
  }
}

// The regions around a step, as a run would have them open: where each ends, and the
// limit of each loop.
struct Nesting {
  const SvodHeader& header;
  const SvodEntry& entry;
  uint32_t open = 0, loops = 0;
  uint64_t chain_end = 0; // the step after the last chain
  uint64_t ends[SVOD_MAX_NESTING] = {};
  bool is_loop[SVOD_MAX_NESTING] = {};
  uint32_t limits[SVOD_MAX_NESTING] = {}; // by loop, the outermost first

  const SvodSlot& slot(uint32_t number) const {
    return svod_at<SvodSlot>(&header, header.slots, entry.first_slot)[number];
  }
};

// Whether a slot lies inside what it is a part of in every iteration of the loops around;
// each loop that moves it is one of them.
bool slot_stays(const Nesting& nesting, uint32_t number) {
  if (number >= nesting.entry.slot_count) return false;
  while (nesting.slot(number).slot_class == SVOD_SLOT_SLICE) {
    const SvodSlot& slot = nesting.slot(number);
    const SvodSlice& slice =
        *svod_at<SvodSlice>(&nesting.header, nesting.header.slices, slot.io);
    number = slice.parent;
    if (slice.mask != ~0u || slice.stride == 0) continue;
    if (slice.depth >= nesting.loops) return false;
    const uint32_t limit = nesting.limits[slice.depth];
    if (limit == 0) continue;
    const uint64_t last = slot.offset + static_cast<uint64_t>(slice.stride) * (limit - 1);
    if (!within(last, slot.bytes, nesting.slot(number).bytes)) return false;
  }
  return true;
}

#ifdef SVOD_STATES
// Of a state that moves a slot has all the room, of which the last run before it is moved
// back has the least. Kernels know what of it is the tensor; the replay itself does not.
bool state_has_room(const Nesting& nesting, const SvodSlot& slot, uint64_t end) {
  if (slot.slot_class != SVOD_SLOT_INPUT && slot.slot_class != SVOD_SLOT_OUTPUT)
    return true;
  const bool in = slot.slot_class == SVOD_SLOT_INPUT;
  const SvodTensor& tensor = in ? *svod_input(&nesting.header, &nesting.entry, slot.io)
                                : *svod_output(&nesting.header, &nesting.entry, slot.io);
  if (tensor.role != SVOD_ROLE_STATE) return true;
  const SvodState& state =
      *svod_state(&nesting.header, &nesting.entry, tensor.shape_output - 1);
  return state.kind != SVOD_STATE_MOVES ||
         end <= state.bytes - uint64_t{state.period - 1} * state.step;
}
#else
bool state_has_room(const Nesting&, const SvodSlot&, uint64_t) { return true; }
#endif

// A slot that the replay itself reads (or writes) `bytes` of.
bool operand_holds(const Nesting& nesting, uint32_t number, uint64_t bytes,
                   bool written) {
  if (!slot_stays(nesting, number) || nesting.slot(number).bytes < bytes) return false;
  uint64_t end = bytes; // at most, from the beginning of the slot on
  while (nesting.slot(number).slot_class == SVOD_SLOT_SLICE) {
    const SvodSlot& slot = nesting.slot(number);
    const SvodSlice& slice =
        *svod_at<SvodSlice>(&nesting.header, nesting.header.slices, slot.io);
    const uint32_t limit = slice.mask == 1     ? 2
                           : slice.stride == 0 ? 0
                                               : nesting.limits[slice.depth];
    if (slice.stride > 0 && limit > 0)
      end += static_cast<uint64_t>(slice.stride) * (limit - 1);
    end += slot.offset;
    number = slice.parent;
  }
  const SvodSlot& root = nesting.slot(number);
  if (root.slot_class == SVOD_SLOT_PART ||
      !state_has_room(nesting, root, root.offset + end))
    return false;
  return !written || root.slot_class == SVOD_SLOT_OUTPUT ||
         root.slot_class == SVOD_SLOT_TEMPORARY;
}

bool maybe_operand(const Nesting& nesting, uint32_t number, uint64_t bytes,
                   bool written) {
  return number == SVOD_NO_SLOT || operand_holds(nesting, number, bytes, written);
}

// The region of step number `at`, which is open from then on.
bool region_holds(Nesting& nesting, const SvodStep& step, uint32_t at) {
  if (step.program >= nesting.header.regions.count || nesting.open == SVOD_MAX_NESTING) {
    return false;
  }
  const SvodRegion& region = *svod_region(&nesting.header, &step);
  const bool loop = step.kind == SVOD_STEP_LOOP;
  const uint64_t outer = nesting.open > 0 ? nesting.ends[nesting.open - 1]
                                          : uint64_t{nesting.entry.step_count};
  const uint64_t end = uint64_t{at} + 1 + region.steps + region.else_steps;
  if (end > outer || (loop && region.else_steps != 0) ||
      !operand_holds(nesting, region.start, 1, false)) {
    return false;
  }
  if (loop && (region.limit > SVOD_MAX_ITERATIONS ||
               !operand_holds(nesting, region.count, 8, false) ||
               !maybe_operand(nesting, region.again, 1, false) ||
               !maybe_operand(nesting, region.iteration, 8, true) ||
               !maybe_operand(nesting, region.done, 8, true))) {
    return false;
  }
  // Nothing straddles the place where the second branch begins.
  const uint64_t middle = uint64_t{at} + 1 + region.steps;
  nesting.ends[nesting.open] = end;
  nesting.is_loop[nesting.open++] = loop;
  if (loop) nesting.limits[nesting.loops++] = region.limit;
  if (loop) return true;
  if (nesting.open == SVOD_MAX_NESTING) return false;
  nesting.ends[nesting.open] = middle;
  nesting.is_loop[nesting.open++] = false;
  return true;
}

// The followers of a launch are launches of as many chunks in the same range of steps.
bool chain_holds(const Nesting& nesting, const SvodStep& step, uint32_t at) {
  const uint64_t end = nesting.open > 0 ? nesting.ends[nesting.open - 1]
                                        : uint64_t{nesting.entry.step_count};
  if (uint64_t{at} + step.followers >= end) return false;
  for (uint32_t i = 1; i <= step.followers; i++) {
    const SvodStep& next = *svod_step(&nesting.header, &nesting.entry, at + i);
    if (next.kind != SVOD_STEP_LAUNCH || next.followers != 0 ||
        next.chunks != step.chunks) {
      return false;
    }
  }
  return true;
}

// Parts are there only while a chain runs.
bool takes_part(const Nesting& nesting, const uint32_t* args, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (nesting.slot(args[i]).slot_class == SVOD_SLOT_PART) return true;
  }
  return false;
}

bool step_holds(Nesting& nesting, uint32_t at) {
  const SvodHeader& header = nesting.header;
  while (nesting.open > 0 && nesting.ends[nesting.open - 1] == at) {
    if (nesting.is_loop[--nesting.open]) nesting.loops--;
  }
  const SvodStep& step = *svod_step(&header, &nesting.entry, at);
  if (!text_fits(header, step.sources) || step.arg_count > header.max_buffers ||
      !within(step.first_arg, step.arg_count, header.args.count)) {
    return false;
  }
  const uint32_t* args = svod_at<uint32_t>(&header, header.args, step.first_arg);
  for (uint32_t i = 0; i < step.arg_count; i++) {
    if (!slot_stays(nesting, args[i])) return false;
  }
  if (step.kind == SVOD_STEP_LAUNCH && step.followers != 0) {
    nesting.chain_end = uint64_t{at} + step.followers + 1;
  }
  if (takes_part(nesting, args, step.arg_count) && at >= nesting.chain_end) return false;
  if (step.kind == SVOD_STEP_LAUNCH) {
    return step.program < header.programs.count && chain_holds(nesting, step, at);
  }
  if (step.followers != 0) return false;
  if (step.kind == SVOD_STEP_LOOP || step.kind == SVOD_STEP_IF) {
    return region_holds(nesting, step, at);
  }
  if (step.kind != SVOD_STEP_COPY || step.arg_count != 2) return false;
  const uint64_t bytes = nesting.slot(args[1]).bytes;
  return operand_holds(nesting, args[0], bytes, false) &&
         operand_holds(nesting, args[1], bytes, true);
}

#ifdef SVOD_STATES
// Places of states, and their sums, stay below 2^47.
bool state_holds(const SvodHeader& header, const SvodEntry& entry,
                 const SvodState& state) {
  const bool moves = state.kind == SVOD_STATE_MOVES;
  return state.input < entry.input_count && state.output < entry.output_count &&
         state.kind <= SVOD_STATE_COPIED && state.bytes <= kMostBytes &&
         state.offset <= kMostBytes && state.offset % SVOD_ALIGN == 0 &&
         state.step <= state.bytes && state.part_bytes <= state.apart_bytes &&
         uint64_t{state.parts} * state.apart_bytes <= state.bytes &&
         uint64_t{state.parts} * state.part_bytes ==
             svod_input(&header, &entry, state.input)->bytes &&
         (!moves || (state.step != 0 && state.period != 0 &&
                     uint64_t{state.period} * state.step <= state.bytes));
}

// A number of rows: an int64 in one of two places.
bool counter_holds(const SvodEntry& entry, const SvodHeader& header, uint32_t number) {
  if (number == 0 || number > entry.state_count) return false;
  const SvodState& state = *svod_state(&header, &entry, number - 1);
  return state.counter == 0 && state.kind == SVOD_STATE_TURNS &&
         state.bytes == sizeof(int64_t) && state.parts == 1 &&
         state.part_bytes == sizeof(int64_t);
}

// The parts of a state that grows are rows of one size, as many as a run may begin with
// and more.
bool growth_holds(const SvodHeader& header, const SvodEntry& entry,
                  const SvodState& state) {
  if (state.counter == 0) return true;
  const SvodTensor& tensor = *svod_input(&header, &entry, state.input);
  if (!counter_holds(entry, header, state.counter) || state.axis >= tensor.rank)
    return false;
  const auto rows = static_cast<uint64_t>(svod_dims(&header, &tensor)[state.axis]);
  return rows > 0 && svod_state(&header, &entry, state.counter - 1)->most <= rows &&
         state.part_bytes % rows == 0;
}

// Entries share the memory of their states.
bool states_agree(const SvodHeader& header, const SvodEntry& entry) {
  const SvodEntry& first = *svod_entry(&header, 0);
  if (entry.state_count != first.state_count) return false;
  for (uint32_t i = 0; i < entry.state_count; i++) {
    const SvodState& a = *svod_state(&header, &first, i);
    const SvodState& b = *svod_state(&header, &entry, i);
    if (a.kind != b.kind || a.bytes != b.bytes || a.offset != b.offset ||
        a.counter != b.counter || a.input != b.input)
      return false;
  }
  return entry.input_count == first.input_count &&
         entry.output_count == first.output_count;
}

bool states_hold(const SvodHeader& header, const SvodEntry& entry) {
  if (!table_fits(header, header.states, sizeof(SvodState)) ||
      !within(entry.first_state, entry.state_count, header.states.count)) {
    return false;
  }
  for (uint32_t i = 0; i < entry.state_count; i++) {
    if (!state_holds(header, entry, *svod_state(&header, &entry, i))) return false;
  }
  return true;
}

bool counters_hold(const SvodHeader& header, const SvodEntry& entry) {
  for (uint32_t i = 0; i < entry.state_count; i++)
    if (!growth_holds(header, entry, *svod_state(&header, &entry, i))) return false;
  for (uint32_t i = 0; i < entry.input_count; i++) {
    const uint32_t counter = svod_input(&header, &entry, i)->counter;
    if (counter != 0 && !counter_holds(entry, header, counter)) return false;
  }
  return states_agree(header, entry);
}

bool is_state(const SvodTensor& tensor) { return tensor.role == SVOD_ROLE_STATE; }

// Each is one of the entry's, which has this tensor as the one or the other.
bool role_holds(const SvodHeader& header, const SvodEntry& entry,
                const SvodTensor& tensor, uint32_t number, bool output) {
  if (!is_state(tensor)) return true;
  if (tensor.shape_output == 0 || tensor.shape_output > entry.state_count) return false;
  const SvodState& state = *svod_state(&header, &entry, tensor.shape_output - 1);
  return (output ? state.output : state.input) == number;
}
#else
// A stub that keeps nothing from run to run: all tensors are the caller's.
bool states_hold(const SvodHeader&, const SvodEntry& entry) {
  return entry.state_count == 0;
}
bool is_state(const SvodTensor&) { return false; }
bool role_holds(const SvodHeader&, const SvodEntry&, const SvodTensor&, uint32_t, bool) {
  return true;
}
bool counters_hold(const SvodHeader&, const SvodEntry&) { return true; }
#endif

// The output with the extents of another one has an int64 for each axis.
bool extents_hold(const SvodHeader& header, const SvodEntry& entry,
                  const SvodTensor& output) {
  if (is_state(output) || output.shape_output == 0) return true;
  if (output.shape_output > entry.output_count) return false;
  const SvodTensor* extents = svod_output(&header, &entry, output.shape_output - 1);
  return extents->elements == output.rank &&
         extents->bytes == uint64_t{output.rank} * sizeof(int64_t);
}

// Likewise of an input.
bool open_extents_hold(const SvodHeader& header, const SvodEntry& entry,
                       const SvodTensor& input) {
  if (input.role != SVOD_ROLE_MODEL || input.shape_output == 0) return true;
  if (input.shape_output > entry.input_count) return false;
  const SvodTensor* extents = svod_input(&header, &entry, input.shape_output - 1);
  return extents->role != SVOD_ROLE_MODEL && // SHAPE or PICTURE
         extents->elements == input.rank &&
         extents->bytes == uint64_t{input.rank} * sizeof(int64_t);
}

bool entry_holds(const SvodHeader& header, const SvodEntry& entry) {
  if (!within(entry.first_input, entry.input_count, header.tensors.count) ||
      !within(entry.first_output, entry.output_count, header.tensors.count) ||
      !within(entry.first_slot, entry.slot_count, header.slots.count) ||
      !within(entry.first_step, entry.step_count, header.steps.count) ||
      entry.arena_bytes > kMostBytes || entry.scratch_bytes > kMostBytes ||
      entry.scratch_bytes % SVOD_ALIGN != 0) {
    return false;
  }
  if (!states_hold(header, entry)) return false;
  for (uint32_t i = 0; i < entry.output_count; i++) {
    const SvodTensor& output = *svod_output(&header, &entry, i);
    if (!role_holds(header, entry, output, i, true) ||
        !extents_hold(header, entry, output))
      return false;
  }
  for (uint32_t i = 0; i < entry.input_count; i++) {
    const SvodTensor& input = *svod_input(&header, &entry, i);
    if (!role_holds(header, entry, input, i, false) ||
        !open_extents_hold(header, entry, input))
      return false;
  }
  for (uint32_t i = 0; i < entry.slot_count; i++) {
    if (!slot_holds(header, entry, i)) return false;
  }
  Nesting nesting{header, entry};
  for (uint32_t i = 0; i < entry.step_count; i++) {
    if (!step_holds(nesting, i)) return false;
  }
  return true;
}

bool contents_hold(const SvodHeader& header) {
  for (uint32_t i = 0; i < header.programs.count; i++) {
    if (!text_fits(header, svod_program(&header, i)->name)) return false;
  }
  for (uint32_t i = 0; i < header.tensors.count; i++) {
    if (!tensor_holds(header, *svod_at<SvodTensor>(&header, header.tensors, i)))
      return false;
  }
  for (uint32_t i = 0; i < header.entries.count; i++) {
    if (!entry_holds(header, *svod_entry(&header, i))) return false;
  }
  for (uint32_t i = 0; i < header.entries.count; i++) {
    if (!counters_hold(header, *svod_entry(&header, i))) return false;
  }
  return true;
}

// The field that holds the checksum counts as zero.
uint64_t image_checksum(const SvodHeader& header) {
  const uint8_t* image = reinterpret_cast<const uint8_t*>(&header);
  constexpr uint64_t kField = __builtin_offsetof(SvodHeader, image_checksum);
  constexpr uint8_t kZero[8] = {};
  SvodChecksum sum;
  sum.add(image, kField);
  sum.add(kZero, 8);
  sum.add(image + kField + 8, header.image_bytes - kField - 8);
  return sum.finish();
}

} // namespace

int32_t svod_check_image(const SvodModel* model) {
  static constexpr uint8_t kMagic[8] = {'S', 'V', 'O', 'D', 'I', 'M', 'G', 0};
  uintptr_t address = reinterpret_cast<uintptr_t>(model->image);
  if (address == 0 || address % 8 != 0 || model->image_bytes < sizeof(SvodHeader)) {
    return SVOD_CORRUPT;
  }
  const SvodHeader& header = *svod_header(model->image);
  for (uint32_t i = 0; i < sizeof(kMagic); i++) {
    if (header.magic[i] != kMagic[i]) return SVOD_CORRUPT;
  }
  if (header.version != SVOD_FORMAT_VERSION) return SVOD_ABI;
  if (header.image_bytes < sizeof(SvodHeader) ||
      header.image_bytes > model->image_bytes || header.weight_bytes > kMostBytes) {
    return SVOD_CORRUPT;
  }
  if (model->weights != nullptr && header.weight_bytes > model->weight_bytes) {
    return SVOD_CORRUPT;
  }
  if (image_checksum(header) != header.image_checksum) return SVOD_CORRUPT;
  return tables_fit(header) && contents_hold(header) ? SVOD_OK : SVOD_CORRUPT;
}

int32_t svod_check_bytes(const SvodModel* model) {
  const SvodHeader& header = *svod_header(model->image);
  if (image_checksum(header) != header.image_checksum) return SVOD_CORRUPT;
  if (model->weights == nullptr) return SVOD_OK;
  uint64_t weights = svod_checksum(model->weights, header.weight_bytes);
  return weights == header.weight_checksum ? SVOD_OK : SVOD_CORRUPT;
}
