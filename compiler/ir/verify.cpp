// The invariants of a graph: inputs come before users (so there is no cycle), every
// node's type is what its op, inputs and payload give, equal nodes are one node, input
// nodes and the list of inputs agree, and outputs exist.
#include "compiler/ir/verify.h"

#include "compiler/ir/shape_rules.h"
#include "compiler/ir/text.h"

namespace svod {

static std::string node_fault(const Graph& g, NodeId id) {
  const Node& node = g[id];
  for (NodeId input : node.inputs)
    if (input >= id) return "an input does not come before it";
  Node expected = node;
  std::string why = infer_type(g, expected);
  if (!why.empty()) return why;
  if (expected.dtype != node.dtype || expected.shape != node.shape)
    return "its type is " + type_text(node.dtype, node.shape) + ", but must be " +
           type_text(expected.dtype, expected.shape);
  if (node.op == Op::Input) {
    auto index = static_cast<uint64_t>(node.payload[0]);
    if (index >= g.inputs().size() || g.inputs()[index].node != id)
      return "it is not in the list of inputs";
  }
  return "";
}

std::vector<std::string> verify(const Graph& g) {
  std::vector<std::string> faults;
  std::unordered_multimap<uint64_t, NodeId> seen;
  for (NodeId id = 0; id < g.size(); ++id) {
    std::string where =
        '%' + std::to_string(id) + " (" + std::string(info(g[id].op).text) + ')';
    std::string why = node_fault(g, id);
    if (!why.empty()) faults.push_back(where + ": " + why);
    uint64_t hash = hash_node(g[id]);
    auto [begin, end] = seen.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (g[it->second] == g[id])
        faults.push_back(where + ": equals %" + std::to_string(it->second));
    seen.emplace(hash, id);
  }
  for (uint32_t id = 0; id < g.body_count(); ++id)
    for (const std::string& why : verify(*g.body(id)))
      faults.push_back("body " + std::to_string(id) + ": " + why);
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    NodeId node = g.inputs()[i].node;
    if (node >= g.size() || g[node].op != Op::Input ||
        g[node].payload != Payload{static_cast<int64_t>(i)}) {
      faults.push_back("input " + std::to_string(i) + ": is not its node");
      continue;
    }
    std::string why = interface_fault(g, node, g.inputs()[i].seen);
    if (!why.empty()) faults.push_back("input " + std::to_string(i) + ": " + why);
  }
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    NodeId node = g.outputs()[i].node;
    std::string why = node < g.size() ? interface_fault(g, node, g.outputs()[i].seen)
                                      : "does not exist";
    if (!why.empty()) faults.push_back("output " + std::to_string(i) + ": " + why);
  }
  return faults;
}

} // namespace svod
