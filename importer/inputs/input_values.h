// What each input of a model is in this pack. A sequence is as many tensors as it has
// elements, an optional one or none, a map one tensor of its values; each of these is an
// input of the graph.
#pragma once

#include "importer/inputs/import_options.h"
#include "importer/inputs/model_interface.h"

#include <deque>

namespace svod::importer {

struct InputValue {
  const ModelValue* declared = nullptr;
  ModelPort port; // its `first` is set when the inputs are made
  std::vector<ModelValue> tensors;
};

// All inputs that no initializer gives a value, in the model's order. Faults are in
// `diags`; the list has all inputs nevertheless, those that are not supported without
// tensors.
std::deque<InputValue> input_values(const ModelGraph& graph, const ImportOptions& options,
                                    Diags& diags);

// "x[3]"
std::string element_name(const std::string& name, size_t i);
// {"x", 3} of that; nothing for any other name.
std::optional<std::pair<std::string, size_t>> element_of(const std::string& name);

} // namespace svod::importer
