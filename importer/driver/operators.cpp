// Joins three tables: the rows, the schemas of the `onnx` package, and the limits. What
// an operator's versions are is found by asking for each, as the import itself does.
#include "importer/driver/operators.h"

#include "importer/driver/functions.h"
#include "importer/driver/graph_import.h"
#include "importer/formula/complex.h"
#include "importer/operators/complex_ops.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <set>

namespace svod::importer {
namespace {

struct LimitRow {
  std::string_view domain, name, text;
};
constexpr LimitRow kLimitRows[] = {
#define LIMIT(domain, name, text) {domain, #name, text},
#include "importer/operators/onnx_limits.def"
};

constexpr RefusedOperator kRefused[] = {
#define REFUSED(domain, name, why) {domain, name, why},
#include "importer/operators/onnx_refused.def"
};

using Name = std::pair<std::string, std::string>; // domain, operator

std::set<Name> all_names() {
  std::set<Name> names;
  for (const OnnxOp& row : onnx_ops())
    names.emplace(std::string(row.domain), std::string(row.name));
  for (const RefusedOperator& refused : kRefused)
    names.emplace(std::string(refused.domain), std::string(refused.name));
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
  const bool takes_complex =
      is_control_flow(summary.domain, summary.name) ||
      complex_how(summary.domain, summary.name) != ComplexHow::None;
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
    if (row.domain == domain) newest = std::max(newest, row.last);
  for (const Signature& schema : signatures())
    if (schema.domain == domain) newest = std::max(newest, schema.first);
  return newest;
}

ImportedBy imported_by(std::string_view domain, const std::string& name, int64_t opset,
                       std::string& missing) {
  if (find_onnx_op(domain, name, opset)) return ImportedBy::Rule;
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

std::span<const RefusedOperator> refused_operators() { return kRefused; }

std::vector<OperatorSummary> all_operators() {
  std::vector<OperatorSummary> all;
  for (const Name& name : all_names()) {
    OperatorSummary summary{name.first, name.second, ranges_of(name), {}, {}, {}};
    add_types(summary);
    for (const LimitRow& row : kLimitRows)
      if (row.domain == name.first && row.name == name.second)
        summary.limits.emplace_back(row.text);
    for (const RefusedOperator& row : kRefused)
      if (row.domain == name.first && row.name == name.second)
        summary.limits.emplace_back(row.why);
    all.push_back(std::move(summary));
  }
  return all;
}

} // namespace svod::importer
