// What is imported, as a list: every operator that the standard or a row of onnx_ops.def
// knows, with the versions that work, how, and what of it does not. `svod-pack ops` and
// docs/operators.md are this list.
#pragma once

#include "compiler/ir/dtype.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace svod::importer {

enum class ImportedBy : uint8_t {
  Nothing,
  Rule,        // a row of onnx_ops.def
  ControlFlow, // the driver: its graphs become part of the program
  Body         // the specification's function body, all of whose operators are imported
};

// How an operator is imported in one version of its domain. `missing`: the operator that
// is not, which may be one inside the body.
ImportedBy imported_by(std::string_view domain, const std::string& name, int64_t opset,
                       std::string& missing);

struct OperatorRange {
  int64_t first, last;
  ImportedBy by;
};

struct OperatorSummary {
  std::string domain, name;
  std::vector<OperatorRange> ranges; // ascending; none: not supported
  // Of its tensors, in the newest version; empty for operators outside the standard.
  std::vector<std::string> types;         // that work
  std::vector<std::string> missing_types; // that the standard has too
  std::vector<std::string> limits; // what it does not do, or why it is not imported
};

// By domain and name, those that are refused among them; their limits say why.
std::vector<OperatorSummary> all_operators();

// The newest version of a domain that rows or schemas know.
int64_t newest_version(std::string_view domain);

} // namespace svod::importer
