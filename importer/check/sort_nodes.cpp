// Kahn's algorithm, always taking the first node of the file that is ready: the order
// depends on nothing but the file, and nodes move no further than they must.
#include "importer/check/sort_nodes.h"

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

namespace svod::importer {
namespace {

using MadeAt = std::unordered_map<std::string_view, size_t>;

// Calls `use` with every name that the node reads, those of the graphs in its attributes
// included.
template <class F> void for_each_use(const ModelNode& node, F&& use) {
  for (const std::string& name : node.inputs) use(name);
  for (const ModelAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const ModelNode& inner : attribute.graph->nodes) for_each_use(inner, use);
    for (const ModelValue& output : attribute.graph->outputs) use(output.name);
  }
}

// For every node the nodes that must come before it, by what makes the names it reads.
std::vector<std::vector<size_t>> makers_of(const std::vector<ModelNode>& nodes) {
  MadeAt made_at;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty()) made_at.emplace(name, i);
  std::vector<std::vector<size_t>> makers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for_each_use(nodes[i], [&](const std::string& name) {
      auto maker = made_at.find(name);
      if (maker != made_at.end() && maker->second != i)
        makers[i].push_back(maker->second);
    });
  return makers;
}

// The nodes' indices in order; fewer than there are nodes when a cycle holds the others
// back.
std::vector<size_t> sorted_indices(const std::vector<std::vector<size_t>>& makers) {
  std::vector<std::vector<size_t>> users(makers.size());
  std::vector<size_t> missing(makers.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < makers.size(); ++i) {
    missing[i] = makers[i].size();
    for (size_t maker : makers[i]) users[maker].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (size_t user : users[next])
      if (--missing[user] == 0) ready.push(user);
  }
  return order;
}

} // namespace

bool sort_nodes(ModelGraph& graph) {
  bool moved = false;
  for (ModelNode& node : graph.nodes)
    for (ModelAttribute& attribute : node.attributes)
      if (attribute.graph) moved |= sort_nodes(*attribute.graph);
  const std::vector<std::vector<size_t>> makers = makers_of(graph.nodes);
  bool in_order = true;
  for (size_t i = 0; i < makers.size(); ++i)
    for (size_t maker : makers[i]) in_order = in_order && maker < i;
  if (in_order) return moved;
  const std::vector<size_t> order = sorted_indices(makers);
  if (order.size() != graph.nodes.size()) return moved;
  std::vector<ModelNode> sorted;
  for (size_t i : order) sorted.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(sorted);
  return true;
}

} // namespace svod::importer
