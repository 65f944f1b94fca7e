// Joins two tables: the rows, and the schemas of the `onnx` package. What an operator's
// versions are is found by asking for each, as the import itself does.
#include "importer/driver/operators.h"

#include "importer/driver/functions.h"
#include "importer/driver/support.h"
#include "importer/formula/complex.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <set>

namespace svod::importer {
namespace {

using Name = std::pair<std::string, std::string>; // domain, operator

std::set<Name> all_names() {
  std::set<Name> names;
  for (const OnnxOp& row : onnx_ops())
    names.emplace(std::string(row.domain), std::string(row.name));
  for (const Signature& schema : signatures())
    names.emplace(std::string(schema.domain), std::string(schema.name));
  return names;
}

std::vector<OperatorRange> ranges_of(const Name& name) {
  std::vector<OperatorRange> ranges;
  for (int64_t version = 1; version <= newest_version(name.first); ++version) {
    std::string missing;
    const ImportedBy by = imported_by(name.first, name.second, version, missing);
    if (by == ImportedBy::Nothing) continue;
    if (!ranges.empty() && ranges.back().by == by && ranges.back().last == version - 1)
      ranges.back().last = version;
    else
      ranges.push_back({version, version, by});
  }
  return ranges;
}

void add_types(OperatorSummary& summary) {
  const Signature* schema =
      find_signature(summary.domain, summary.name, newest_version(summary.domain));
  if (!schema) return;
  uint32_t bits = 0;
  for (int64_t i = 0; i < schema->inputs.count; ++i)
    bits |= formal_value(schema->inputs, i).types;
  const OnnxOp* row = find_onnx_op(summary.domain, summary.name);
  const bool takes_complex = row && row->complex != ComplexHow::None;
  std::set<DType> held; // in the order of dtypes.def
  std::vector<std::string> complex;
  for (int code = 1; code < 32; ++code) {
    if ((bits >> code & 1) == 0) continue;
    if (const auto dtype = dtype_from_onnx(code))
      held.insert(*dtype);
    else if (complex_part(code) && takes_complex)
      complex.push_back(onnx_type_text(code));
    else
      summary.missing_types.push_back(onnx_type_name(code));
  }
  for (DType dtype : held) summary.types.emplace_back(info(dtype).text);
  summary.types.insert(summary.types.end(), complex.begin(), complex.end());
}

} // namespace

int64_t newest_version(std::string_view domain) {
  if (domain.empty()) return kNewestOpset;
  int64_t newest = 1;
  for (const OnnxOp& row : onnx_ops())
    for (const OnnxForm& form : row.forms)
      if (row.domain == domain) newest = std::max(newest, form.last);
  for (const Signature& schema : signatures())
    if (schema.domain == domain) newest = std::max(newest, schema.first);
  return newest;
}

ImportedBy imported_by(std::string_view domain, const std::string& name, int64_t opset,
                       std::string& missing) {
  if (find_onnx_form(domain, name, opset)) return ImportedBy::Rule;
  if (is_control_flow(domain, name)) return ImportedBy::ControlFlow;
  missing = name;
  const Callable* body = find_standard_body(domain, name, opset);
  if (!body) return ImportedBy::Nothing;
  for (const ModelNode& node : body->function->nodes)
    if (imported_by(node.domain, node.op_type, body->opsets.at(node.domain), missing) ==
        ImportedBy::Nothing)
      return ImportedBy::Nothing;
  return ImportedBy::Body;
}

std::vector<OperatorSummary> all_operators() {
  std::vector<OperatorSummary> all;
  for (const Name& name : all_names()) {
    OperatorSummary summary{name.first, name.second, ranges_of(name), {}, {}, {}};
    add_types(summary);
    const OnnxOp* row = find_onnx_op(name.first, name.second);
    if (row && !row->limits.empty()) summary.limits.emplace_back(row->limits);
    all.push_back(std::move(summary));
  }
  return all;
}

} // namespace svod::importer
