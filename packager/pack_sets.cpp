// Several sets of shapes in one package. Each set but the first is a pack of its own as
// far as its plan; then the plans are merged, and what follows sees one set of kernels,
// one section of weights and an image with several entries.
#include "packager/packing.h"

#include "compiler/rewrite/integer_contractions.h"

#include <algorithm>

namespace svod::packager {

std::unique_ptr<Packing> Packing::set_of(size_t number) const {
  Options one = options_;
  one.import.shapes = options_.sets[number].shapes;
  one.import.sizes = options_.sets[number].sizes;
  one.sets.clear();
  auto set = std::make_unique<Packing>(one, console_);
  set->is_set_ = true;
  set->remote_ = remote_;
  return set;
}

// States that grow lie alike in all sets, with room for the rows that a run of the
// largest adds. It is the last.
Exit Packing::read_largest() {
  if (options_.sets.empty() || options_.import.states.empty()) return Exit::Done;
  largest_ = set_of(options_.sets.size() - 1);
  if (Exit status = largest_->read(); status != Exit::Done) return status;
  options_.import.added_rows = largest_->front_->interface.added_rows;
  return Exit::Done;
}

Exit Packing::read_sets() {
  open_remote();
  for (size_t i = 1; i < options_.sets.size(); i++) {
    const bool is_read = largest_ && i + 1 == options_.sets.size();
    sets_.push_back(is_read ? std::move(largest_) : set_of(i));
    sets_.back()->remote_ = remote_;
    if (is_read) continue;
    if (Exit status = sets_.back()->read(); status != Exit::Done) return status;
  }
  return Exit::Done;
}

// A level that one entry has kernels for has kernels of all.
bool Packing::multiplies_bytes() const {
  return rewrite::multiplies_bytes(front_->graph) ||
         std::ranges::any_of(sets_,
                             [](const auto& set) { return set->multiplies_bytes(); });
}

Plans Packing::plans() const {
  Plans out{&kernels_->plan};
  for (const auto& set : sets_) out.push_back(&set->kernels_->plan);
  return out;
}

// Entries that read a weight in forms of their own would have a program hold each of
// them, though a run reads one. Where that takes more than a tenth beyond the largest
// entry's weights, and nobody has said where they are to lie, a start makes those of its
// entry instead.
WeightPlace Packing::weight_place() const {
  // A run goes from entry to entry as its states grow.
  const bool may_choose = entries_ && options_.import.states.empty() &&
                          !options_.weights_given && !options_.device &&
                          options_.emit == Output::Executable && !files_.empty();
  if (!may_choose) return options_.weights;
  uint64_t most = 0;
  for (const plan::Plan* plan : plans()) most = std::max(most, plan->weight_bytes);
  return entries_->weights.bytes > most + most / 10 ? WeightPlace::Expand
                                                    : WeightPlace::Embed;
}

Exit Packing::merge_sets() {
  std::vector<const ImageEntry*> entries{&contents_.entries.front()};
  std::vector<EntryPart> parts;
  DigestWriter key;
  key.digest(key_);
  contents_.entries.front().name = options_.sets.front().name;
  for (size_t i = 0; i < sets_.size(); i++) {
    Packing& set = *sets_[i];
    set.options_.target = options_.target;
    if (Exit status = set.compile_set(); status != Exit::Done) return status;
    for (const auto& [stage, ms] : set.times_) note_time(stage, ms);
    set.times_.clear();
    set.contents_.entries.front().name = options_.sets[i + 1].name;
    entries.push_back(&set.contents_.entries.front());
    parts.push_back({&*set.kernels_, &set.contents_});
    key.digest(set.key_);
  }
  for (const ImageEntry* entry : entries) key.text(entry->name);
  if (const std::string fault = entries_fault(entries); !fault.empty()) {
    console_.error("several sets of shapes: " + fault);
    return Exit::Unsupported;
  }
  entries_ = merge_entries(*kernels_, contents_, parts);
  key_ = key.finish();
  return Exit::Done;
}

} // namespace svod::packager
