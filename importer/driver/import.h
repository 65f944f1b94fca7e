// A checked model becomes a graph: shapes are fixed, functions are inlined, control flow
// whose conditions are known is unrolled, every node runs its rule.
//
// Fails with entries in `diags`, all faults at once: exit 1 (the model breaks the
// specification or a limit), 2 (a --shape that fits nothing), 3 (valid, but an operator,
// a type or a shape is not supported).
#pragma once

#include "compiler/ir/graph.h"
#include "importer/inputs/import_options.h"
#include "importer/inputs/model_interface.h"

namespace svod::importer {

[[nodiscard]] std::optional<Graph> import_model(const Model& model,
                                                const ImportOptions& options,
                                                Diags& diags,
                                                ModelInterface* interface = nullptr);

} // namespace svod::importer
