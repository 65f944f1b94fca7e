// A checked model becomes a graph: shapes are fixed, functions are inlined, control flow
// whose conditions are known is unrolled, every node runs its rule.
//
// Fails with entries in `diags`, all faults at once: exit 1 (the model breaks the
// specification or a limit), 2 (a --shape that fits nothing), 3 (valid, but an operator,
// a type or a shape is not supported).
#pragma once

#include "compiler/ir/graph.h"
#include "importer/limits.h"
#include "importer/model.h"

namespace svod {

struct ImportOptions {
  // By the name of an input, or with one value by the name of a dimension (--shape).
  std::map<std::string, Shape> shapes;
  // Shapes of inputs taken from data; --shape wins over them (--shape-from).
  std::map<std::string, Shape> data_shapes;
  // By the name of an input: the one value it has in every run, as text "1,2" (--value).
  std::map<std::string, std::string> values;
  // Small inputs of the data; used only for an input whose value the import needs.
  std::map<std::string, ModelTensor> data_values;
  Limits limits;
};

// What a graph does not say of the inputs and outputs of its program.
struct ModelInterface {
  // Inputs packed for one value, by name: its bytes.
  std::map<std::string, std::vector<std::byte>> fixed;
};

[[nodiscard]] std::optional<Graph> import_model(const Model& model,
                                                const ImportOptions& options,
                                                Diags& diags,
                                                ModelInterface* interface = nullptr);

} // namespace svod
