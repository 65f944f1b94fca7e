// A graph inside a node, imported where the node stands: it sees the names around it.
#include "importer/driver/graph_import.h"

#include <algorithm>

namespace svod::importer {

namespace {

bool any_poisoned(const std::vector<NodeId>& values) {
  return std::ranges::find(values, kPoisoned) != values.end();
}

} // namespace

Results GraphImport::run_body(const ModelAttribute& body, const Results& inputs,
                              const ModelPlace& place, const Scope& outer) {
  const ModelGraph& graph = *body.graph;
  if (!count_node(place)) return {};
  if (graph.inputs.size() != inputs.size()) {
    fail(Exit::InvalidModel,
         "graph '" + body.name + "' has " + std::to_string(graph.inputs.size()) +
             " inputs, the operator gives it " + std::to_string(inputs.size()),
         place);
    return {};
  }
  Scope scope;
  scope.outer = &outer;
  scope.frame = outer.frame;
  scope.path = place_path(place) + "/" + body.name;
  open_graph(graph, scope);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.values[graph.inputs[i].name] = inputs[i];
  ++import_.depth;
  import_nodes(graph.nodes, needed_nodes(graph.nodes, output_names(graph)), scope);
  --import_.depth;
  Results results;
  for (const ModelValue& output : graph.outputs)
    results.push_back(look_up(scope, output.name, place));
  if (import_.stopped || any_poisoned(results)) return {};
  if (std::ranges::find(results, kNoNode) == results.end()) return results;
  fail(Exit::InvalidModel, "a result of graph '" + body.name + "' was left out", place);
  return {};
}

// For rules whose operator has a graph as attribute; `run_body` with the limit of
// nesting.
Results GraphImport::run_graph_attribute(const ModelAttribute& body,
                                         const Results& inputs, const ModelPlace& place,
                                         const Scope& outer) {
  if (import_.depth < import_.limits.call_depth + import_.limits.nesting)
    return run_body(body, inputs, place, outer);
  fail(Exit::InvalidModel, "functions and graphs are nested too deeply", place);
  return {};
}

} // namespace svod::importer
