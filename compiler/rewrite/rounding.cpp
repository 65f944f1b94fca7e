#include "compiler/rewrite/rounding.h"

namespace svod::rewrite {

bool rounds_to_integer(Op op, DType result) {
  switch (op) {
  case Op::Floor:
  case Op::Ceil:
  case Op::Round:
  case Op::Trunc:
  case Op::Mod:
  case Op::Fmod:
    return true;
  case Op::Cast:
    return is_integer(result);
  case Op::Loop:
  case Op::If:
    return true; // its bodies may
  default:
    return false;
  }
}

// A region has that of its results. Comparisons are left out: leaky relu compares, and
// does not jump.
bool passes_rounding(const Node& node) {
  if (node.op == Op::Result) return true;
  OpClass kind = info(node.op).op_class;
  bool floats = is_float(node.dtype);
  return floats && (kind == OpClass::Map || kind == OpClass::View ||
                    kind == OpClass::Convert || kind == OpClass::Join);
}

std::vector<bool> rounded_later(const Graph& graph) {
  std::vector<bool> rounded(graph.size());
  const std::vector<NodeId> live = graph.live_nodes();
  for (auto id = live.rbegin(); id != live.rend(); ++id) {
    const Node& node = graph[*id];
    if (rounds_to_integer(node.op, node.dtype) || (passes_rounding(node) && rounded[*id]))
      for (NodeId input : node.inputs) rounded[input] = true;
  }
  return rounded;
}

} // namespace svod::rewrite
