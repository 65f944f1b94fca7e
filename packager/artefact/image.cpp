// Lays the tables of an image one after the other. A table is appended as it stands and
// its place is noted in the header; strings go into one text table at the end, equal ones
// once.
#include "packager/artefact/image.h"

#include "compiler/support/check.h"
#include "compiler/support/round_up.h"
#include "runtime_stub/checksum.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

namespace svod::packager {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 31; // offsets are 32 bits

class ImageBuilder {
public:
  explicit ImageBuilder(const ImageContents& contents) : contents_(contents) {}
  std::vector<std::byte> build();

private:
  void add_entry(const ImageEntry& entry);
  void add_tensor(const ImageTensor& tensor);
  void add_value(const ImageValue& value);
  void add_step(const ImageStep& step);
  SvodText intern(const std::string& text);
  template <class T> SvodTable append(const std::vector<T>& table);
  void place_texts();

  const ImageContents& contents_;
  std::vector<SvodEntry> entries_;
  std::vector<SvodTensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<SvodValue> values_;
  std::vector<SvodKey> keys_;
  std::vector<SvodSlot> slots_;
  std::vector<SvodSlice> slices_;
  std::vector<SvodRegion> regions_;
  std::vector<SvodState> states_;
  std::vector<SvodStep> steps_;
  std::vector<uint32_t> args_;
  std::vector<SvodProgram> programs_;
  std::string text_;
  std::map<std::string, SvodText> interned_; // offsets count from the text table's start
  uint32_t max_buffers_ = 0;
  std::vector<std::byte> bytes_;
};

uint32_t count_of(size_t size) {
  SVOD_CHECK(size < kMostBytes) << "an image table has " << size << " elements";
  return static_cast<uint32_t>(size);
}

SvodText ImageBuilder::intern(const std::string& text) {
  auto [found, inserted] = interned_.try_emplace(text);
  if (inserted) {
    found->second = {count_of(text_.size()), count_of(text.size())};
    text_ += text;
  }
  return found->second;
}

void ImageBuilder::add_tensor(const ImageTensor& tensor) {
  SvodTensor out{};
  out.name = intern(tensor.name);
  out.dtype = static_cast<uint32_t>(tensor.onnx_type);
  out.rank = count_of(tensor.dims.size());
  SVOD_CHECK(out.rank <= SVOD_MAX_RANK) << "tensor of rank " << out.rank;
  out.first_dim = count_of(dims_.size());
  out.alignment = tensor.alignment;
  out.elements = tensor.elements();
  out.bytes = tensor.bytes;
  if (!tensor.fixed.empty()) out.fixed = intern(tensor.fixed);
  out.shape_output = tensor.shape_output;
  out.counter = tensor.counter;
  out.counted_axes = tensor.counted_axes;
  out.role = tensor.role;
  tensors_.push_back(out);
  dims_.insert(dims_.end(), tensor.dims.begin(), tensor.dims.end());
}

void ImageBuilder::add_value(const ImageValue& value) {
  SvodValue out{};
  out.name = intern(value.name);
  out.kind = value.kind;
  out.flags = value.flags;
  out.first = value.first;
  out.count = value.count;
  out.first_key = count_of(keys_.size());
  out.key_count = count_of(value.keys.size());
  out.dtype = static_cast<uint32_t>(value.onnx_type);
  out.presence = value.presence;
  std::vector<uint32_t> order(value.keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t place) {
    return std::tie(value.keys[place].number, value.keys[place].text);
  });
  for (uint32_t place : order) {
    const ImageKey& key = value.keys[place];
    keys_.push_back({key.number, intern(key.text), place, 0});
  }
  values_.push_back(out);
}

void ImageBuilder::add_step(const ImageStep& step) {
  SvodStep out{};
  out.kind = step.kind;
  out.program = step.program;
  out.first_arg = count_of(args_.size());
  out.arg_count = count_of(step.args.size());
  out.chunks = step.chunks;
  out.followers = step.followers;
  out.flops = step.flops;
  out.bytes = step.bytes;
  out.sources = intern(step.sources);
  if (step.kind == SVOD_STEP_LOOP || step.kind == SVOD_STEP_IF) {
    out.program = count_of(regions_.size());
    regions_.push_back(step.region);
  }
  args_.insert(args_.end(), step.args.begin(), step.args.end());
  max_buffers_ = std::max(max_buffers_, out.arg_count);
  steps_.push_back(out);
}

void ImageBuilder::add_entry(const ImageEntry& entry) {
  SvodEntry out{};
  std::memcpy(out.digest, entry.digest.bytes.data(), sizeof(out.digest));
  out.first_input = count_of(tensors_.size());
  out.input_count = count_of(entry.inputs.size());
  for (const ImageTensor& tensor : entry.inputs) add_tensor(tensor);
  out.first_output = count_of(tensors_.size());
  out.output_count = count_of(entry.outputs.size());
  for (const ImageTensor& tensor : entry.outputs) add_tensor(tensor);
  out.first_input_value = count_of(values_.size());
  out.input_values = count_of(entry.input_values.size());
  for (const ImageValue& value : entry.input_values) add_value(value);
  out.first_output_value = count_of(values_.size());
  out.output_values = count_of(entry.output_values.size());
  for (const ImageValue& value : entry.output_values) add_value(value);
  out.first_slot = count_of(slots_.size());
  out.slot_count = count_of(entry.slots.size());
  for (SvodSlot slot : entry.slots) {
    if (slot.slot_class == SVOD_SLOT_SLICE) slot.io += count_of(slices_.size());
    slots_.push_back(slot);
  }
  slices_.insert(slices_.end(), entry.slices.begin(), entry.slices.end());
  out.first_state = count_of(states_.size());
  out.state_count = count_of(entry.states.size());
  states_.insert(states_.end(), entry.states.begin(), entry.states.end());
  out.first_step = count_of(steps_.size());
  out.step_count = count_of(entry.steps.size());
  for (const ImageStep& step : entry.steps) add_step(step);
  out.arena_bytes = entry.arena_bytes;
  out.scratch_bytes = round_up(entry.scratch_bytes, SVOD_ALIGN);
  out.arena_lower_bound = entry.arena_lower_bound;
  entries_.push_back(out);
}

