// What must hold between the messages of a model before any operator is looked at:
// versions that we know, and names that are defined exactly once and before they are
// used. A nested graph sees the names around it and may not define them again. Everything
// that is wrong is reported.
#include "importer/check/read_model.h"

#include "importer/operators/onnx_ops.h"

#include "onnx-ml.pb.h"

#include <unordered_map>
#include <unordered_set>

namespace svod::importer {

namespace {

using Opsets = std::map<std::string, int64_t>;

// The names one graph defines, on top of those around it.
struct NameScope {
  const NameScope* outer = nullptr;
  std::unordered_set<std::string_view> names;

  // Inputs and initializers of a nested graph may shadow a name around it, as ONNX's own
  // checker has it; results of nodes may not.
  bool has(std::string_view name) const {
    for (const NameScope* scope = this; scope; scope = scope->outer)
      if (scope->names.contains(name)) return true;
    return false;
  }
};

class Checker {
public:
  Checker(const Model& model, const Limits& limits, Diags& diags)
      : model_(model), limits_(limits), diags_(diags) {}
  void versions();
  void graph(const ModelGraph& graph, const NameScope* outer, const Opsets& opsets,
             const std::string& path);
  void function(const ModelFunction& function);

private:
  void nodes(const std::vector<ModelNode>& nodes, NameScope& scope, const Opsets& opsets,
             const std::string& path);
  void node(const ModelNode& node, const NameScope& scope, const Opsets& opsets,
            const ModelPlace& place);
  void define(NameScope& scope, const std::string& name, bool is_result,
              const ModelPlace& place);
  void invalid(const std::string& what, const ModelPlace& place = {}) {
    // A model with thousands of faults needs no line for each.
    constexpr size_t kEnough = 100;
    if (diags_.error_count() < kEnough) diags_.error(Exit::InvalidModel, what, place);
  }

  const Model& model_;
  const Limits& limits_;
  Diags& diags_;
  // Where each name of the graph at hand is made, to explain a use before it.
  std::unordered_map<std::string_view, int64_t> made_at_;
};

void Checker::versions() {
  if (model_.ir_version < 1) invalid("the IR version is missing");
  if (model_.ir_version > onnx::IR_VERSION && !limits_.allow_newer)
    diags_.error(Exit::Unsupported, "IR version " + std::to_string(model_.ir_version) +
                                        " is newer than the newest known, " +
                                        std::to_string(onnx::IR_VERSION) +
                                        " (--allow-newer-ir reads it all the same)");
  if (model_.opsets.empty()) invalid("the model imports no opset");
  for (const auto& [domain, version] : model_.opsets) {
    if (version < 1)
      invalid("opset " + std::to_string(version) + " of domain " + quoted(domain) +
              " does not exist");
    if (domain.empty() && version > kNewestOpset && !limits_.allow_newer)
      diags_.error(Exit::Unsupported, "opset " + std::to_string(version) +
                                          " is newer than the newest known, " +
                                          std::to_string(kNewestOpset) +
                                          " (--allow-newer-ir reads it all the same)");
  }
}

void Checker::define(NameScope& scope, const std::string& name, bool is_result,
                     const ModelPlace& place) {
  if (name.empty()) return;
  if (is_result ? scope.has(name) : scope.names.contains(name))
    return invalid("the name " + quoted(name) + " is defined twice", place);
  scope.names.insert(name);
}

void Checker::graph(const ModelGraph& graph, const NameScope* outer, const Opsets& opsets,
                    const std::string& path) {
  NameScope scope{outer, {}};
  ModelPlace place;
  place.graph = path;
  for (const ModelValue& input : graph.inputs) {
    if (input.name.empty()) invalid("an input of the graph has no name", place);
    define(scope, input.name, false, place);
  }
  std::unordered_set<std::string_view> initializers;
  for (const ModelTensor& tensor : graph.initializers) {
    if (tensor.name.empty()) invalid("an initializer has no name", place);
    if (!initializers.insert(tensor.name).second)
      invalid("two initializers are named " + quoted(tensor.name), place);
    // An initializer may give a value to an input of its own graph.
    else if (!scope.names.contains(tensor.name))
      define(scope, tensor.name, false, place);
  }
  nodes(graph.nodes, scope, opsets, path);
  if (graph.outputs.empty()) invalid("the graph has no output", place);
  std::unordered_set<std::string_view> outputs;
  for (const ModelValue& output : graph.outputs) {
    if (!scope.has(output.name))
      invalid("nothing makes the graph's output " + quoted(output.name), place);
    if (!outputs.insert(output.name).second && !outer)
      invalid("two outputs are named " + quoted(output.name), place);
  }
}

void Checker::nodes(const std::vector<ModelNode>& nodes, NameScope& scope,
                    const Opsets& opsets, const std::string& path) {
  std::unordered_map<std::string_view, int64_t> made_at;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      made_at.emplace(name, static_cast<int64_t>(i));
  for (size_t i = 0; i < nodes.size(); ++i) {
    made_at_.swap(made_at);
    const ModelPlace place{static_cast<int64_t>(i), path, nodes[i].name,
                           full_op_name(nodes[i])};
    node(nodes[i], scope, opsets, place);
    made_at_.swap(made_at);
    for (const std::string& name : nodes[i].outputs) define(scope, name, true, place);
  }
}

void Checker::node(const ModelNode& node, const NameScope& scope, const Opsets& opsets,
                   const ModelPlace& place) {
  if (!opsets.contains(node.domain))
    invalid("the model imports no opset of domain " + quoted(node.domain), place);
  for (const std::string& name : node.inputs) {
    if (name.empty() || scope.has(name)) continue;
    const auto made = made_at_.find(name);
    if (made == made_at_.end())
      invalid("nothing makes its input " + quoted(name), place);
    else
      invalid("its input " + quoted(name) + " is made later, by node " +
                  std::to_string(made->second) +
                  ": nodes must stand in order, and a cycle has none",
              place);
  }
  std::unordered_set<std::string_view> attributes;
  for (const ModelAttribute& attribute : node.attributes) {
    if (!attributes.insert(attribute.name).second)
      invalid("attribute " + quoted(attribute.name) + " is given twice", place);
    if (attribute.graph)
      graph(*attribute.graph, &scope, opsets, place_path(place) + "/" + attribute.name);
  }
}

void Checker::function(const ModelFunction& function) {
  NameScope scope;
  ModelPlace place;
  place.graph = "function " + function.name;
  for (const std::string& input : function.inputs) define(scope, input, false, place);
  // A function that does not import a domain means the model's version of it.
  Opsets opsets = function.opsets;
  opsets.insert(model_.opsets.begin(), model_.opsets.end());
  nodes(function.nodes, scope, opsets, place.graph);
  for (const std::string& output : function.outputs)
    if (!scope.has(output))
      invalid("nothing makes the function's output " + quoted(output), place);
}

} // namespace

void check_model(const Model& model, const Limits& limits, Diags& diags) {
  Checker checker(model, limits, diags);
  checker.versions();
  checker.graph(model.graph, nullptr, model.opsets, "");
  std::unordered_set<std::string> functions;
  for (const ModelFunction& function : model.functions) {
    if (!functions
             .insert(function.domain + '\0' + function.name + '\0' + function.overload)
             .second)
      diags.error(Exit::InvalidModel,
                  "function " + quoted(function.name) + " is defined twice");
    checker.function(function);
  }
}

} // namespace svod::importer
