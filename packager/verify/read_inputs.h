// Inputs of a run from an ONNX test data set.
#pragma once

#include "compiler/ir/evaluate.h"
#include "packager/front.h"

namespace svod::packager {

// The set that a folder of them begins with; the folder itself where it is one.
std::string first_set(const std::string& folder);

// The values of the graph's inputs, from FOLDER/input_0.pb, input_1.pb, ...; none when
// they are not what the graph takes, and why is in `error`. Sequences, optionals and maps
// are not read.
std::optional<std::vector<Tensor>> read_inputs(const std::string& folder,
                                               const Front& front,
                                               const importer::Limits& limits,
                                               std::string& error);

// The same of the graph's outputs, by their numbers.
std::optional<std::vector<Tensor>> read_outputs(const std::string& folder,
                                                const Front& front,
                                                const importer::Limits& limits,
                                                std::string& error);

} // namespace svod::packager