template <class T> SvodTable ImageBuilder::append(const std::vector<T>& table) {
  SvodTable place{count_of(bytes_.size()), count_of(table.size())};
  const auto* data = reinterpret_cast<const std::byte*>(table.data());
  bytes_.insert(bytes_.end(), data, data + table.size() * sizeof(T));
  bytes_.resize(round_up(bytes_.size(), 8));
  return place;
}

// Texts were counted from the start of their table, which follows the header.
void ImageBuilder::place_texts() {
  constexpr uint32_t kStart = sizeof(SvodHeader);
  for (SvodTensor& tensor : tensors_) {
    tensor.name.offset += kStart;
    if (tensor.fixed.size > 0) tensor.fixed.offset += kStart;
  }
  for (SvodValue& value : values_) value.name.offset += kStart;
  for (SvodKey& key : keys_) key.text.offset += kStart;
  for (SvodStep& step : steps_) step.sources.offset += kStart;
  for (SvodProgram& program : programs_) program.name.offset += kStart;
}

std::vector<std::byte> ImageBuilder::build() {
  for (const std::string& name : contents_.programs) programs_.push_back({intern(name)});
  for (const ImageEntry& entry : contents_.entries) add_entry(entry);
  place_texts();
  SvodHeader header{};
  std::memcpy(header.magic, "SVODIMG", 8);
  header.version = SVOD_FORMAT_VERSION;
  header.weight_bytes = contents_.weight_bytes;
  header.weight_checksum = contents_.weight_checksum;
  std::ranges::copy(contents_.model.bytes, header.model_sha256);
  bytes_.resize(sizeof(header));
  SvodTable text = append(std::vector<char>(text_.begin(), text_.end()));
  header.text = {text.offset, text.count};
  header.entries = append(entries_);
  header.tensors = append(tensors_);
  header.dims = append(dims_);
  header.slots = append(slots_);
  header.steps = append(steps_);
  header.args = append(args_);
  header.programs = append(programs_);
  header.values = append(values_);
  header.keys = append(keys_);
  header.slices = append(slices_);
  header.regions = append(regions_);
  header.states = append(states_);
  std::vector<char> manifest(contents_.manifest.begin(), contents_.manifest.end());
  manifest.push_back(0);
  SvodTable place = append(manifest);
  header.manifest = {place.offset, place.count - 1};
  header.max_buffers = max_buffers_;
  header.threads = contents_.threads;
  header.image_bytes = count_of(bytes_.size());
  std::memcpy(bytes_.data(), &header, sizeof(header));
  header.image_checksum = svod_checksum(bytes_.data(), bytes_.size());
  std::memcpy(bytes_.data(), &header, sizeof(header));
  return std::move(bytes_);
}

} // namespace

uint64_t ImageTensor::elements() const {
  uint64_t count = 1;
  for (int64_t dim : dims) count *= static_cast<uint64_t>(dim);
  return count;
}

std::vector<std::byte> build_image(const ImageContents& contents) {
  return ImageBuilder(contents).build();
}

SvodWeightsEnd weights_end(const ImageContents& contents) {
  SvodWeightsEnd end{};
  std::memcpy(end.magic, "SVODWTS", 8);
  end.weight_bytes = contents.weight_bytes;
  end.weight_checksum = contents.weight_checksum;
  std::ranges::copy(contents.model.bytes, end.model_sha256);
  return end;
}

// Slots may share a place.
uint64_t weight_bytes(const ImageEntry& entry) {
  std::map<uint64_t, uint64_t> places;
  for (const SvodSlot& slot : entry.slots)
    if (slot.slot_class == SVOD_SLOT_WEIGHT) places[slot.offset] = slot.bytes;
  uint64_t out = 0;
  for (const auto& [offset, bytes] : places) out += bytes;
  return out;
}

ArenaBytes arena_bytes(const ImageContents& contents, const ImageEntry& entry,
                       uint32_t threads, int pointer_bytes) {
  if (contents.straight)
    return {entry.arena_bytes, entry.scratch_bytes, 0, entry.state_bytes};
  size_t buffers = 0;
  for (const ImageEntry& each : contents.entries) {
    for (const ImageStep& step : each.steps)
      buffers = std::max(buffers, step.args.size());
  }
  const uint64_t addresses = buffers * static_cast<uint64_t>(pointer_bytes);
  uint64_t states = 0;
  if (!entry.states.empty()) {
    const uint64_t tensors = entry.inputs.size() + entry.outputs.size();
    states = svod_states_head(entry.states.size(), tensors,
                              static_cast<uint64_t>(pointer_bytes)) +
             round_up(entry.state_bytes, SVOD_ALIGN);
  }
  return {round_up(entry.arena_bytes, SVOD_ALIGN),
          round_up(entry.scratch_bytes, SVOD_ALIGN) * threads,
          SVOD_ARENA_NOTES + round_up(addresses, SVOD_ALIGN) * threads, states};
}

} // namespace svod::packager
