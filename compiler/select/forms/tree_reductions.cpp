#include "compiler/select/forms/tree_reductions.h"

#include "compiler/ir/build.h"

namespace svod::select {

bool reduces_trees(const Graph& g, const Node& node) {
  bool plain = is_reduce(node.op) && node.op != Op::ArgMin && node.op != Op::ArgMax;
  if (!plain || node.payload.size() < 2) return false;
  NodeId n = node.inputs[0];
  while (g[n].op == Op::Reshape || g[n].op == Op::Bitcast) n = g[n].inputs[0];
  return g[n].op == Op::Descend;
}

NodeId reduce_by_blocks(Algorithms& out, const Node& node, NodeId x) {
  Payload axes = node.payload;
  NodeId blocks = reduce(out.graph, node.op, x, {axes.back()});
  out.stored.insert(blocks);
  axes.pop_back();
  return reduce(out.graph, node.op, blocks, axes);
}

} // namespace svod::select
