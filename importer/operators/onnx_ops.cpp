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

// The table is read once for each kind of fact: as one function that appends row by row
// it took gcc 40 seconds.
using Row = NodeImport::AttributeRow;

// A cell that is empty is its type's zero.
struct FlatOp {
  std::string_view domain, name;
  BoundedRule bounded;
  ComplexHow complex;
  StringUse strings;
  std::string_view limits;
};

struct FlatForm {
  int64_t first, last;
  Rule rule;
  size_t attributes; // so many
};

using enum ComplexHow;
using enum StringUse;

#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions)               \
  {domain,                                                                               \
   #name,                                                                                \
   BoundedRule{bounded},                                                                 \
   ComplexHow{complex},                                                                  \
   StringUse{strings},                                                                   \
   std::string_view{limits}},
constexpr FlatOp kOps[] = {
#include "importer/operators/onnx_ops.def"
};

#define V(first, last, rule, ...) +1
#define O(first, last, rule, op, ...) +1
#define BY_DRIVER
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions) 0 versions,
constexpr int kFormsOfOp[] = {
#include "importer/operators/onnx_ops.def"
};

#define V(first, last, rule, ...)
#define O(first, last, rule, op, ...)
#define BY_DRIVER || true
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions) false versions,
constexpr bool kByDriver[] = {
#include "importer/operators/onnx_ops.def"
};

#define ANY Row{kAny, AttributeType::Int, ""}
#define A(attribute, type, fallback)                                                     \
  Row { #attribute, AttributeType::type, fallback }
#define BY_DRIVER
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions) versions
#define V(first, last, rule, ...) __VA_OPT__(__VA_ARGS__, )
#define O(first, last, rule, op, ...) V(first, last, rule, __VA_ARGS__)
constexpr Row kAttributes[] = {
#include "importer/operators/onnx_ops.def"
};

#define BY_DRIVER
#define ONNX_OP(domain, name, bounded, complex, strings, limits, versions) versions
#define V(first, last, rule, ...)                                                        \
  {first, last, rule, std::initializer_list<Row>{__VA_ARGS__}.size()},
#define O(first, last, rule, op, ...)                                                    \
  V(first, last, [](NodeImport& node) { rule(node, Op::op); }, __VA_ARGS__)
constexpr FlatForm kForms[] = {
#include "importer/operators/onnx_ops.def"
};
#undef A
#undef ANY

std::vector<OnnxOp> make_rows() {
  std::vector<OnnxOp> rows;
  const FlatForm* form = kForms;
  const Row* attribute = kAttributes;
  for (size_t i = 0; i < std::size(kOps); i++) {
    const FlatOp& op = kOps[i];
    rows.push_back({op.domain,
                    op.name,
                    op.bounded,
                    op.complex,
                    op.strings == Strings,
                    op.limits,
                    kByDriver[i],
                    {}});
    for (int n = 0; n < kFormsOfOp[i]; n++, form++) {
      rows.back().forms.push_back(
          {form->first, form->last, form->rule, {attribute, form->attributes}});
      attribute += form->attributes;
    }
  }
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
