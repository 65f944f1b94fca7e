// What is reported before the first node is imported: operators that nobody imports, each
// at its node, also where an earlier failure would hide it; and functions that call
// themselves or grow past the limit when inlined (a chain of n functions that call twice
// makes 2^n nodes).
#include "importer/driver/support.h"

#include "importer/driver/custom_call.h"
#include "importer/driver/operators.h"
#include "importer/operators/onnx_ops.h"

#include <algorithm>

namespace svod::importer {

namespace {

std::string versions_text(std::string_view domain, std::string_view name) {
  std::string text;
  if (const OnnxOp* row = find_onnx_op(domain, name))
    for (const OnnxForm& form : row->forms)
      text += (text.empty() ? "" : ", ") + std::to_string(form.first) + " to " +
              std::to_string(form.last);
  return text;
}

std::string why_unsupported(const ModelNode& node, int64_t opset) {
  const std::string op = escaped(full_op_name(node));
  const std::string versions = versions_text(node.domain, node.op_type);
  if (!versions.empty())
    return op + " of opset " + std::to_string(opset) + " is not supported; opsets " +
           versions + " are";
  for (const std::string& name : {node.op_type, std::string()})
    if (const OnnxOp* row = find_onnx_op(node.domain, name))
      return "operator " + op + " " + std::string(row->limits);
  if (!node.domain.empty() && node.domain != "ai.onnx.ml")
    return "operator " + op +
           " is no standard operator; export the model without it, or with it "
           "as a function of standard operators";
  return "operator " + op + " (opset " + std::to_string(opset) + ") is not supported";
}

} // namespace

bool is_gradient(std::string_view domain, std::string_view name) {
  return domain == "ai.onnx.preview.training" && name == "Gradient";
}

bool is_control_flow(std::string_view domain, std::string_view name) {
  const OnnxOp* row = find_onnx_op(domain, name);
  return row && row->by_driver;
}

void SupportCheck::check_support(const ModelNode& node, const CallFrame& frame,
                                 const ModelPlace& place) {
  if (!find_custom_ops(import_.options.custom_ops, node).empty()) return;
  if (const Callable* called = import_.functions.find(node)) {
    if (!checked_functions_.insert(called->function).second) return;
    const ModelFunction& function = *called->function;
    CallFrame inner;
    inner.opsets = &called->opsets;
    const std::vector<std::string_view> wanted(function.outputs.begin(),
                                               function.outputs.end());
    return check_support(function.nodes, needed_nodes(function.nodes, wanted), inner,
                         "function " + function.name);
  }
  for (const ModelAttribute& attribute : node.attributes)
    if (attribute.graph)
      check_support(attribute.graph->nodes,
                    needed_nodes(attribute.graph->nodes, output_names(*attribute.graph)),
                    frame, place_path(place) + "/" + attribute.name);
  const int64_t opset = version_of(node, *frame.opsets);
  std::string missing;
  if (imported_by(node.domain, node.op_type, opset, missing) != ImportedBy::Nothing)
    return;
  std::string why = why_unsupported(node, opset);
  if (missing != node.op_type) why += ": it is made of " + missing + ", which is not";
  fail(Exit::Unsupported, why, place);
}

void SupportCheck::check_support(const std::vector<ModelNode>& nodes,
                                 const Needed& needed, const CallFrame& frame,
                                 const std::string& path) {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (needed.live[i])
      check_support(
          nodes[i], frame,
          {static_cast<int64_t>(i), path, nodes[i].name, full_op_name(nodes[i])});
}

// Counts without inlining; the memo makes it linear. Stops at the first fault.
int64_t SupportCheck::expanded_nodes(const ModelFunction& function, int64_t depth) {
  const auto [at, added] = expanded_.emplace(&function, -1);
  if (!added && at->second >= 0) return at->second;
  const char* fault = !added ? "calls itself"
                      : depth > import_.limits.call_depth
                          ? "is called through too many others"
                          : nullptr;
  if (fault) {
    if (!import_.stopped)
      import_.diags.error(Exit::InvalidModel,
                          "function '" + escaped(function.name) + "' " + fault);
    import_.stopped = true;
    return 0;
  }
  const int64_t count = expanded_nodes(function.nodes, depth + 1);
  expanded_[&function] = count;
  return count;
}

int64_t SupportCheck::expanded_nodes(const std::vector<ModelNode>& nodes, int64_t depth) {
  int64_t count = 0;
  for (const ModelNode& node : nodes) {
    if (import_.stopped) return count;
    const Callable* called = import_.functions.find(node);
    count += called ? expanded_nodes(*called->function, depth) : 1;
    for (const ModelAttribute& attribute : node.attributes)
      if (attribute.graph) count += expanded_nodes(attribute.graph->nodes, depth);
    count = std::min(count, import_.limits.nodes + 1);
  }
  return count;
}

bool SupportCheck::check_size() {
  const int64_t count = expanded_nodes(import_.model.graph.nodes, 0);
  if (!import_.stopped && count > import_.limits.nodes)
    import_.diags.error(
        Exit::InvalidModel,
        "with its functions inlined the model has more nodes than the limit of " +
            std::to_string(import_.limits.nodes));
  return !import_.stopped && count <= import_.limits.nodes;
}

} // namespace svod::importer
