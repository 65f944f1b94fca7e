// Which rule imports an ONNX operator: the rows of onnx_ops.def, looked up by domain,
// name and the version of that domain which the model asks for.
#pragma once

#include "importer/formula/rule.h"

namespace svod::importer {

struct OnnxOp {
  std::string_view domain, name;
  int64_t first, last; // versions of the domain in which the row holds
  Rule rule;
  std::vector<NodeImport::AttributeRow> attributes;
};

// The newest opset of ai.onnx that the rows and the pinned `onnx` package know.
inline constexpr int64_t kNewestOpset = 28;

// Whether the operator's schema allows attributes that it does not name.
bool takes_any_attribute(std::span<const NodeImport::AttributeRow> attributes);

// All rows, in the order of the table.
const std::vector<OnnxOp>& onnx_ops();

// The row for an operator, or null. `domain` "" is ai.onnx.
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name, int64_t opset);

} // namespace svod::importer
