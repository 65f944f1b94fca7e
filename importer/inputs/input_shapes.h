// The shapes of a model's inputs, from the model and the user. An unknown leading
// dimension becomes 1 with a note; every other unknown one is listed in `diags`, with the
// option to use. A shape that the user gives wins over the one that the model states.
#pragma once

#include "importer/inputs/input_values.h"

namespace svod::importer {

struct InputShapes {
  std::deque<InputValue> values;             // initializers are no inputs
  std::map<std::string, Shape> inputs;       // of their tensors, by name
  std::map<std::string, int64_t> dimensions; // named dimensions of one size
  // Inputs of which a run decides sizes: for each axis its dimension of
  // ImportOptions::sizes, or one that is an expression of these, "" where it is fixed.
  // Their shapes have the most.
  std::map<std::string, std::vector<std::string>> open;
  std::vector<std::string> lone; // inputs of one dimension, which is unknown and became 1
  bool replaced = false; // a size that the model states: its other declarations are stale
};

[[nodiscard]] std::optional<InputShapes>
bind_input_shapes(const ModelGraph& graph, const ImportOptions& options, Diags& diags);

// The shape that a declaration states under these bindings, when all of it is known.
std::optional<Shape> declared_shape(const ModelValue& value,
                                    const std::map<std::string, int64_t>& dimensions);

} // namespace svod::importer
