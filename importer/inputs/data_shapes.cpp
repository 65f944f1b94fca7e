// Two fields of TensorProto are read, dims (1) and name (8); elements are left alone
// where there are many.
#include "importer/inputs/data_shapes.h"

#include "importer/formula/deciding_inputs.h"
#include "importer/inputs/data_ports.h"
#include "importer/model/mapped_file.h"
#include "importer/model/read_tensor.h"
#include "importer/model/wire.h"

#include <algorithm>
#include <set>

namespace svod::importer {

namespace {

// Initializers may be listed among the inputs; data sets have files for the others only.
std::vector<const ModelValue*> inputs_of(const Model& model) {
  std::set<std::string> known;
  for (const ModelTensor& tensor : model.graph.initializers) known.insert(tensor.name);
  std::vector<const ModelValue*> inputs;
  for (const ModelValue& input : model.graph.inputs) {
    if (!known.contains(input.name)) inputs.push_back(&input);
  }
  return inputs;
}

} // namespace

std::optional<DataSet> read_data_set(const std::string& folder, const Model& model,
                                     const Limits& limits, Diags& diags) {
  std::vector<const ModelValue*> inputs = inputs_of(model);
  DataSet set;
  for (size_t i = 0; i < inputs.size(); i++) {
    std::string file = "input_" + std::to_string(i) + ".pb";
    std::optional<MappedFile> mapped = map_path(folder + "/" + file);
    if (!mapped && i > 0) break; // optional inputs may be left out
    if (!mapped) {
      diags.error(Exit::File, "--shape-from: cannot read " + folder + "/" + file);
      return std::nullopt;
    }
    try {
      if (inputs[i]->kind != ModelValue::Kind::Tensor) {
        read_data_port(mapped->bytes, *inputs[i], limits, set);
        continue;
      }
      DataTensor tensor = read_tensor_shape(mapped->bytes, limits);
      auto named = std::ranges::find(inputs, tensor.name, &ModelValue::name);
      const ModelValue& input = named != inputs.end() ? **named : *inputs[i];
      const std::string& name = input.name;
      if (input.kind == ModelValue::Kind::Tensor &&
          element_count(tensor.dims) <= kMostFixedElements) {
        ExternalData none("", limits);
        TensorSource source{limits, none, mapped->owner};
        set.values[name] = read_tensor(mapped->bytes, source);
      }
      set.shapes[name] = std::move(tensor.dims);
    } catch (const ReadFailure& failure) {
      diags.error(failure.exit, "--shape-from: " + file + ": " + failure.message);
      return std::nullopt;
    }
  }
  return set;
}

} // namespace svod::importer
