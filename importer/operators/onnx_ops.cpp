// The rows of onnx_ops.def as data. Rules are declared from the table itself, so a row
// whose rule nobody wrote is a link error that names it.
#include "importer/operators/onnx_ops.h"

#include <algorithm>
#include <map>

namespace svod::importer {

#define SVOD_DECLARE_BOUNDED(...)                                                        \
  __VA_OPT__(void __VA_ARGS__(NodeImport& node, Rule of_operator);)
#define V(first, last, rule, ...) void rule(NodeImport&);
#define O(first, last, rule, op, ...) void rule(NodeImport&, Op);
#define BY_DRIVER
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions)               \
  SVOD_DECLARE_BOUNDED(bounded) versions
#include "importer/operators/onnx_ops.def"
#undef SVOD_DECLARE_BOUNDED

namespace {

constexpr std::string_view kAny = "*"; // no name of an attribute

// The column `strings`.
enum class StringUse : uint8_t { Refused, Strings };

// A cell that is empty is its type's zero.
std::vector<OnnxOp> make_rows() {
  using Row = NodeImport::AttributeRow;
  using enum ComplexHow;
  using enum StringUse;
  std::vector<OnnxOp> rows;
#define ANY Row{kAny, AttributeType::Int, ""}
#define A(attribute, type, fallback)                                                     \
  Row { #attribute, AttributeType::type, fallback }
#define V(first, last, rule, ...)                                                        \
  rows.back().forms.push_back({first, last, rule, std::vector<Row>{__VA_ARGS__}});
#define O(first, last, rule, op, ...)                                                    \
  V(first, last, [](NodeImport& node) { rule(node, Op::op); }, __VA_ARGS__)
#define BY_DRIVER rows.back().by_driver = true;
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions)               \
  rows.push_back({domain,                                                                \
                  #name,                                                                 \
                  BoundedRule{bounded},                                                  \
                  ComplexHow{complex},                                                   \
                  StringUse{strings} == Strings,                                         \
                  std::string_view{limits},                                              \
                  false,                                                                 \
                  {}});                                                                  \
  versions
#include "importer/operators/onnx_ops.def"
#undef A
#undef ANY
  return rows;
}

using RowsByName = std::map<std::pair<std::string_view, std::string_view>, const OnnxOp*>;

RowsByName index_rows() {
  RowsByName index;
  for (const OnnxOp& row : onnx_ops()) index[{row.domain, row.name}] = &row;
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

const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name) {
  static const RowsByName index = index_rows();
  const auto found = index.find({domain, name});
  return found == index.end() ? nullptr : found->second;
}

const OnnxForm* find_onnx_form(std::string_view domain, std::string_view name,
                               int64_t opset) {
  const OnnxOp* row = find_onnx_op(domain, name);
  if (!row) return nullptr;
  for (const OnnxForm& form : row->forms)
    if (form.first <= opset && opset <= form.last) return &form;
  return nullptr;
}

} // namespace svod::importer
