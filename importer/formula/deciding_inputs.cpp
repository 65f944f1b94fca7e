#include "importer/formula/deciding_inputs.h"

namespace svod::importer {

std::set<std::string> deciding_inputs(const Graph& g, NodeId id) {
  std::vector<NodeId> open{id};
  std::set<NodeId> seen;
  std::set<std::string> names;
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (!g.depends_on_input(at) || !seen.insert(at).second) continue;
    const Node& node = g[at];
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    if (node.op != Op::Input) continue;
    if (element_count(node.shape) > kMostFixedElements) return {};
    names.insert(g.inputs()[static_cast<size_t>(node.payload[0])].name);
  }
  return names;
}

} // namespace svod::importer
