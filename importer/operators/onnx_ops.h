// What is known of an ONNX operator: the rows of onnx_ops.def, looked up by domain and
// name, and for its rule by the version of that domain which the model asks for.
#pragma once

#include "importer/formula/rule.h"

namespace svod::importer {

// What an operator does with bounded inputs (importer/bounded/bounded.h): it prepares
// them, calls the operator's rule or does the work itself, and tells the counts of the
// results.
using BoundedRule = void (*)(NodeImport& node, Rule rule);

// What the import does with an operator that is given complex numbers: the column
// `complex` of onnx_ops.def.
enum class ComplexHow : uint8_t { None, Parts, First, Truth, Whole, Pairs };

// How an operator is imported in some versions of its domain.
struct OnnxForm {
  int64_t first, last;
  Rule rule;
  std::span<const NodeImport::AttributeRow> attributes;
};

struct OnnxOp {
  std::string_view domain, name; // no name: all of the domain
  BoundedRule bounded;           // null: it takes no sizes of the run
  ComplexHow complex;
  bool strings;                // its rule knows of strings
  std::string_view limits;     // what it does not do, or why it is not imported
  bool by_driver = false;      // imported without a rule, in every version
  std::vector<OnnxForm> forms; // by version
};

// The newest opset of ai.onnx that the rows and the pinned `onnx` package know.
inline constexpr int64_t kNewestOpset = 28;

// Whether the operator's schema allows attributes that it does not name.
bool takes_any_attribute(std::span<const NodeImport::AttributeRow> attributes);

// All rows, in the order of the table.
const std::vector<OnnxOp>& onnx_ops();

// The row of an operator, or null. `domain` "" is ai.onnx.
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name);

// Its form in a version, or null.
const OnnxForm* find_onnx_form(std::string_view domain, std::string_view name,
                               int64_t opset);

} // namespace svod::importer
