#include "compiler/rewrite/settle_states.h"

#include "compiler/ir/build.h"

#include <algorithm>

namespace svod::rewrite {

void settle_states(Graph& graph) {
  std::vector<StateLink> states = graph.states();
  for (StateLink& state : states) {
    if (state.axis < 0) continue;
    const NodeId node = graph.outputs()[state.output].node;
    const NodeId in = graph.inputs()[state.input].node;
    const auto outputs = [&](NodeId n) {
      return std::ranges::count(graph.outputs(), n, &GraphOutput::node);
    };
    if (outputs(node) == 1 && outputs(in) == 0 && graph.depends_on_input(node) &&
        graph[node].op != Op::Input)
      continue;
    const Shape& all = graph[node].shape;
    Shape start(all.size(), 0), step(all.size(), 1), extent = all;
    const auto axis = static_cast<size_t>(state.axis);
    start[axis] = state.grown;
    extent[axis] -= state.grown;
    graph.set_output(state.output, slice(graph, node, start, step, extent));
    state = {state.input, state.output};
  }
  graph.set_states(std::move(states));
}

} // namespace svod::rewrite
