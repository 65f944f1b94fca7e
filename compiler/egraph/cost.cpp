#include "compiler/egraph/cost.h"

#include <algorithm>
#include <cmath>

namespace svod::egraph {

namespace {

// Operations of a function for one element, a sum being one: those of the polynomials and
// divisions of scalar_functions.h, to the nearest handful.
double operations(Op op) {
  switch (op) {
  case Op::Div:
  case Op::Sqrt:
  case Op::Reciprocal:
    return 4;
  case Op::Exp:
  case Op::Log:
  case Op::Log1p:
  case Op::Sigmoid:
  case Op::Tanh:
  case Op::Erf:
    return 12;
  case Op::Gelu:
  case Op::Sin:
  case Op::Cos:
    return 16;
  case Op::Tan:
  case Op::Asin:
  case Op::Acos:
  case Op::Atan:
  case Op::Atan2:
  case Op::Sinh:
  case Op::Cosh:
  case Op::Asinh:
  case Op::Acosh:
  case Op::Atanh:
  case Op::Pow:
    return 24;
  default:
    return 1;
  }
}

double elements(const Graph& g, NodeId id) {
  return static_cast<double>(element_count(g[id].shape));
}

double bytes(const Graph& g, NodeId id) {
  return elements(g, id) * static_cast<double>(byte_size(g[id].dtype));
}

int64_t in_picoseconds(double ns) { return std::llround(std::min(ns * 1e3, 1e15)); }

// Stored by one kernel and loaded by another.
double pass_on_ns(double bytes, const Machine& m) {
  const bool far = bytes > static_cast<double>(m.far_bytes());
  const double each =
      far ? m.memory_bytes_per_ns : m.second.bytes_per_clock * m.clock_ghz;
  return 2 * bytes / each;
}

// A permute of axes that are longer than 1.
bool moves_elements(const Graph& g, NodeId id) {
  const Node& node = g[id];
  if (node.op != Op::Permute) return false;
  Payload axes = node.payload;
  const Shape& from = g[node.inputs[0]].shape;
  std::erase_if(axes, [&](int64_t axis) { return from[static_cast<size_t>(axis)] == 1; });
  return !std::ranges::is_sorted(axes);
}

} // namespace

int64_t node_cost(const Graph& g, NodeId id, const Machine& m, Views views) {
  const Node& node = g[id];
  switch (info(node.op).op_class) {
  case OpClass::Source:
    return 0;
  case OpClass::View:
    if (views == Views::Free || !moves_elements(g, id)) return 0;
    return in_picoseconds(pass_on_ns(bytes(g, id), m));
  case OpClass::Map:
  case OpClass::Convert:
    return in_picoseconds(elements(g, id) * operations(node.op) / m.gflops);
  default:
    break;
  }
  double work = elements(g, id);
  for (NodeId input : node.inputs) work = std::max(work, elements(g, input));
  return in_picoseconds(work / m.gflops + m.launch_ns + pass_on_ns(bytes(g, id), m));
}

int64_t known_cost(const Graph& g, NodeId id, const Machine& m) {
  // What repeats is stored once.
  while (is_view(g[id].op) && bytes(g, g[id].inputs[0]) <= bytes(g, id))
    id = g[id].inputs[0];
  if (g[id].op == Op::Constant || g[id].op == Op::Iota) return 0;
  const double size = bytes(g, id);
  const bool far = size > static_cast<double>(m.resident_weights());
  return far ? in_picoseconds(m.memory_seen * size / m.memory_bytes_per_ns)
             : in_picoseconds(size / (m.second.bytes_per_clock * m.clock_ghz));
}

// A known value is paid for where something that is not known reads it.
int64_t graph_cost(const Graph& graph, const Machine& machine, Views views) {
  std::vector<bool> paid(graph.size());
  int64_t cost = 0;
  const auto pay = [&](NodeId id) {
    if (!graph.depends_on_input(id) && !paid[id])
      cost += known_cost(graph, id, machine), paid[id] = true;
  };
  for (NodeId id : graph.live_nodes()) {
    if (!graph.depends_on_input(id)) continue;
    cost += node_cost(graph, id, machine, views);
    for (NodeId input : graph[id].inputs) pay(input);
  }
  for (const GraphOutput& output : graph.outputs()) pay(output.node);
  return cost;
}

} // namespace svod::egraph
