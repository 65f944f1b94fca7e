// A group of weights is stored as what it is made from where that takes at least a tenth
// less, and else as it is packed. Each job is tried here, with the code that programs do
// it with: one that does not give the bits of the packed weight, or that a step has no
// numbers for, is stored as it is packed, too. So an expanded section has the bytes that
// --weights=embed stores.
#include "packager/artefact/expand_weights.h"

#include "compiler/support/check.h"
#include "compiler/support/digest.h"
#include "compiler/support/round_up.h"
#include "packager/artefact/weight_recipe.h"
#include "runtime_stub/checksum.h"
#include "runtime_stub/expansion.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace svod::packager {

namespace {

// Of tensors, and of what lies beside each other in a room.
constexpr uint64_t kAlign = SVOD_EXPANSION_ALIGN;

// Where rooms lie: one may take the place of another that no later step reads.
struct RoomPlan {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
};

RoomPlan plan_rooms(const Recipe& recipe) {
  struct Range {
    size_t first = SIZE_MAX, last = 0;
  };
  std::vector<Range> ranges(recipe.rooms.size());
  for (size_t i = 0; i < recipe.steps.size(); ++i)
    for (const Recipe::Operand* operand :
         {&recipe.steps[i].result, &recipe.steps[i].a, &recipe.steps[i].b}) {
      if (operand->place != SVOD_EXPANSION_ROOM || recipe.rooms.empty()) continue;
      Range& range = ranges[operand->number];
      range.first = std::min(range.first, i), range.last = i;
    }
  RoomPlan out;
  for (size_t i = 0; i < recipe.rooms.size(); ++i) {
    uint64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t k = 0; k < i; ++k) {
        const bool both =
            ranges[k].first <= ranges[i].last && ranges[i].first <= ranges[k].last;
        const uint64_t end = out.offsets[k] + recipe.rooms[k];
        if (!both || at >= end || out.offsets[k] >= at + recipe.rooms[i]) continue;
        at = round_up(end, kAlign);
        moved = true;
      }
    }
    out.offsets.push_back(at);
    out.bytes = std::max(out.bytes, at + recipe.rooms[i]);
  }
  return out;
}

template <class T> std::span<const std::byte> bytes_of(const std::vector<T>& all) {
  return std::as_bytes(std::span(all));
}

// Header and tables of what is stored.
struct Tables {
  SvodExpansionHeader header{};
  std::vector<SvodExpansionJob> jobs;
  std::vector<SvodExpansionStep> steps;
  std::vector<int64_t> numbers;

  // The places of a recipe's tensors and weights, and who reads the weights.
  void add(const Recipe& recipe, const std::vector<uint64_t>& tensors,
           const std::vector<uint64_t>& weights, uint64_t entries);
  std::vector<std::byte> finish(uint64_t weight_bytes);
};

void Tables::add(const Recipe& recipe, const std::vector<uint64_t>& tensors,
                 const std::vector<uint64_t>& weights, uint64_t entries) {
  const RoomPlan rooms = plan_rooms(recipe);
  header.room_bytes = std::max(header.room_bytes, rooms.bytes);
  jobs.push_back({static_cast<uint32_t>(steps.size()),
                  static_cast<uint32_t>(recipe.steps.size()), entries});
  for (const Recipe::Step& step : recipe.steps) {
    const auto operand = [&](const Recipe::Operand& of) {
      const auto& places = of.place == SVOD_EXPANSION_TENSORS ? tensors
                           : of.place == SVOD_EXPANSION_ROOM  ? rooms.offsets
                                                              : weights;
      const auto start = static_cast<uint64_t>(of.start * step.element_bytes);
      return SvodExpansionOperand{of.place, places.at(of.number) + start};
    };
    SvodExpansionStep out{};
    out.kind = step.kind;
    out.element_bytes = static_cast<uint32_t>(step.element_bytes);
    out.axes = static_cast<uint32_t>(step.axes);
    out.limits = static_cast<uint32_t>(step.limits);
    out.kept = static_cast<uint32_t>(step.kept);
    out.row = static_cast<uint32_t>(step.row);
    out.first_number = static_cast<uint32_t>(numbers.size());
    out.fill = step.fill;
    out.result = operand(step.result);
    out.a = operand(step.a);
    if (step.kind == SVOD_EXPANSION_SUM) out.b = operand(step.b);
    steps.push_back(out);
    numbers.insert(numbers.end(), step.numbers.begin(), step.numbers.end());
  }
}

