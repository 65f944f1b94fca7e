// A call of a function becomes its nodes, in a scope of their own: they see the call's
// inputs and attributes, and nothing of the graph around it.
#include "importer/driver/graph_import.h"

#include <algorithm>

namespace svod::importer {

bool GraphImport::bind_attributes(const ModelFunction& function, const ModelNode& node,
                                  const ModelPlace& place, CallFrame& frame) {
  for (const ModelAttribute& attribute : function.attribute_defaults) {
    if (attribute.graph || !attribute.reference.empty()) {
      fail(Exit::InvalidModel,
           "the default of attribute '" + escaped(attribute.name) + "' is no value",
           place);
      return false;
    }
    frame.attributes[attribute.name] = &attribute;
  }
  for (const ModelAttribute& attribute : node.attributes) {
    const bool known = frame.attributes.contains(attribute.name) ||
                       std::ranges::find(function.attributes, attribute.name) !=
                           function.attributes.end();
    if (!known) {
      fail(Exit::InvalidModel,
           "the function has no attribute '" + escaped(attribute.name) + "'", place);
      return false;
    }
    // It would see the names around the call, which the body does not have.
    if (attribute.graph) {
      fail(Exit::Unsupported, "a graph as attribute of a function is not supported",
           place);
      return false;
    }
    frame.attributes[attribute.name] = &attribute;
  }
  return true;
}

Results GraphImport::inline_function(const Callable& callable, const ModelNode& node,
                                     const std::vector<NodeId>& inputs,
                                     const ModelPlace& place) {
  const ModelFunction& function = *callable.function;
  if (inputs.size() > function.inputs.size() ||
      node.outputs.size() > function.outputs.size()) {
    fail(Exit::InvalidModel, "the function has fewer inputs or outputs than the call",
         place);
    return {};
  }
  if (import_.depth >= import_.limits.call_depth + import_.limits.nesting) {
    fail(Exit::InvalidModel, "functions and graphs are nested too deeply", place);
    return {};
  }
  CallFrame frame;
  frame.opsets = &callable.opsets;
  frame.in_function = true;
  if (!bind_attributes(function, node, place, frame)) return {};
  Scope scope;
  scope.level = import_.open_bodies.size();
  scope.frame = &frame;
  scope.path = place_path(place);
  for (size_t i = 0; i < function.inputs.size(); ++i)
    scope.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : kNoNode;

  std::vector<std::string_view> wanted;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) wanted.push_back(function.outputs[i]);
  ++import_.depth;
  import_nodes(function.nodes, needed_nodes(function.nodes, wanted), scope);
  --import_.depth;

  Results results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    results.push_back(kPoisoned);
    if (node.outputs[i].empty()) continue;
    results[i] = look_up(scope, function.outputs[i], place);
    if (results[i] != kNoNode) continue;
    fail(Exit::InvalidModel, "its output is an input that was left out", place);
    results[i] = kPoisoned;
  }
  return results;
}

} // namespace svod::importer
