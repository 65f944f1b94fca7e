#include "packager/report/memory.h"

#include "compiler/ir/dtype.h"

#include <map>

namespace svod::packager {

static const char* word_of(plan::StepKind kind) {
  switch (kind) {
  case plan::StepKind::CopyMemory:
    return "copy";
  case plan::StepKind::Loop:
    return "loop";
  case plan::StepKind::If:
    return "if";
  case plan::StepKind::Else:
    return "else";
  case plan::StepKind::End:
    return "end";
  case plan::StepKind::CopyDown:
    return "copy down";
  case plan::StepKind::CopyUp:
    return "copy up";
  default:
    return "launch";
  }
}

void write_nodes(JsonWriter& json, const std::vector<int32_t>& sources,
                 const plan::Plan& plan) {
  json.key("nodes").begin_list();
  for (int32_t source : sources) json.value(plan.graph.source_name(source));
  json.end_list();
}

void write_memory(JsonWriter& json, const plan::Plan& plan, const plan::MemoryUse& use) {
  json.key("memory").begin_object().key("moments").begin_list();
  for (const plan::Moment& moment : use.moments) {
    json.begin_object().pair("does", word_of(moment.step->kind));
    if (moment.launch) json.pair("launch", uint64_t{*moment.launch});
    json.pair("live", moment.live);
    write_nodes(json, moment.step->sources, plan);
    json.end_object();
  }
  json.end_list().key("slots").begin_list();
  for (const plan::LiveRange& range : use.ranges) {
    const plan::Slot& slot = plan.slots[range.slot];
    json.begin_object().pair("slot", uint64_t{range.slot});
    json.pair("offset", slot.offset).pair("bytes", slot.bytes);
    json.pair("first", uint64_t{range.first}).pair("last", uint64_t{range.last});
    write_nodes(json, range.sources, plan);
    json.end_object();
  }
  json.end_list().key("peak").begin_list();
  for (plan::SlotId slot : plan.peak) json.value(uint64_t{slot});
  json.end_list().end_object();
}

void write_weight_list(JsonWriter& json, const plan::Plan& plan,
                       const plan::MemoryUse& use) {
  std::map<plan::SlotId, const plan::Step*> readers; // the first of each
  for (const plan::Moment& moment : use.moments)
    for (plan::SlotId slot : moment.step->arguments) readers.emplace(slot, moment.step);
  json.key("weights").begin_list();
  for (plan::SlotId id = 0; id < plan.slots.size(); ++id) {
    const plan::Slot& slot = plan.slots[id];
    if (slot.slot_class != plan::SlotClass::Weight) continue;
    const PackedWeight& packed = plan.packed[slot.source];
    const std::vector<int32_t>& makers = plan.graph.sources(packed.source);
    const auto reader = readers.find(id);
    json.begin_object();
    write_nodes(json,
                makers.empty() && reader != readers.end() ? reader->second->sources
                                                          : makers,
                plan);
    json.pair("dtype", info(packed.dtype).text).key("shape").begin_list();
    for (int64_t extent : packed.extents) json.value(extent);
    json.end_list().pair("offset", slot.offset).pair("bytes", slot.bytes).end_object();
  }
  json.end_list();
}

} // namespace svod::packager
