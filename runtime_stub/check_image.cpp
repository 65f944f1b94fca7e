// Refuses an image before anything trusts it: magic, version, the bounds of every table,
// then every number that is used as an index. The idea: each check needs only what the
// ones before it have passed, so a truncated or bit-flipped image is never read outside
// its bytes, and a run that follows touches only the arena, the weights and the caller's
// tensors. All sums are taken in 64 bits over 32-bit fields, or as `a <= limit && b <=
// limit - a`, so none can wrap.
#include "runtime_stub/checksum.h"
#include "runtime_stub/replay.h"

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 46; // of an arena, a scratch, a tensor

bool within(uint64_t first, uint64_t count, uint64_t limit) {
  return first <= limit && count <= limit - first;
}

bool table_fits(const SvodHeader& header, SvodTable table, uint64_t element_bytes) {
  return table.offset % 8 == 0 &&
         within(table.offset, table.count * element_bytes, header.image_bytes);
}

bool text_fits(const SvodHeader& header, SvodText text) {
  return within(text.offset, text.size, header.image_bytes);
}

bool tables_fit(const SvodHeader& header) {
  return table_fits(header, header.entries, sizeof(SvodEntry)) &&
         table_fits(header, header.tensors, sizeof(SvodTensor)) &&
         table_fits(header, header.dims, sizeof(int64_t)) &&
         table_fits(header, header.slots, sizeof(SvodSlot)) &&
         table_fits(header, header.steps, sizeof(SvodStep)) &&
         table_fits(header, header.args, sizeof(uint32_t)) &&
         table_fits(header, header.programs, sizeof(SvodProgram)) &&
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

bool slot_holds(const SvodHeader& header, const SvodEntry& entry, const SvodSlot& slot) {
  switch (slot.slot_class) {
  case SVOD_SLOT_INPUT:
    return slot.io < entry.input_count &&
           within(slot.offset, slot.bytes, svod_input(&header, &entry, slot.io)->bytes);
  case SVOD_SLOT_OUTPUT:
    return slot.io < entry.output_count &&
           within(slot.offset, slot.bytes, svod_output(&header, &entry, slot.io)->bytes);
  case SVOD_SLOT_WEIGHT:
    return within(slot.offset, slot.bytes, header.weight_bytes);
  case SVOD_SLOT_TEMPORARY:
    return within(slot.offset, slot.bytes, entry.arena_bytes);
  default:
    return false;
  }
}

bool step_holds(const SvodHeader& header, const SvodEntry& entry, const SvodStep& step) {
  if (!text_fits(header, step.sources) || step.arg_count > header.max_buffers ||
      !within(step.first_arg, step.arg_count, header.args.count)) {
    return false;
  }
  const uint32_t* args = svod_at<uint32_t>(&header, header.args, step.first_arg);
  for (uint32_t i = 0; i < step.arg_count; i++) {
    if (args[i] >= entry.slot_count) return false;
  }
  if (step.kind == SVOD_STEP_LAUNCH) return step.program < header.programs.count;
  if (step.kind != SVOD_STEP_COPY || step.arg_count != 2) return false;
  const SvodSlot* slots = svod_at<SvodSlot>(&header, header.slots, entry.first_slot);
  const SvodSlot& from = slots[args[0]];
  const SvodSlot& to = slots[args[1]];
  return from.bytes >= to.bytes &&
         (to.slot_class == SVOD_SLOT_OUTPUT || to.slot_class == SVOD_SLOT_TEMPORARY);
}

// The output with the extents of another one has an int64 for each axis.
bool extents_hold(const SvodHeader& header, const SvodEntry& entry,
                  const SvodTensor& output) {
  if (output.shape_output == 0) return true;
  if (output.shape_output > entry.output_count) return false;
  const SvodTensor* extents = svod_output(&header, &entry, output.shape_output - 1);
  return extents->elements == output.rank &&
         extents->bytes == uint64_t{output.rank} * sizeof(int64_t);
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
  for (uint32_t i = 0; i < entry.output_count; i++) {
    if (!extents_hold(header, entry, *svod_output(&header, &entry, i))) return false;
  }
  for (uint32_t i = 0; i < entry.slot_count; i++) {
    const SvodSlot* slot = svod_at<SvodSlot>(&header, header.slots, entry.first_slot);
    if (!slot_holds(header, entry, slot[i])) return false;
  }
  for (uint32_t i = 0; i < entry.step_count; i++) {
    if (!step_holds(header, entry, *svod_step(&header, &entry, i))) return false;
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
