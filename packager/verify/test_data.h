// An ONNX test data set made from a graph: random inputs and the evaluator's outputs.
#pragma once

#include "compiler/ir/evaluate_calls.h"
#include "importer/driver/import.h"

#include <string>

namespace svod::packager {

// Small values for the graph's inputs, the same in every run; those that are fixed as
// they are, states as they are before the first run.
std::vector<Tensor> random_inputs(const Graph& graph,
                                  const importer::ModelInterface& interface);

// Writes FOLDER/input_N.pb and output_N.pb. Empty, or why not.
std::string write_random_data(const Graph& graph,
                              const importer::ModelInterface& interface,
                              const std::string& folder, const CallRunner& calls);

} // namespace svod::packager
