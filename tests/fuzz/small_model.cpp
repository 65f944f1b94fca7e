// Images are built once, by the packager's own builder, and lie in blocks of their size.
#include "tests/fuzz/small_model.h"

#include "packager/artefact/image.h"
#include "runtime_stub/checksum.h"
#include "runtime_stub/program/element.h"
#include "runtime_stub/replay.h"
#include "tests/fuzz/target.h"

#include <cstring>
#include <map>

namespace svod::fuzz {

namespace {

using namespace packager;

constexpr int kFloat = 1, kUint8 = 2, kInt64 = 7, kString = 8, kBool = 9, kHalf = 10,
              kComplex = 14, kNarrow = 17, kUint4 = 21;
constexpr uint64_t kStringBytes = 8;

ImageTensor tensor(const std::string& name, int type, std::vector<int64_t> dims) {
  ImageTensor out{name, type, std::move(dims)};
  const packed::Element* element = packed::find_element(static_cast<uint32_t>(type));
  out.bytes =
      type == kString ? out.elements() * kStringBytes : element->bytes(out.elements());
  return out;
}

ImageValue value(const std::string& name, uint32_t kind, uint32_t flags, uint32_t first,
                 uint32_t count, int type = kFloat) {
  ImageValue out;
  out.name = name, out.kind = kind, out.flags = flags;
  out.first = first, out.count = count, out.onnx_type = type;
  return out;
}

// One launch: the extents that a run decides, and all that is written.
void add_run(ImageContents& contents, uint32_t extents_in) {
  ImageEntry& entry = contents.entries.back();
  ImageStep launch;
  const auto slot = [&](SvodSlotClass kind, uint32_t io, uint64_t bytes) {
    launch.args.push_back(static_cast<uint32_t>(entry.slots.size()));
    entry.slots.push_back({static_cast<uint32_t>(kind), io, 0, bytes});
  };
  slot(SVOD_SLOT_INPUT, extents_in, entry.inputs[extents_in].bytes);
  for (uint32_t i = 0; i < entry.outputs.size(); ++i)
    slot(SVOD_SLOT_OUTPUT, i, entry.outputs[i].bytes);
  launch.sources = "node";
  entry.steps = {launch};
  contents.programs = {"k0"};
  contents.manifest = "{\"model\": {\"sha256\": \"\"}}";
}

ImageContents tensors() {
  ImageContents out;
  ImageEntry entry;
  entry.inputs = {tensor("x", kFloat, {2, 3}),    tensor("n", kInt64, {2}),
                  tensor("half", kHalf, {4}),     tensor("truth", kBool, {3}),
                  tensor("text", kString, {2}),   tensor("bits", kUint4, {5}),
                  tensor("narrow", kNarrow, {2}), tensor("c=d", kComplex, {2}),
                  tensor("open", kFloat, {4, 3}), tensor("one", kUint8, {}),
                  tensor("", kInt64, {2})};
  entry.inputs[9].fixed = std::string(1, '\x07');
  entry.inputs[8].shape_output = 11;
  entry.inputs[10].role = SVOD_ROLE_SHAPE, entry.inputs[10].shape_output = 1;
  entry.outputs = {tensor("y", kFloat, {2, 3}), tensor("words", kString, {2}),
                   tensor("some", kFloat, {4, 3}), tensor("z", kComplex, {2}),
                   tensor("", kInt64, {2})};
  entry.outputs[2].shape_output = 5;
  entry.outputs[4].role = SVOD_ROLE_SHAPE;
  out.entries = {entry};
  add_run(out, 10);
  return out;
}

ImageContents values() {
  ImageContents out;
  ImageEntry entry;
  entry.inputs = {tensor("x", kFloat, {2}),  tensor("s0", kFloat, {2}),
                  tensor("s1", kFloat, {3}), tensor("m", kFloat, {3}),
                  tensor("o", kInt64, {2}),  tensor("ms", kFloat, {2, 2})};
  entry.outputs = {tensor("y", kFloat, {2}),  tensor("z0", kFloat, {2}),
                   tensor("z1", kFloat, {1}), tensor("p", kFloat, {3}),
                   tensor("q", kInt64, {1}),  tensor("", kBool, {})};
  entry.outputs[5].role = SVOD_ROLE_PRESENCE;
  ImageValue map = value("m", SVOD_VALUE_MAP, SVOD_VALUE_ANY_KEYS, 3, 1);
  map.keys = {{1, ""}, {5, ""}, {-7, ""}};
  ImageValue maps = value("ms", SVOD_VALUE_MAPS, SVOD_VALUE_TEXT_KEYS, 5, 1);
  maps.keys = {{0, "a"}, {0, "b b"}};
  entry.input_values = {value("x", SVOD_VALUE_TENSOR, 0, 0, 1),
                        value("s", SVOD_VALUE_SEQUENCE, 0, 1, 2),
                        map,
                        value("o", SVOD_VALUE_TENSOR, SVOD_VALUE_OPTIONAL, 4, 1, kInt64),
                        value("gone", SVOD_VALUE_TENSOR,
                              SVOD_VALUE_OPTIONAL | SVOD_VALUE_ABSENT, 4, 0, kInt64),
                        maps};
  ImageValue told = value("q", SVOD_VALUE_TENSOR, SVOD_VALUE_OPTIONAL, 4, 1, kInt64);
  told.presence = 6;
  ImageValue named = value("p", SVOD_VALUE_MAP, 0, 3, 1);
  named.keys = map.keys;
  entry.output_values = {value("y", SVOD_VALUE_TENSOR, 0, 0, 1),
                         value("z", SVOD_VALUE_SEQUENCE, 0, 1, 2), named, told};
  out.entries = {entry};
  add_run(out, 4);
  return out;
}

ImageContents records() {
  ImageContents out;
  ImageEntry entry;
  entry.inputs = {tensor("x", kFloat, {2, 3}), tensor("n", kInt64, {2})};
  entry.outputs = {tensor("y", kFloat, {5}), tensor("z", kUint4, {3})};
  out.entries = {entry};
  add_run(out, 1);
  return out;
}

// Its weights are in a file.
ImageContents weights() {
  ImageContents out = records();
  out.weight_bytes = kFileWeights.size();
  out.weight_checksum = svod_checksum(kFileWeights.data(), kFileWeights.size());
  ImageEntry& entry = out.entries[0];
  entry.steps[0].args.push_back(static_cast<uint32_t>(entry.slots.size()));
  entry.slots.push_back({SVOD_SLOT_WEIGHT, 0, 0, out.weight_bytes});
  return out;
}

struct Built {
  ImageContents contents;
  std::vector<std::byte> image;
};

const Built& built(ModelForm form) {
  static std::map<ModelForm, Built> all;
  Built& out = all[form];
  if (out.image.empty()) {
    out.contents = form == ModelForm::Tensors   ? tensors()
                   : form == ModelForm::Values  ? values()
                   : form == ModelForm::Weights ? weights()
                                                : records();
    out.image = build_image(out.contents);
  }
  return out;
}

const Built* chosen = nullptr;

// Output i is filled with bytes that tell where an element is read twice; extents follow
// the input's, within their bounds, and an index of 13 is out of range.
int32_t launch(uint32_t, uint32_t, void* const* buffers, void*, uint32_t) {
  const ImageEntry& entry = chosen->contents.entries[0];
  // Behind the outputs are the weights, whatever they are.
  static volatile uint8_t sum;
  for (uint64_t k = 0; k < chosen->contents.weight_bytes; ++k)
    sum = sum ^ static_cast<const uint8_t*>(buffers[entry.outputs.size() + 1])[k];
  int64_t first = 0;
  std::memcpy(&first, buffers[0], sizeof(first));
  if (first == 13) return SVOD_INDEX;
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const ImageTensor& output = entry.outputs[i];
    auto* to = static_cast<uint8_t*>(buffers[i + 1]);
    for (uint64_t k = 0; k < output.bytes; ++k) to[k] = static_cast<uint8_t>(k % 5 + 60);
    if (output.role == SVOD_ROLE_SHAPE) {
      const int64_t extents[] = {first & 3, 3};
      std::memcpy(to, extents, sizeof(extents));
    }
    if (output.role == SVOD_ROLE_PRESENCE) *to = first & 1;
  }
  return SVOD_OK;
}

} // namespace

SvodWeightsEnd end_of_weights() {
  return weights_end(built(ModelForm::Weights).contents);
}

void choose_model(ModelForm form) { chosen = &built(form); }

} // namespace svod::fuzz

void svod_get_model(SvodModel* model) {
  using namespace svod::fuzz;
  static const SvodLevel kLevel{"base", 0};
  const std::vector<std::byte>& image = chosen->image;
  *model = {image.data(), image.size(), nullptr, 0, launch, &kLevel, 1};
}
