#include "packager/verify/run_memory.h"

#include "compiler/support/check.h"

#include <cstring>

namespace svod::packager {

namespace {

AlignedMemory unwritten(size_t bytes) {
  AlignedMemory out = aligned_memory(bytes);
  std::memset(out.data()->bytes, 0xff, out.size() * sizeof(MemoryLine));
  return out;
}

// Of the launches that take a part.
std::map<plan::SlotId, uint32_t> chunks_of_parts(const plan::Plan& plan) {
  std::map<plan::SlotId, uint32_t> out;
  for (const plan::Step& step : plan.steps)
    for (plan::SlotId id : step.arguments)
      if (plan.slots[id].slot_class == plan::SlotClass::Part) out[id] = step.chunks;
  return out;
}

} // namespace

RunMemory::RunMemory(const plan::Plan& plan, const std::vector<Tensor>& inputs,
                     const std::byte* weights)
    : plan_(plan), weights_(weights), arena_(unwritten(plan.arena_bytes)),
      scratch_(unwritten(plan.scratch_bytes)), chunks_(chunks_of_parts(plan)),
      iterations_(SVOD_MAX_NESTING) {
  for (const Tensor& input : inputs) {
    inputs_.push_back(aligned_memory(input.bytes.size()));
    if (!input.bytes.empty())
      std::memcpy(begin(inputs_.back()), input.bytes.data(), input.bytes.size());
  }
  for (const GraphOutput& output : plan.graph.outputs()) {
    const Node& node = plan.graph[output.node];
    outputs_.push_back(unwritten(
        static_cast<size_t>(element_count(node.shape) * byte_size(node.dtype))));
  }
  for (const auto& [id, chunks] : chunks_) parts_.emplace(id, unwritten(bytes(id)));
  // A run of all steps: every condition holds.
  if (const plan::SlotId changes = plan.changes.slot; changes != plan::kNoSlot)
    std::memset(address(changes), 1, bytes(changes));
}

uint64_t RunMemory::bytes(plan::SlotId id) const {
  const auto chunks = chunks_.find(id);
  return plan_.slots[id].bytes * (chunks == chunks_.end() ? 1 : chunks->second);
}

std::byte* RunMemory::address(plan::SlotId id) {
  uint64_t offset = 0;
  const plan::Slot* slot = &plan_.slots[id];
  for (; slot->slot_class == plan::SlotClass::Slice; slot = &plan_.slots[id]) {
    const uint32_t done = iterations_[slot->depth];
    const uint32_t moves = slot->alternates ? done & 1 : done;
    offset += slot->offset + static_cast<uint64_t>(slot->stride) * moves;
    id = slot->parent;
  }
  offset += slot->slot_class == plan::SlotClass::Part ? 0 : slot->offset;
  switch (slot->slot_class) {
  case plan::SlotClass::Input:
    return begin(inputs_[slot->io]) + offset;
  case plan::SlotClass::Output:
    return begin(outputs_[slot->io]) + offset;
  case plan::SlotClass::Weight: // read through the pointer that others write by
    return const_cast<std::byte*>(weights_) + offset;
  case plan::SlotClass::Part:
    return begin(parts_.at(id)) + offset;
  default:
    SVOD_CHECK(slot->slot_class == plan::SlotClass::Temporary) << "a slot without memory";
    return begin(arena_) + offset;
  }
}

std::byte* RunMemory::address_in_chain(plan::SlotId id, uint32_t chunk) {
  const plan::Slot& slot = plan_.slots[id];
  if (slot.slot_class != plan::SlotClass::Part) return address(id);
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(scratch()) +
                                      slot.offset - slot.bytes * chunk);
}

} // namespace svod::packager
