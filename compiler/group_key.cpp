#include "compiler/group_key.h"

#include "compiler/select/group.h"

#include <algorithm>

namespace svod {

static std::string text_of(const std::string& name, const auto& numbers) {
  std::string out = name;
  for (auto number : numbers) out += " " + std::to_string(number);
  return out + "\n";
}

static void sort_once(std::vector<NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
}

GroupNodes nodes_of(const Graph& graph, const Grouping& grouping, const Group& group) {
  GroupNodes out;
  out.stored.push_back(group.target);
  select::visit_kernel(graph, grouping, group.root, [&](NodeId n) {
    out.computed.push_back(n);
    // A copy to where others are beside it reads what is stored already.
    if (grouping.stored[n]) out.stored.push_back(n);
    for (NodeId in : graph[n].inputs)
      if (grouping.stored[in]) out.stored.push_back(in);
    return true;
  });
  sort_once(out.computed);
  sort_once(out.stored);
  return out;
}

std::string group_key(const Group& group, const GroupNodes& nodes,
                      const std::vector<Buffer>& buffers,
                      const std::map<NodeId, BufferId>& buffer_of) {
  Grouping alone;
  alone.groups = {group};
  std::string key = print(alone) + text_of("computes", nodes.computed) +
                    text_of("row axes", group.row_axes);
  for (NodeId n : nodes.stored)
    if (const auto buffer = buffer_of.find(n); buffer != buffer_of.end())
      key += std::to_string(n) + " " + print(buffers[buffer->second].layout) + "\n";
  return key;
}

} // namespace svod
