// A program is what its texts are: two plans may have come to one kernel by different
// ways, and what is compiled is the text. So nothing is compared but the sources of all
// levels and how they are compiled.
#include "packager/artefact/merge_entries.h"

#include "compiler/support/check.h"
#include "compiler/support/digest.h"

#include <algorithm>

namespace svod::packager {

namespace {

// By program. Direct kernels, which firmware calls by name, are never merged here.
std::vector<Digest> program_digests(const codegen::Kernels& kernels) {
  std::vector<DigestWriter> writers(kernels.plan.programs.size());
  for (const codegen::KernelSource& source : kernels.sources) {
    SVOD_CHECK(!source.direct) << "a kernel of several entries is called by name";
    DigestWriter& out = writers[source.program];
    out.text(source.level);
    out.number(source.serves_all);
    out.number(source.flags.size());
    for (const std::string& flag : source.flags) out.text(flag);
    out.text(source.text);
  }
  std::vector<Digest> out;
  for (DigestWriter& writer : writers) out.push_back(writer.finish());
  return out;
}

// New programs follow the known ones, with their sources.
std::vector<uint32_t> add_programs(codegen::Kernels& to, const codegen::Kernels& from,
                                   std::map<Digest, uint32_t>& known) {
  const std::vector<Digest> digests = program_digests(from);
  std::vector<uint32_t> numbers;
  std::vector<bool> added;
  for (size_t i = 0; i < digests.size(); i++) {
    const auto number = static_cast<uint32_t>(to.plan.programs.size());
    const auto [at, is_new] = known.try_emplace(digests[i], number);
    if (is_new) to.plan.programs.push_back(from.plan.programs[i]);
    numbers.push_back(at->second);
    added.push_back(is_new);
  }
  for (codegen::KernelSource source : from.sources) {
    if (!added[source.program]) continue;
    source.program = numbers[source.program];
    source.symbol = codegen::program_symbol(source.program, source.level);
    to.sources.push_back(std::move(source));
  }
  return numbers;
}

ImageEntry renumbered(ImageEntry entry, const std::vector<uint32_t>& programs,
                      const std::map<uint64_t, SharedWeights::Place>& weights) {
  for (SvodSlot& slot : entry.slots)
    if (slot.slot_class == SVOD_SLOT_WEIGHT) slot.offset = weights.at(slot.offset).offset;
  for (ImageStep& step : entry.steps)
    if (step.kind == SVOD_STEP_LAUNCH) step.program = programs[step.program];
  return entry;
}

bool same_tensors(const std::vector<ImageTensor>& a, const std::vector<ImageTensor>& b) {
  return std::ranges::equal(a, b, [](const ImageTensor& x, const ImageTensor& y) {
    return x.name == y.name && x.onnx_type == y.onnx_type &&
           x.dims.size() == y.dims.size();
  });
}

bool same_dims(const std::vector<ImageTensor>& a, const std::vector<ImageTensor>& b) {
  return std::ranges::equal(a, b, {}, &ImageTensor::dims, &ImageTensor::dims);
}

// States that grow have room for the most rows of all entries.
bool same_rows(const ImageEntry& a, const ImageEntry& b) {
  return std::ranges::equal(a.states, b.states, {}, &SvodState::most, &SvodState::most);
}

// Entries share the memory of what stays from run to run.
bool same_states(const ImageEntry& a, const ImageEntry& b) {
  return std::ranges::equal(
      a.states, b.states, [](const SvodState& x, const SvodState& y) {
        return x.input == y.input && x.output == y.output && x.kind == y.kind &&
               x.bytes == y.bytes && x.offset == y.offset && x.counter == y.counter;
      });
}

} // namespace

std::string entries_fault(const std::vector<const ImageEntry*>& entries) {
  const ImageEntry& first = *entries.front();
  for (size_t i = 0; i < entries.size(); i++) {
    const ImageEntry& entry = *entries[i];
    if (!entry.input_values.empty())
      return "a model with sequences, optionals or maps has one set of shapes";
    if (!same_tensors(first.inputs, entry.inputs) ||
        !same_tensors(first.outputs, entry.outputs))
      return "entry " + entry.name + " has other inputs or outputs than entry " +
             first.name + ", not other shapes of the same";
    if (!same_states(first, entry))
      return "entries " + first.name + " and " + entry.name +
             " keep their states in other ways, and cannot share their memory; leave out "
             "/STEP of --dim, or give several entries to sizes that no state has";
    for (size_t k = 0; k < i; k++)
      if (same_dims(entries[k]->inputs, entry.inputs) && same_rows(*entries[k], entry))
        return "entries " + entries[k]->name + " and " + entry.name +
               " have inputs of the same shapes";
  }
  return "";
}

MergedEntries merge_entries(codegen::Kernels& kernels, ImageContents& contents,
                            const std::vector<EntryPart>& parts) {
  MergedEntries out;
  Plans plans{&kernels.plan};
  for (const EntryPart& part : parts) plans.push_back(&part.kernels->plan);
  out.weights = share_weights(plans);
  contents.weight_bytes = out.weights.bytes;
  std::map<Digest, uint32_t> known;
  const std::vector<Digest> own = program_digests(kernels);
  for (size_t i = 0; i < own.size(); i++)
    known.try_emplace(own[i], static_cast<uint32_t>(i));
  for (size_t i = 0; i < parts.size(); i++) {
    out.programs.push_back(add_programs(kernels, *parts[i].kernels, known));
    contents.entries.push_back(renumbered(parts[i].contents->entries.front(),
                                          out.programs.back(),
                                          out.weights.places[i + 1]));
  }
  for (size_t i = contents.programs.size(); i < kernels.plan.programs.size(); i++)
    contents.programs.push_back("k" + std::to_string(i));
  return out;
}

} // namespace svod::packager
