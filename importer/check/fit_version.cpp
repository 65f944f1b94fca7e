// Converters that stamp a newer (or older) opset than the nodes they write are common: a
// Slice with its starts as an attribute in opset 13, a HardSwish in 13. What the node
// looks like says which version was meant. The form of a version is its attributes in the
// table and its signature's number of inputs; where several fit, the nearest one.
#include "importer/check/fit_version.h"

#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>

namespace svod::importer {

namespace {

int64_t given_inputs(const ModelNode& node) {
  auto count = static_cast<int64_t>(node.inputs.size());
  while (count > 0 && node.inputs[static_cast<size_t>(count - 1)].empty()) --count;
  return count;
}

bool attributes_fit(const ModelNode& node, const OnnxForm& form) {
  return std::ranges::all_of(node.attributes, [&](const ModelAttribute& attribute) {
    const auto known = std::ranges::find(form.attributes, attribute.name,
                                         &NodeImport::AttributeRow::name);
    return known != form.attributes.end() && known->type == attribute.type;
  });
}

bool inputs_fit(const ModelNode& node, const std::string& domain, int64_t version) {
  const Signature* signature = find_signature(domain, node.op_type, version);
  if (!signature) return true;
  const int64_t count = given_inputs(node);
  return count >= signature->least_inputs && count <= signature->most_inputs;
}

// The version of the form nearest to `opset` in which the node fits; 0: none.
int64_t version_in(const ModelNode& node, const std::string& domain, const OnnxForm& form,
                   int64_t opset) {
  // What takes any attribute shows nothing about another version.
  const bool own = form.first <= opset && opset <= form.last;
  if (!attributes_fit(node, form) && !(own && takes_any_attribute(form.attributes)))
    return 0;
  int64_t best = 0;
  for (int64_t version = form.first; version <= form.last; ++version)
    if (inputs_fit(node, domain, version) &&
        (best == 0 || std::abs(version - opset) < std::abs(best - opset)))
      best = version;
  return best;
}

} // namespace

int64_t fitting_version(const ModelNode& node, const std::string& domain, int64_t opset) {
  const OnnxOp* row = find_onnx_op(domain, node.op_type);
  if (!row) return 0;
  int64_t best = 0;
  for (const OnnxForm& form : row->forms) {
    const int64_t version = version_in(node, domain, form, opset);
    if (version != 0 && (best == 0 || std::abs(version - opset) < std::abs(best - opset)))
      best = version;
  }
  return best;
}

} // namespace svod::importer
