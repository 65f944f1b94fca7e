// A checked model becomes a graph: shapes are fixed, functions are inlined, control flow
// whose conditions are known is unrolled, every node runs its rule.
//
// Fails with entries in `diags`, all faults at once: exit 1 (the model breaks the
// specification or a limit), 2 (a --shape that fits nothing), 3 (valid, but an operator,
// a type or a shape is not supported).
#pragma once

#include "compiler/ir/custom_op.h"
#include "compiler/ir/graph.h"
#include "importer/formula/compound.h"
#include "importer/model/limits.h"
#include "importer/model/model.h"

#include <set>

namespace svod::importer {

// What a data set says of an input that is no tensor.
struct DataPort {
  bool present = true;
  int64_t length = 0; // of a sequence; shapes of its elements: data_shapes of "x[i]"
  MapKeys keys;
};

inline constexpr int64_t kMostStringBytes = 4096;

struct ImportOptions {
  // By the name of an input, or with one value by the name of a dimension (--shape).
  std::map<std::string, Shape> shapes;
  // Shapes of inputs taken from data; --shape wins over them (--shape-from).
  std::map<std::string, Shape> data_shapes;
  // By the name of an input: the one value it has in every run, as text "1,2" (--value).
  std::map<std::string, std::string> values;
  // Small inputs of the data; used only for an input whose value the import needs.
  std::map<std::string, ModelTensor> data_values;
  // Sequences, optionals and maps of the data.
  std::map<std::string, DataPort> data_ports;
  // Optional inputs that are left out (--shape x=none).
  std::set<std::string> absent;
  // Operators of the user's own; they come before all others.
  std::vector<CustomOp> custom_ops;
  // Bytes of a string of an input: more are bad input data when the program runs.
  int64_t string_bytes = 64;
  // --accuracy exact: what an attribute allows to be computed less exactly is not.
  bool exact = false;
  Limits limits;
};

// What the model calls one input or output, over the inputs or outputs of the graph.
struct ModelPort {
  enum class Kind : uint8_t {
    Tensor,
    Sequence, // one tensor per element
    Map,      // one tensor of the values in the order of the keys
    Maps,     // a sequence of maps of the same keys: one tensor [maps, keys]
  };
  std::string name;
  Kind kind = Kind::Tensor;
  bool optional = false, present = true;
  uint32_t first = 0, count = 1; // among the graph's inputs or outputs
  MapKeys keys;
  bool any_keys = false; // a map of a run may lack keys and have others
  int onnx_type = 0;     // of its tensors, 0: not known
  // Of an optional output that only the data decides: the output that says whether it is
  // there.
  std::optional<uint32_t> presence;

  bool is_tensor() const { return kind == Kind::Tensor && !optional; }
};

// What a graph does not say of the inputs and outputs of its program.
struct ModelInterface {
  // Inputs packed for one value, by name: its bytes.
  std::map<std::string, std::vector<std::byte>> fixed;
  // In the model's order.
  std::vector<ModelPort> inputs, outputs;
  // Outputs whose sizes depend on data: their number, and the number of the output that
  // holds these sizes. Such outputs follow those of the model.
  std::map<size_t, size_t> extents;
  bool sizes_replaced = false; // an input has another shape than the model states
};

[[nodiscard]] std::optional<Graph> import_model(const Model& model,
                                                const ImportOptions& options,
                                                Diags& diags,
                                                ModelInterface* interface = nullptr);

} // namespace svod::importer
