// The inputs and outputs of a model over those of its graph.
#pragma once

#include "importer/formula/compound.h"

#include <map>
#include <optional>

namespace svod::importer {

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

// The sizes that a run may give a dimension (--dim).
struct SizeRange {
  int64_t least = 1, most = 1;
  int64_t whole = 0; // the most of all sets of shapes, of which this range is one's
};

// An input of which a run decides sizes. It is as large as these can get, and elements
// lie as in a tensor of that shape.
struct OpenInput {
  size_t extents = 0; // the input of the graph that holds its extents, an i64 per axis
  std::vector<std::string> dimensions; // one per axis, as in --dim; "": fixed
  // Axes that follow the rows of a state that grows, and the input of the graph that
  // counts these: they are as much longer as their bounds are longer than its most.
  std::optional<size_t> counter;
  std::vector<size_t> counted;
};

// A state that grows from run to run (--state with --dim). Its tensor has room for the
// most rows and for those that a run adds.
struct GrowingState {
  int64_t axis = 0;
  size_t counter = 0; // the input of the graph that says how many rows it holds
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
  // By the number of the input; inputs of extents follow those of the model.
  std::map<size_t, OpenInput> open_inputs;
  // By the number of the input. Counters of rows are states themselves, and here the most
  // that each may say before a run.
  std::map<size_t, GrowingState> growing_states;
  std::map<size_t, int64_t> counters;
  // Of the open inputs, those that are the bytes of a picture file, and how the picture
  // is prepared (--image).
  std::map<size_t, std::string> pictures;
  // Of their dimensions, and of those of one size that these are expressions of.
  std::map<std::string, SizeRange> sizes;
  int64_t added_rows = 1;      // for which states that grow have room
  bool sizes_replaced = false; // an input has another shape than the model states
  // Branches that do not fit the shapes of the pack, in words: a run that takes one
  // stops.
  std::vector<std::string> left_out;
};

} // namespace svod::importer
