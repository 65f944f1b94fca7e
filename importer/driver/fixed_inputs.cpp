// The import is tried without any value first. A rule that gives up because it does not
// know a value leaves the value's node behind; where only small inputs of the model
// decide it, these are fixed to what the user or the data set gives, and the model is
// imported again. Each round fixes at least one more input, so it ends.
#include "importer/driver/fixed_inputs.h"

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "importer/driver/graph_import.h"

#include <algorithm>
#include <cstring>

namespace svod::importer {

namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    words.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

const ModelValue* find_input(const ModelGraph& graph, const std::string& name) {
  for (const ModelTensor& tensor : graph.initializers)
    if (tensor.name == name) return nullptr;
  for (const ModelValue& input : graph.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

// A list of values also says how long the input is that holds it.
bool take_lengths(const ModelGraph& graph, ImportOptions& options, Diags& diags) {
  bool good = true;
  for (const auto& [name, text] : options.values) {
    const ModelValue* input = find_input(graph, name);
    if (!input) {
      diags.error(Exit::Usage, "--value: the model has no input " + quoted(name));
      good = false;
    } else if (input->dims && input->dims->size() == 1 &&
               !options.shapes.contains(name)) {
      options.data_shapes[name] = {static_cast<int64_t>(split(text).size())};
    }
  }
  return good;
}

void note_fixed(const std::string& name, const std::string& value, Diags& diags) {
  diags.note("the value of input " + quoted(name) + " decides a shape; packed for " +
             escaped(name) + " = " + value);
}

} // namespace

std::optional<std::vector<std::byte>>
value_from_text(const std::string& text, DType dtype, int64_t count, std::string& error) {
  const std::vector<std::string_view> words = split(text);
  const auto size = static_cast<size_t>(byte_size(dtype));
  if (static_cast<int64_t>(words.size()) != count || count > kMostFixedElements) {
    error = "it has " + std::to_string(count) + " elements, given are " +
            std::to_string(words.size());
    return std::nullopt;
  }
  std::vector<std::byte> bytes(words.size() * size);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (dtype == DType::Bool && word == "true") word = "1";
    if (dtype == DType::Bool && word == "false") word = "0";
    const std::optional<uint64_t> bits = scalar_from_text(dtype, word);
    if (!bits) {
      error = quoted(word) + " is no " + std::string(info(dtype).text);
      return std::nullopt;
    }
    std::memcpy(bytes.data() + i * size, &*bits, size);
  }
  return bytes;
}

std::string value_text(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(byte_size(dtype));
  std::string text = "[";
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, size);
    text += (at ? ", " : "") + scalar_text(dtype, bits);
  }
  return text + "]";
}

std::string value_option(const std::string& name, int64_t count) {
  std::string text = "--value " + escaped(name) + "=";
  for (int64_t i = 0; i < count; ++i) text += i ? ",N" : "N";
  return text;
}

// The inputs that decide what rules missed, all rules together.
std::set<std::string> GraphImport::missed_inputs() const {
  std::set<std::string> names;
  for (NodeId id : missed_) names.merge(deciding_inputs(frame_.graph, id));
  return names;
}

void GraphImport::hint_values() {
  for (const GraphInput& input : frame_.graph.inputs())
    if (missed_inputs().contains(input.name))
      diags_.note(
          "with a value of input " + quoted(input.name) + " it could be packed; use " +
          value_option(input.name, element_count(frame_.graph[input.node].shape)));
}

// The value that is given for an input that is to be fixed.
std::optional<std::vector<std::byte>>
GraphImport::fixed_value(const std::string& name, DType dtype, const Shape& shape) {
  std::string error = "the data set has another type or shape";
  std::optional<std::vector<std::byte>> bytes;
  const auto text = options_.values.find(name);
  const auto tensor = options_.data_values.find(name);
  if (is_packed(dtype))
    error = "elements of less than a byte decide no shape";
  else if (text != options_.values.end())
    bytes = value_from_text(text->second, dtype, element_count(shape), error);
  else if (tensor != options_.data_values.end() && tensor->second.dims == shape &&
           tensor->second.onnx_type == info(dtype).onnx)
    bytes.emplace(tensor->second.bytes.begin(), tensor->second.bytes.end());
  if (!bytes)
    diags_.error(Exit::Usage, "the value for input " + quoted(name) + ": " + error);
  return bytes;
}

std::optional<Graph> import_model(const Model& model, const ImportOptions& given,
                                  Diags& diags, ModelInterface* interface) {
  ImportOptions options = given;
  if (!take_lengths(model.graph, options, diags)) return std::nullopt;
  std::set<std::string> fix;
  for (const auto& [name, text] : options.values) fix.insert(name);
  const Diags before = diags;
  for (;;) {
    GraphImport import(model, options, fix, diags);
    std::optional<Graph> graph = import.run();
    if (graph) {
      for (const GraphInput& input : graph->inputs())
        if (const auto at = import.interface().fixed.find(input.name);
            at != import.interface().fixed.end())
          note_fixed(input.name, value_text((*graph)[input.node].dtype, at->second),
                     diags);
      if (interface) *interface = import.interface();
      return graph;
    }
    bool more = false;
    for (const std::string& name : import.missed_inputs())
      if (options.data_values.contains(name)) more |= fix.insert(name).second;
    if (!more) {
      import.hint_values();
      return std::nullopt;
    }
    diags = before;
  }
}

} // namespace svod::importer
