// TensorProto and SparseTensorProto as ModelTensor. Faults throw ReadFailure.
#pragma once

#include "importer/model/external_data.h"
#include "importer/model/model.h"

namespace svod::importer {

struct TensorSource {
  const Limits& limits;
  ExternalData& external;
  std::shared_ptr<const void> owner; // of the message's bytes
};

ModelTensor read_tensor(std::string_view message, TensorSource& source);

// A sparse tensor is made dense at once: nothing behind the reader knows sparse ones.
ModelTensor read_sparse_tensor(std::string_view message, TensorSource& source);

// Bytes of a dense tensor of these dims; limits are checked.
int64_t checked_bytes(int onnx_type, const Shape& dims, const Limits& limits);

} // namespace svod::importer
