// What the user and a data set say of a pack: shapes, values, operators, limits.
#pragma once

#include "compiler/ir/custom_op.h"
#include "importer/inputs/model_interface.h"
#include "importer/model/limits.h"
#include "importer/model/model.h"

#include <map>
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
  // Sizes that a run decides, by the name of a dimension or as x[2], an axis of an input
  // (--dim).
  std::map<std::string, SizeRange> sizes;
  // By the name of an input: the one value it has in every run, as text "1,2" (--value).
  std::map<std::string, std::string> values;
  // Small inputs of the data; used only for an input whose value the import needs.
  std::map<std::string, ModelTensor> data_values;
  // Sequences, optionals and maps of the data.
  std::map<std::string, DataPort> data_ports;
  // Optional inputs that are left out (--shape x=none).
  std::set<std::string> absent;
  // Outputs that are inputs of the next run, as INPUT=OUTPUT (--state).
  std::vector<std::string> states;
  // Rows that one run adds to a state that grows, as far as it is known.
  int64_t added_rows = 1;
  // Inputs that are picture files, as [NAME=]rgb,resize=256,... (--image), and the most
  // pixels of a picture, as a height and a width.
  std::vector<std::string> images;
  int64_t picture_height = 6144, picture_width = 8192;
  bool roomy_states = true; // they may take a quarter more memory, to be moved less often
  // Operators of the user's own; they come before all others.
  std::vector<CustomOp> custom_ops;
  // Bytes of a string of an input: more are bad input data when the program runs.
  int64_t string_bytes = 64;
  // --accuracy exact: what an attribute allows to be computed less exactly is not.
  bool exact = false;
  bool keep_halves = false; // Graph::keeps_halves of what is imported
  Limits limits;
};

} // namespace svod::importer
