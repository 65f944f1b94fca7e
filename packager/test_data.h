// An ONNX test data set made from a graph: random inputs and the evaluator's outputs.
#pragma once

#include "compiler/ir/graph.h"

#include <string>

namespace svod {

// Writes FOLDER/input_N.pb and output_N.pb. Empty, or why not.
std::string write_random_data(const Graph& graph, const std::string& folder);

} // namespace svod
