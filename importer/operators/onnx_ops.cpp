// The rows of onnx_ops.def as data. Rules are declared from the table itself, so a row
// whose rule nobody wrote is a link error that names it.
#include "importer/operators/onnx_ops.h"

#include <algorithm>
#include <map>

namespace svod::importer {

#define ONNX_OP(domain, name, first, last, rule, ...) void rule(NodeImport&);
#include "importer/operators/onnx_ops.def"

namespace {

constexpr std::string_view kAny = "*"; // no name of an attribute

std::vector<OnnxOp> make_rows() {
  using Row = NodeImport::AttributeRow;
  std::vector<OnnxOp> rows;
#define ANY Row{kAny, AttributeType::Int, ""}
#define A(attribute, type, fallback)                                                     \
  Row { #attribute, AttributeType::type, fallback }
#define ONNX_OP(domain, name, first, last, rule, ...)                                    \
  rows.push_back({domain, #name, first, last, rule, std::vector<Row>{__VA_ARGS__}});
#include "importer/operators/onnx_ops.def"
#undef A
#undef ANY
  return rows;
}

using RowsByName =
    std::map<std::pair<std::string_view, std::string_view>, std::vector<const OnnxOp*>>;

RowsByName index_rows() {
  RowsByName index;
  for (const OnnxOp& row : onnx_ops()) index[{row.domain, row.name}].push_back(&row);
  return index;
}

} // namespace

bool takes_any_attribute(std::span<const NodeImport::AttributeRow> attributes) {
  return std::ranges::find(attributes, kAny, &NodeImport::AttributeRow::name) !=
         attributes.end();
}

const std::vector<OnnxOp>& onnx_ops() {
  static const std::vector<OnnxOp> rows = make_rows();
  return rows;
}

const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name,
                           int64_t opset) {
  static const RowsByName index = index_rows();
  const auto found = index.find({domain, name});
  if (found == index.end()) return nullptr;
  for (const OnnxOp* row : found->second)
    if (row->first <= opset && opset <= row->last) return row;
  return nullptr;
}

} // namespace svod::importer
