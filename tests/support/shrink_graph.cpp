// Shrinking a failing graph: every step tries something smaller and keeps it if it still
// fails.
#include "tests/support/random_graph.h"

#include <map>

namespace svod::test {

namespace {

// The values of all live nodes.
std::map<NodeId, Tensor> all_values(const RandomGraph& from) {
  std::map<NodeId, Tensor> values;
  Graph all = from.graph;
  std::vector<NodeId> live = all.live_nodes();
  size_t first = all.outputs().size();
  for (NodeId id : live) all.add_output("", id);
  Evaluated result = evaluate(all, from.inputs);
  for (size_t i = 0; i < live.size() && result.failed == kNoNode; ++i)
    values[live[i]] = std::move(result.outputs[first + i]);
  return values;
}

// A copy with the given outputs in which the nodes in `cut` are inputs, without dead
// nodes.
RandomGraph copy_without(const RandomGraph& from, const std::vector<NodeId>& outputs,
                         NodeId cut, const std::map<NodeId, Tensor>& values) {
  RandomGraph out;
  std::vector<bool> needed(from.graph.size());
  for (NodeId id : outputs) needed[id] = true;
  for (NodeId id = static_cast<NodeId>(needed.size()); id-- > 0;)
    if (needed[id] && id != cut)
      for (NodeId input : from.graph[id].inputs) needed[input] = true;
  std::vector<NodeId> to(from.graph.size(), kNoNode);
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    Node node = from.graph[id];
    for (NodeId& input : node.inputs) input = to[input];
    if (node.op == Op::Input || id == cut) {
      to[id] = out.graph.add_input("x" + std::to_string(out.inputs.size()), node.dtype,
                                   node.shape);
      out.inputs.push_back(values.at(id));
    } else {
      if (node.op == Op::Weight)
        node.payload[0] =
            out.graph.add_blob(from.graph.blob(static_cast<uint32_t>(node.payload[0])));
      to[id] = out.graph.intern(std::move(node));
    }
    out.tolerance.resize(out.graph.size());
    out.tolerance[to[id]] = from.tolerance[id];
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    out.graph.add_output("y" + std::to_string(i), to[outputs[i]]);
  return out;
}

// One smaller graph that still fails, if there is one.
bool shrink_once(RandomGraph& failing,
                 const std::function<bool(const RandomGraph&)>& fails) {
  std::map<NodeId, Tensor> values = all_values(failing);
  if (values.empty()) return false;
  std::vector<NodeId> outputs;
  for (const GraphOutput& output : failing.graph.outputs())
    outputs.push_back(output.node);
  auto keep_if_fails = [&](RandomGraph smaller) {
    if (!fails(smaller)) return false;
    failing = std::move(smaller);
    return true;
  };
  for (NodeId output : outputs)
    if (outputs.size() > 1 &&
        keep_if_fails(copy_without(failing, {output}, kNoNode, values)))
      return true;
  for (NodeId id : failing.graph.live_nodes()) {
    if (info(failing.graph[id].op).op_class == OpClass::Source) continue;
    bool is_output = outputs.size() == 1 && outputs[0] == id;
    if (!is_output && keep_if_fails(copy_without(failing, {id}, kNoNode, values)))
      return true;
    if (!is_output && keep_if_fails(copy_without(failing, outputs, id, values)))
      return true;
  }
  return false;
}

} // namespace

RandomGraph shrink(RandomGraph failing,
                   const std::function<bool(const RandomGraph&)>& fails) {
  while (shrink_once(failing, fails)) {
  }
  return failing;
}

} // namespace svod::test
