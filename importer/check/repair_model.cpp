// Models that break the letter of the specification in ways that leave one reading, the
// one ONNX Runtime has:
//   - a domain that nodes use and nobody imports: its newest version, if we know the
//   domain
//     or the model defines functions in it;
//   - an operator of com.microsoft that stands in ai.onnx, which has none of that name
//   (or
//     had none yet in the model's opset): that operator;
//   - branches of an If that declare inputs, which the operator does not give: the values
//     of these names outside;
//   - Constant nodes that make a name which an initializer or a later Constant node makes
//     too: those go first.
#include "importer/check/repair_model.h"

#include "importer/check/fit_version.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>
#include <unordered_set>

namespace svod::importer {

namespace {

constexpr std::string_view kVendor = "com.microsoft";

using Visit = std::function<void(ModelNode&)>;

void visit_nodes(std::vector<ModelNode>& nodes, const Visit& visit) {
  for (ModelNode& node : nodes) {
    visit(node);
    for (ModelAttribute& attribute : node.attributes)
      if (attribute.graph) visit_nodes(attribute.graph->nodes, visit);
  }
}

// The newest version of a domain that has rows; 0 for a domain that we do not know.
int64_t newest_version(const std::string& domain) {
  int64_t newest = 0;
  for (const OnnxOp& row : onnx_ops())
    for (const OnnxForm& form : row.forms)
      if (row.domain == domain) newest = std::max(newest, form.last);
  return newest;
}

// Each imported domain of `opsets` and each missing one that `nodes` use.
void complete_opsets(std::vector<ModelNode>& nodes, const Model& model,
                     std::map<std::string, int64_t>& opsets,
                     std::set<std::string>& reported, Diags& diags) {
  visit_nodes(nodes, [&](ModelNode& node) {
    if (opsets.contains(node.domain)) return;
    int64_t version = newest_version(node.domain);
    if (version == 0 &&
        std::ranges::find(model.functions, node.domain, &ModelFunction::domain) !=
            model.functions.end())
      version = 1;
    if (version == 0) return;
    opsets[node.domain] = version;
    if (reported.insert(node.domain).second)
      diags.warning("the model imports no opset of domain " +
                    quoted(node.domain.empty() ? "ai.onnx" : node.domain) +
                    ", which its nodes use; version " + std::to_string(version) +
                    " is taken");
  });
}

struct Finder {
  const Model& model;
  const Limits& limits;
  Diags& diags;
  std::set<std::string> reported = {}; // one warning per operator
  bool took_vendor = false;

  void warn(const ModelNode& node, const std::string& text) {
    if (reported.insert(node.op_type).second) diags.warning(text);
  }
  bool is_function(const ModelNode& node) const {
    return std::ranges::any_of(model.functions, [&](const ModelFunction& function) {
      return function.domain == node.domain && function.name == node.op_type;
    });
  }
  void find(ModelNode& node, int64_t opset);
};

// The version or the domain that an operator of ai.onnx was written for.
void Finder::find(ModelNode& node, int64_t opset) {
  // Of an opset that we do not know check_model() says so, once.
  if (opset > kNewestOpset && !limits.allow_newer) return;
  if (!node.domain.empty() || fitting_version(node, "", opset) == opset ||
      is_function(node))
    return;
  const Signature* signature = find_signature("", node.op_type, opset);
  const bool has_row = find_onnx_form("", node.op_type, opset) != nullptr;
  const std::string lacks = "opset " + std::to_string(opset) +
                            " of ai.onnx has no operator " + quoted(node.op_type) +
                            (has_row ? " of this form" : "") + "; that of ";
  if (const int64_t version = fitting_version(node, "", opset); version != 0) {
    node.version = version;
    return warn(node, lacks + "opset " + std::to_string(version) + " is taken");
  }
  // A body of the standard's, or a fault that the rule explains best.
  if (has_row || (signature && signature->first <= opset)) return;
  if (!find_onnx_form(kVendor, node.op_type, 1)) return;
  node.domain = kVendor;
  took_vendor = true;
  warn(node, lacks + std::string(kVendor) + " is taken");
}

void find_versions(std::vector<ModelNode>& nodes,
                   const std::map<std::string, int64_t>& opsets, Finder& finder) {
  const auto at = opsets.find("");
  if (at != opsets.end())
    visit_nodes(nodes, [&](ModelNode& node) { finder.find(node, at->second); });
}

// Drops Constant nodes whose name an initializer or a later Constant node gives.
void drop_overridden(ModelGraph& graph, Diags& diags) {
  for (ModelNode& node : graph.nodes)
    for (ModelAttribute& attribute : node.attributes)
      if (attribute.graph) drop_overridden(*attribute.graph, diags);
  std::unordered_set<std::string> given;
  for (const ModelTensor& tensor : graph.initializers) given.insert(tensor.name);
  const auto is_overridden = [&](const ModelNode& node) {
    return node.domain.empty() && node.op_type == "Constant" &&
           node.outputs.size() == 1 && !node.outputs[0].empty() &&
           !given.insert(node.outputs[0]).second;
  };
  // From the end, so that the last of several stays.
  std::vector<ModelNode> nodes;
  for (ModelNode& node : std::views::reverse(graph.nodes))
    if (!is_overridden(node))
      nodes.push_back(std::move(node));
    else
      diags.warning("the constant " + quoted(node.outputs[0]) +
                    " is defined more than once; the last one counts");
  std::ranges::reverse(nodes);
  graph.nodes = std::move(nodes);
}

// A branch has no inputs: what it declares as such are values of the graph around it.
void drop_branch_inputs(ModelGraph& graph, Diags& diags) {
  visit_nodes(graph.nodes, [&](ModelNode& node) {
    if (!node.domain.empty() || node.op_type != "If") return;
    for (ModelAttribute& attribute : node.attributes) {
      if (!attribute.graph || attribute.graph->inputs.empty()) continue;
      diags.warning("the branch " + quoted(attribute.graph->name) +
                    " of an If declares inputs; values outside that have their names are "
                    "taken");
      attribute.graph->inputs.clear();
    }
  });
}

} // namespace

void repair_model(Model& model, const Limits& limits, Diags& diags) {
  std::set<std::string> domains;
  Finder finder{model, limits, diags};
  // An empty list of opsets is a fault of its own, reported by check_model().
  if (!model.opsets.empty())
    complete_opsets(model.graph.nodes, model, model.opsets, domains, diags);
  find_versions(model.graph.nodes, model.opsets, finder);
  for (ModelFunction& function : model.functions) {
    std::map<std::string, int64_t> opsets = function.opsets;
    opsets.insert(model.opsets.begin(), model.opsets.end());
    complete_opsets(function.nodes, model, opsets, domains, diags);
    find_versions(function.nodes, opsets, finder);
    function.opsets = std::move(opsets);
  }
  // Those taken over from ai.onnx.
  if (finder.took_vendor) {
    model.opsets.emplace(kVendor, 1);
    for (ModelFunction& function : model.functions) function.opsets.emplace(kVendor, 1);
  }
  drop_branch_inputs(model.graph, diags);
  drop_overridden(model.graph, diags);
}

} // namespace svod::importer