// What stands in front of the tensors, which begin right behind it.
std::vector<std::byte> Tables::finish(uint64_t weight_bytes) {
  std::memcpy(header.magic, "SVODEXP", sizeof(header.magic));
  header.weight_bytes = weight_bytes;
  header.jobs = static_cast<uint32_t>(jobs.size());
  header.steps = static_cast<uint32_t>(steps.size());
  header.numbers = static_cast<uint32_t>(numbers.size());
  const size_t size = sizeof(header) + bytes_of(jobs).size() + bytes_of(steps).size() +
                      bytes_of(numbers).size();
  header.tensors = round_up(size, kAlign);
  std::vector<std::byte> out(static_cast<size_t>(header.tensors));
  size_t at = 0;
  for (const std::span<const std::byte> part :
       {std::as_bytes(std::span(&header, 1)), bytes_of(jobs), bytes_of(steps),
        bytes_of(numbers)}) {
    if (!part.empty()) std::memcpy(&out[at], part.data(), part.size());
    at += part.size();
  }
  constexpr size_t kSummed = offsetof(SvodExpansionHeader, weight_bytes);
  header.checksum = svod_checksum(&out[kSummed], size - kSummed);
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

// Whether a recipe gives the bits of the packed weights.
bool gives(const Recipe& recipe, const std::vector<PackedBytes>& packed) {
  std::vector<uint64_t> tensors, weights;
  uint64_t tensor_bytes = 0, weight_bytes = 0;
  for (const Tensor& tensor : recipe.tensors) {
    tensors.push_back(tensor_bytes);
    tensor_bytes += round_up(tensor.bytes.size(), kAlign);
  }
  for (const PackedBytes& weight : packed) {
    weights.push_back(weight_bytes);
    weight_bytes += round_up(weight.bytes().size(), kAlign);
  }
  Tables tables;
  tables.add(recipe, tensors, weights, 1);
  std::vector<std::byte> stored = tables.finish(weight_bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    stored.resize(static_cast<size_t>(tables.header.tensors + tensors[i]));
    stored.insert(stored.end(), recipe.tensors[i].bytes.begin(),
                  recipe.tensors[i].bytes.end());
  }
  std::vector<uint8_t> section(static_cast<size_t>(weight_bytes)),
      room(static_cast<size_t>(tables.header.room_bytes));
  if (svod_check_expansion(stored.data(), stored.size(), weight_bytes) != SVOD_OK ||
      svod_expand(stored.data(), stored.size(), 0, section.data(), room.data()) !=
          SVOD_OK)
    return false;
  for (size_t i = 0; i < packed.size(); ++i)
    if (std::memcmp(&section[static_cast<size_t>(weights[i])], packed[i].bytes().data(),
                    packed[i].bytes().size()) != 0)
      return false;
  return true;
}

bool is_worth(uint64_t stored, uint64_t packed) { return stored < packed - packed / 10; }

// What is stored, in order.
class Builder {
public:
  explicit Builder(const SharedWeights& shared) {
    for (size_t plan = 0; plan < shared.places.size(); ++plan)
      for (const auto& [own, place] : shared.places[plan])
        entries_[place.offset] |= uint64_t{1} << plan;
  }
  void add(Recipe recipe, const std::vector<uint64_t>& places) {
    std::vector<uint64_t> at;
    for (Tensor& tensor : recipe.tensors) at.push_back(place(std::move(tensor.bytes)));
    uint64_t entries = 0;
    for (uint64_t place : places) entries |= entries_.at(place);
    tables_.add(recipe, at, places, entries);
  }
  std::vector<std::vector<std::byte>> finish(uint64_t weight_bytes) {
    parts_.insert(parts_.begin(), tables_.finish(weight_bytes));
    return std::move(parts_);
  }

  uint64_t scratch_bytes() const { return tables_.header.room_bytes; }

private:
  // Equal tensors lie once.
  uint64_t place(std::vector<std::byte> tensor) {
    const auto [at, added] = known_.try_emplace(sha256(tensor), bytes_);
    if (!added) return at->second;
    tensor.resize(round_up(tensor.size(), kAlign));
    bytes_ += tensor.size();
    parts_.push_back(std::move(tensor));
    return at->second;
  }

  std::map<uint64_t, uint64_t> entries_; // that read what lies there, one bit each
  Tables tables_;
  std::vector<std::vector<std::byte>> parts_;
  uint64_t bytes_ = 0; // of tensors
  std::map<Digest, uint64_t> known_;
};

} // namespace

ExpandedWeights::ExpandedWeights(const Plans& plans, const SharedWeights& shared,
                                 const ByteSink& sink) {
  Builder builder(shared);
  std::vector<RecipeBook> books;
  for (const plan::Plan* plan : plans) books.emplace_back(plan->graph);
  const auto visit = [&](size_t number, const PackedGroup& group,
                         const std::vector<uint64_t>& places) {
    uint64_t bytes = 0;
    std::vector<const PackedWeight*> weights;
    for (const plan::Slot* slot : group.slots)
      weights.push_back(&plans[number]->packed[slot->source]);
    for (const PackedBytes& packed : group.packed) bytes += packed.bytes().size();
    if (is_worth(books[number].stored_bytes(group.source), bytes)) {
      std::optional<Recipe> recipe = books[number].recipe(weights);
      if (recipe && gives(*recipe, group.packed))
        return builder.add(std::move(*recipe), places);
    }
    for (size_t i = 0; i < places.size(); ++i)
      if (!group.packed[i].bytes().empty())
        builder.add(stored_as_packed(group.packed[i].copy()), {places[i]});
  };
  produce_weights(plans, shared, sink, visit);
  parts_ = builder.finish(shared.bytes);
  scratch_bytes_ = builder.scratch_bytes();
}

uint64_t ExpandedWeights::bytes() const {
  uint64_t out = 0;
  for (const std::vector<std::byte>& part : parts_) out += part.size();
  return out;
}

void ExpandedWeights::write(const ByteSink& sink) const {
  for (const std::vector<std::byte>& part : parts_) sink(part);
}

} // namespace svod::packager
