// A tensor belongs to the input of its name or, when it has none that fits, of its
// number, as in the packed program.
#include "packager/verify/read_inputs.h"

#include "importer/model/read_tensor.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace svod::packager {

namespace {

namespace fs = std::filesystem;
using importer::ModelTensor;

// A string is its bytes in a row of the width that the input has, zeros behind them.
bool put_strings(const ModelTensor& from, Tensor& to) {
  const auto width = static_cast<size_t>(to.shape.back());
  if (from.strings.size() * width != to.bytes.size()) return false;
  for (size_t row = 0; row < from.strings.size(); ++row) {
    const std::string& text = from.strings[row];
    if (text.size() > width) return false;
    if (!text.empty())
      std::memcpy(to.bytes.data() + row * width, text.data(), text.size());
  }
  return true;
}

// `port`: an input or output of the graph.
template <class Port> bool put(const ModelTensor& from, const Port& port, Tensor& to) {
  if (from.onnx_type != port.seen.onnx_type) return false;
  if (!from.strings.empty()) return put_strings(from, to);
  if (from.bytes.size() != to.bytes.size()) return false;
  if (!to.bytes.empty()) std::memcpy(to.bytes.data(), from.bytes.data(), to.bytes.size());
  return true;
}

// Of an input of which a run decides sizes: its elements lie as in a tensor of the most.
bool put_open(const ModelTensor& from, int onnx_type, Tensor& to, Tensor& extents) {
  if (from.onnx_type != onnx_type || from.dims.size() != to.shape.size()) return false;
  for (size_t axis = 0; axis < from.dims.size(); ++axis)
    if (from.dims[axis] > to.shape[axis]) return false;
  const auto size = static_cast<size_t>(byte_size(to.dtype));
  const Shape strides = row_major_strides(to.shape), own = row_major_strides(from.dims);
  for (int64_t i = 0; i < element_count(from.dims); ++i) {
    size_t place = 0;
    for (size_t axis = 0; axis < own.size(); ++axis)
      place += static_cast<size_t>(i / own[axis] % from.dims[axis] * strides[axis]);
    std::memcpy(to.bytes.data() + place * size,
                from.bytes.data() + static_cast<size_t>(i) * size, size);
  }
  std::memcpy(extents.bytes.data(), from.dims.data(), extents.bytes.size());
  return true;
}

} // namespace

std::string first_set(const std::string& folder) {
  const fs::path first = fs::path(folder) / "test_data_set_0";
  std::error_code error;
  return fs::is_directory(first, error) ? first.string() : folder;
}

std::optional<std::vector<Tensor>> read_inputs(const std::string& folder,
                                               const Front& front,
                                               const importer::Limits& limits,
                                               std::string& error) {
  const std::vector<GraphInput>& inputs = front.graph.inputs();
  std::vector<Tensor> out;
  std::vector<bool> given;
  for (const GraphInput& input : inputs) {
    const Node& node = front.graph[input.node];
    const auto fixed = front.interface.fixed.find(input.name);
    given.push_back(fixed != front.interface.fixed.end());
    out.push_back({node.dtype, node.shape, {}});
    out.back().bytes.resize(
        static_cast<size_t>(element_count(node.shape) * byte_size(node.dtype)));
    if (given.back()) out.back().bytes = fixed->second;
  }
  for (size_t k = 0; k < front.interface.inputs.size(); ++k) {
    const importer::ModelPort& port = front.interface.inputs[k];
    if (!port.is_tensor()) {
      error = "input '" + escaped(port.name) + "' is no tensor; use --verify random";
      return std::nullopt;
    }
    const std::string path = folder + "/input_" + std::to_string(k) + ".pb";
    const std::optional<importer::MappedFile> file = importer::map_path(path);
    if (!file) continue;
    try {
      importer::ExternalData none("", limits);
      importer::TensorSource source{limits, none, file->owner};
      const ModelTensor tensor = importer::read_tensor(file->bytes, source);
      const auto named = std::ranges::find(inputs, tensor.name, &GraphInput::name);
      const auto number = named == inputs.end()
                              ? size_t{port.first}
                              : static_cast<size_t>(named - inputs.begin());
      given[number] = true;
      const auto open = front.interface.open_inputs.find(number);
      if (open != front.interface.open_inputs.end()) {
        given[open->second.extents] = true;
        if (put_open(tensor, inputs[number].seen.onnx_type, out[number],
                     out[open->second.extents]))
          continue;
      } else if (put(tensor, inputs[number], out[number])) {
        continue;
      }
      error =
          path + ": not the type or size of input '" + escaped(inputs[number].name) + "'";
    } catch (const importer::ReadFailure& failure) {
      error = path + ": " + failure.message;
    }
    return std::nullopt;
  }
  const auto missing = std::ranges::find(given, false);
  if (missing == given.end()) return out;
  error = folder + " has no file for input '" +
          escaped(inputs[static_cast<size_t>(missing - given.begin())].name) + "'";
  return std::nullopt;
}

std::optional<std::vector<Tensor>> read_outputs(const std::string& folder,
                                                const Front& front,
                                                const importer::Limits& limits,
                                                std::string& error) {
  std::vector<Tensor> out;
  for (const GraphOutput& output : front.graph.outputs()) {
    const std::string path = folder + "/output_" + std::to_string(out.size()) + ".pb";
    const Node& node = front.graph[output.node];
    Tensor& to = out.emplace_back(Tensor{node.dtype, node.shape, {}});
    to.bytes.resize(
        static_cast<size_t>(element_count(node.shape) * byte_size(node.dtype)));
    const std::optional<importer::MappedFile> file = importer::map_path(path);
    error =
        path + (file ? ": not the type or size of output '" + escaped(output.name) + "'"
                     : ": cannot be read");
    if (!file) return std::nullopt;
    try {
      importer::ExternalData none("", limits);
      importer::TensorSource source{limits, none, file->owner};
      if (!put(importer::read_tensor(file->bytes, source), output, to))
        return std::nullopt;
    } catch (const importer::ReadFailure& failure) {
      error = path + ": " + failure.message;
      return std::nullopt;
    }
  }
  error.clear();
  return out;
}

} // namespace svod::packager
