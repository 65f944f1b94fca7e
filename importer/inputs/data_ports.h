// Sequences, optionals and maps in the files of a data set: lengths, keys, and the shapes
// of their elements.
#pragma once

#include "importer/inputs/data_shapes.h"

namespace svod::importer {

struct DataTensor {
  std::string name;
  Shape dims;
};
// Name and dims of a TensorProto. Malformed bytes throw ReadFailure, here and below.
DataTensor read_tensor_shape(std::string_view message, const Limits& limits);

// A SequenceProto, OptionalProto or MapProto, as `input` says.
void read_data_port(std::string_view message, const ModelValue& input,
                    const Limits& limits, DataSet& set);

} // namespace svod::importer
