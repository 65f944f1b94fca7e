// The shapes of a model's inputs as an ONNX test data set has them (--shape-from).
#pragma once

#include "compiler/support/diags.h"
#include "importer/limits.h"
#include "importer/model.h"

namespace svod {

// Of DIR/input_0.pb, input_1.pb ...: a tensor belongs to the input of its name or, when
// it has none that fits, of its number. Fails with exit 4 (no such file) or 1
// (malformed).
std::optional<std::map<std::string, Shape>> read_data_shapes(const std::string& folder,
                                                             const Model& model,
                                                             const Limits& limits,
                                                             Diags& diags);

} // namespace svod
