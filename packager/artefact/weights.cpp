// The weight section. The model's file is let go where it is not needed again.
#include "packager/artefact/weights.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/support/digest.h"
#include "compiler/support/round_up.h"
#include "importer/model/mapped_file.h"

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <thread>

namespace svod::packager {

// The model's file was mapped to read weights; packed, they are not needed again soon.
static void release(const Blob& blob) {
  importer::release_pages(text_of(blob.unnoted_bytes()), blob.owner);
}

PackedBytes::PackedBytes(const PackedWeight& weight, const PackSource& source)
    : bytes_(source.bytes) {
  if (is_packed_already(weight, source)) return;
  const auto size = static_cast<size_t>(weight.bytes());
  own_ = std::make_unique_for_overwrite<std::byte[]>(size);
  pack_weight(weight, source, own_.get());
  bytes_ = {own_.get(), size};
}

using Visit = std::function<void(const PackedGroup& group)>;

static std::vector<PackedGroup>
weight_groups(const plan::Plan& plan,
              const std::function<bool(uint64_t offset)>& wanted) {
  // Slots that share an offset hold the same packed weight.
  std::map<uint64_t, const plan::Slot*> slots;
  for (const plan::Slot& slot : plan.slots) {
    if (slot.slot_class == plan::SlotClass::Weight) slots.emplace(slot.offset, &slot);
  }
  std::vector<PackedGroup> out;
  NodeId last = kNoNode;
  for (const auto& [offset, slot] : slots) {
    if (!wanted(offset)) continue;
    const NodeId source = plan.packed[slot->source].source;
    if (out.empty() || source != last) out.push_back({source, {}, {}, {}});
    out.back().slots.push_back(slot);
    last = source;
  }
  return out;
}

// A tensor of the model, where a node is one.
static const Blob* blob_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op != Op::Weight) return nullptr;
  return &graph.blob(static_cast<uint32_t>(node.payload[0]));
}

static void pack_group(const plan::Plan& plan, PackedGroup& group) {
  const Blob* blob = blob_of(plan.graph, group.source);
  if (blob == nullptr) group.value = evaluate_known(plan.graph, group.source);
  const PackSource source{plan.graph[group.source].dtype,
                          blob ? blob->unnoted_bytes() : std::span(group.value.bytes)};
  for (const plan::Slot* slot : group.slots) {
    group.packed.emplace_back(plan.packed[slot->source], source);
    SVOD_CHECK(group.packed.back().bytes().size() <= slot->bytes)
        << "packed weight larger than its slot";
  }
  if (std::ranges::none_of(group.packed, &PackedBytes::is_source)) group.value = {};
}

// Packs the weights of a plan in the order of their offsets: those that `wanted` says. A
// tensor that a group is packed from is computed once. While one is visited, three times
// as many as there are cores are being packed, so that a large one leaves the other cores
// work, and no more: what is packed waits for its turn in memory. `packed` sees each
// group before that, on the thread that has packed it.
static void for_each_group(const plan::Plan& plan,
                           const std::function<bool(uint64_t offset)>& wanted,
                           const Visit& visit, const Visit& packed = {}) {
  std::vector<PackedGroup> groups = weight_groups(plan, wanted);
  const size_t ahead = 3 * std::max(1U, std::thread::hardware_concurrency());
  std::deque<std::future<void>> packing;
  size_t begun = 0;
  for (size_t i = 0; i < groups.size(); i++) {
    for (; begun < groups.size() && begun <= i + ahead; begun++)
      packing.push_back(std::async(std::launch::async, [&, begun] {
        pack_group(plan, groups[begun]);
        if (packed) packed(groups[begun]);
      }));
    packing.front().get();
    packing.pop_front();
    const PackedGroup group = std::move(groups[i]);
    visit(group);
    if (const Blob* blob = blob_of(plan.graph, group.source)) release(*blob);
  }
  // Those that packed weights are computed from, by several of them.
  for (uint32_t id = 0; id < plan.graph.blob_count(); id++) release(plan.graph.blob(id));
}

namespace {

// A section that is written front to back, with zeros between what is put there.
class Section {
public:
  explicit Section(const ByteSink& sink) : sink_(sink) {}
  void put(uint64_t offset, std::span<const std::byte> bytes) {
    fill_to(offset);
    sink_(bytes);
    done_ += bytes.size();
  }
  void fill_to(uint64_t offset) {
    SVOD_CHECK(offset >= done_) << "weight slots overlap at " << offset;
    sink_(std::vector<std::byte>(static_cast<size_t>(offset - done_)));
    done_ = offset;
  }

private:
  const ByteSink& sink_;
  uint64_t done_ = 0;
};

} // namespace

SharedWeights weights_of_one(const plan::Plan& plan) {
  SharedWeights out;
  out.bytes = plan.weight_bytes;
  auto& places = out.places.emplace_back();
  for (const plan::Slot& slot : plan.slots)
    if (slot.slot_class == plan::SlotClass::Weight)
      places[slot.offset] = {slot.offset, true};
  return out;
}

void produce_weights(const plan::Plan& plan, const ByteSink& sink) {
  produce_weights({&plan}, weights_of_one(plan), sink);
}

void produce_weights(const plan::Plan& plan, const PutBytes& put, const ByteSink& sink) {
  Section section(sink);
  for_each_group(
      plan, [](uint64_t) { return true; },
      [&](const PackedGroup& group) {
        for (size_t k = 0; k < group.slots.size(); k++)
          section.put(group.slots[k]->offset, group.packed[k].bytes());
      },
      [&](const PackedGroup& group) {
        for (size_t k = 0; k < group.slots.size(); k++)
          put(group.slots[k]->offset, group.packed[k].bytes());
      });
  section.fill_to(plan.weight_bytes);
}

SharedWeights share_weights(const Plans& plans) {
  SharedWeights out;
  out.bytes = plans.front()->weight_bytes;
  std::map<Digest, uint64_t> known; // offsets in the section by what lies there
  for (const plan::Plan* plan : plans) {
    const bool first = plan == plans.front();
    auto& places = out.places.emplace_back();
    const auto place = [&](const plan::Slot& slot, std::vector<std::byte> bytes) {
      bytes.resize(static_cast<size_t>(slot.bytes));
      const uint64_t end = first ? slot.offset : out.bytes;
      const auto [at, added] = known.try_emplace(sha256(bytes), end);
      places[slot.offset] = first ? SharedWeights::Place{slot.offset, true}
                                  : SharedWeights::Place{at->second, added};
      if (added && !first) out.bytes += round_up(slot.bytes, plan->align);
    };
    for_each_group(
        *plan, [](uint64_t) { return true; },
        [&](const PackedGroup& group) {
          for (size_t k = 0; k < group.slots.size(); k++)
            place(*group.slots[k], group.packed[k].copy());
        });
  }
  return out;
}

void produce_weights(const Plans& plans, const SharedWeights& shared,
                     const ByteSink& sink, const VisitGroup& visit) {
  Section section(sink);
  for (size_t i = 0; i < plans.size(); i++) {
    const auto& places = shared.places[i];
    for_each_group(
        *plans[i], [&](uint64_t offset) { return places.at(offset).added; },
        [&](const PackedGroup& group) {
          std::vector<uint64_t> at;
          for (size_t k = 0; k < group.slots.size(); k++) {
            at.push_back(places.at(group.slots[k]->offset).offset);
            section.put(at.back(), group.packed[k].bytes());
          }
          if (visit) visit(i, group, at);
        });
  }
  section.fill_to(shared.bytes);
}

} // namespace svod::packager
