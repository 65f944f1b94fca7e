// Functions that nodes may call: those of the model, and the bodies of standard operators
// that the pinned `onnx` package defines by simpler ones.
#pragma once

#include "importer/model/model.h"

namespace svod::importer {

struct Callable {
  const ModelFunction* function = nullptr;
  std::map<std::string, int64_t> opsets; // of the body
};

// The functions of one model; `model` must outlive it.
class FunctionTable {
public:
  explicit FunctionTable(const Model& model);
  // The model's function that a node calls, or null.
  const Callable* find(const ModelNode& node) const;

private:
  std::map<std::string, Callable> by_key_;
};

// The body of a standard operator in this version of its domain, or null.
const Callable* find_standard_body(std::string_view domain, std::string_view name,
                                   int64_t opset);

} // namespace svod::importer
