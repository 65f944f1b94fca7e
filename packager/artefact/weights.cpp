// The weight section. A tensor that several weights are packed from is computed once, and
// the model's file is let go where it is not needed again.
#include "packager/artefact/weights.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "importer/model/mapped_file.h"

#include <map>

namespace svod::packager {

// The model's file was mapped to read weights; packed, they are not needed again soon.
static void release(const Blob& blob) {
  importer::release_pages(text_of(blob.bytes), blob.owner);
}

void produce_weights(const plan::Plan& plan, const ByteSink& sink) {
  // Slots that share an offset hold the same packed weight.
  std::map<uint64_t, const plan::Slot*> slots;
  for (const plan::Slot& slot : plan.slots) {
    if (slot.slot_class == plan::SlotClass::Weight) slots.emplace(slot.offset, &slot);
  }
  uint64_t done = 0;
  auto fill_to = [&](uint64_t offset) {
    SVOD_CHECK(offset >= done) << "weight slots overlap at " << offset;
    sink(std::vector<std::byte>(static_cast<size_t>(offset - done)));
    done = offset;
  };
  Tensor source;
  NodeId evaluated = kNoNode;
  for (const auto& [offset, slot] : slots) {
    const PackedWeight& weight = plan.packed[slot->source];
    if (weight.source != evaluated) source = evaluate_known(plan.graph, weight.source);
    evaluated = weight.source;
    std::vector<std::byte> bytes = pack_weight(weight, source);
    SVOD_CHECK(bytes.size() <= slot->bytes) << "packed weight larger than its slot";
    fill_to(offset);
    sink(bytes);
    done += bytes.size();
    const Node& node = plan.graph[weight.source];
    if (node.op == Op::Weight)
      release(plan.graph.blob(static_cast<uint32_t>(node.payload[0])));
  }
  fill_to(plan.weight_bytes);
  // Those that packed weights are computed from, by several of them.
  for (uint32_t id = 0; id < plan.graph.blob_count(); id++) release(plan.graph.blob(id));
}

} // namespace svod::packager
