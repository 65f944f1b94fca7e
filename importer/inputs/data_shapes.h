// The shapes of a model's inputs as an ONNX test data set has them, and the values of
// small ones (--shape-from).
#pragma once

#include "compiler/support/diags.h"
#include "importer/inputs/import_options.h"
#include "importer/model/model.h"

namespace svod::importer {

struct DataSet {
  std::map<std::string, Shape> shapes;
  std::map<std::string, DataPort> ports;     // of what is no tensor
  std::map<std::string, ModelTensor> values; // of at most kMostFixedElements elements
};

// Of DIR/input_0.pb, input_1.pb ...: a tensor belongs to the input of its name or, when
// it has none that fits, of its number. Fails with exit 4 (no such file) or 1
// (malformed).
std::optional<DataSet> read_data_set(const std::string& folder, const Model& model,
                                     const Limits& limits, Diags& diags);

} // namespace svod::importer
