// What a name inside the model stands for where a node reads it: a result of another
// node, an initializer, an attribute that a call of a function gives. Only nodes that
// wanted names need are looked at, so a dead node of an unknown operator stops nothing.
#include "compiler/support/check.h"
#include "importer/driver/graph_import.h"
#include "importer/formula/complex.h"
#include "importer/formula/packing.h"

namespace svod::importer {

namespace {

// Names that the graphs inside a node's attributes take from around them. Names they make
// themselves are in the list too, which is harmless: no name around them is equal.
void add_captured(const ModelNode& node, std::unordered_set<std::string_view>& names) {
  add_gradient_names(node, names);
  for (const ModelAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const ModelNode& inner : attribute.graph->nodes) {
      names.insert(inner.inputs.begin(), inner.inputs.end());
      add_captured(inner, names);
    }
    for (const ModelValue& output : attribute.graph->outputs) names.insert(output.name);
  }
}

} // namespace

Needed needed_nodes(const std::vector<ModelNode>& nodes,
                    const std::vector<std::string_view>& wanted) {
  Needed needed;
  needed.names.insert(wanted.begin(), wanted.end());
  needed.live.resize(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    needed.live[i] = std::ranges::any_of(nodes[i].outputs, [&](const std::string& name) {
      return !name.empty() && needed.names.contains(name);
    });
    if (!needed.live[i]) continue;
    needed.names.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
    add_captured(nodes[i], needed.names);
  }
  return needed;
}

std::vector<std::string_view> output_names(const ModelGraph& graph) {
  std::vector<std::string_view> names;
  for (const ModelValue& output : graph.outputs) names.push_back(output.name);
  return names;
}

NodeId GraphImport::make_tensor(const ModelTensor& tensor, const ModelPlace& place) {
  const auto known = import_.frame.tensors.find(&tensor);
  if (known != import_.frame.tensors.end()) return known->second;
  NodeId id = kPoisoned;
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  if (const auto part = complex_part(tensor.onnx_type))
    id = complex_weight(g(), import_.compounds, tensor, *part);
  else if (dtype == DType::String)
    id = import_.frame.strings.tensor(g(), tensor.dims, tensor.strings);
  else if (dtype)
    id = weight_of(g(), tensor, *dtype, import_.options.exact);
  else
    fail(Exit::Unsupported,
         "initializer " + quoted(tensor.name) + " has element type " +
             onnx_type_name(tensor.onnx_type) + ", which is not supported",
         place);
  import_.frame.tensors.emplace(&tensor, id);
  return id;
}

NodeId GraphImport::look_up(const Scope& scope, std::string_view name,
                            const ModelPlace& place) {
  for (const Scope* at = &scope; at; at = at->outer) {
    if (const auto found = at->values.find(name); found != at->values.end())
      return regions_.capture(found->second, at->level, place);
    if (const auto found = at->initializers.find(name); found != at->initializers.end())
      return make_tensor(*found->second, place);
  }
  SVOD_CHECK(false) << "no value " << quoted(name); // check_model saw to that
  return kPoisoned;
}

// The node with attribute references replaced by what the call of the function gives, and
// without the names of outputs that nobody needs.
std::optional<ModelNode> GraphImport::resolved(const ModelNode& node,
                                               const Needed& needed, const Scope& scope,
                                               const ModelPlace& place) {
  ModelNode copy = node;
  for (std::string& name : copy.outputs)
    if (!needed.names.contains(name)) name.clear();
  std::vector<ModelAttribute> attributes;
  for (ModelAttribute& attribute : copy.attributes) {
    if (attribute.reference.empty()) {
      attributes.push_back(std::move(attribute));
      continue;
    }
    const auto given = scope.frame->attributes.find(attribute.reference);
    if (given == scope.frame->attributes.end()) {
      if (scope.frame->in_function) continue; // left out by the call: left out here
      fail(Exit::InvalidModel,
           "attribute " + quoted(attribute.name) +
               " refers to an attribute of a function",
           place);
      return std::nullopt;
    }
    attributes.push_back(*given->second);
    attributes.back().name = attribute.name;
  }
  copy.attributes = std::move(attributes);
  return copy;
}

} // namespace svod::importer
