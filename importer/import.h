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
  Limits limits;
};

[[nodiscard]] std::optional<Graph>
import_model(const Model& model, const ImportOptions& options, Diags& diags);

} // namespace svod
