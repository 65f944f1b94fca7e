// Copies the graph; a convolution for which the count of flops and bytes says so, and
// whose sampled error is within bounds, is replaced on the way.
#include "compiler/fuse/winograd.h"
#include "compiler/ir/build.h"

namespace svod {

// Error of a Winograd layer that --accuracy fast accepts, relative to its outputs' size.
static constexpr double kErrorBound = 1e-4;

// What one core does in a nanosecond: multiply-adds count two. Weights come from memory
// once, transformed tiles travel through the caches.
static constexpr double kFlopsPerNs = 100, kWeightBytesPerNs = 20, kTileBytesPerNs = 25;

static bool pays(const Convolution& c, int64_t lanes) {
  if (c.inputs % lanes != 0 || c.outputs % lanes != 0) return false;
  int64_t rows = (c.height + 3) / 4, columns = (c.width + 3) / 4;
  double tiles = double(c.batch * rows * columns);
  double pixels = double(c.batch * c.height * c.width);
  double products = double(c.inputs) * double(c.outputs);
  double direct = 2 * 9 * products * pixels / kFlopsPerNs;
  direct += 4 * 9 * products / kWeightBytesPerNs;
  double transformed = 2 * 36 * products * tiles / kFlopsPerNs;
  transformed += 4 * 36 * products / kWeightBytesPerNs;
  transformed += 2 * 4 * 36 * tiles * double(c.inputs + c.outputs) / kTileBytesPerNs;
  return tiles >= 8 && transformed < 0.85 * direct;
}

// What walks down trees reach is reduced block by block: the trees of a block stay in the
// first cache while rows pass, which one loop over all trees would not allow.
static bool in_two_steps(const Graph& g, const Node& node) {
  bool plain = is_reduce(node.op) && node.op != Op::ArgMin && node.op != Op::ArgMax;
  if (!plain || node.payload.size() < 2) return false;
  NodeId n = node.inputs[0];
  while (g[n].op == Op::Reshape || g[n].op == Op::Bitcast) n = g[n].inputs[0];
  return g[n].op == Op::Descend;
}

static NodeId reduce_in_two_steps(Algorithms& out, const Node& node, NodeId x) {
  Payload axes = node.payload;
  NodeId blocks = reduce(out.graph, node.op, x, {axes.back()});
  out.stored.insert(blocks);
  axes.pop_back();
  return reduce(out.graph, node.op, blocks, axes);
}

Algorithms choose_algorithms(const Graph& graph, const Target& target, bool direct_only) {
  Algorithms out;
  int64_t lanes = target.levels[0].lanes;
  bool vectors = target.levels[0].register_bits > 32 && target.kind == TargetKind::Linux;
  std::vector<bool> known(graph.size());
  std::vector<NodeId> now(graph.size(), kNoNode);
  for (const GraphInput& in : graph.inputs())
    now[in.node] =
        out.graph.add_input(in.name, graph[in.node].dtype, graph[in.node].shape, in.seen);
  out.graph.copy_source_names(graph);
  for (uint32_t b = 0; b < graph.blob_count(); ++b) out.graph.add_blob(graph.blob(b));
  for (uint32_t b = 0; b < graph.body_count(); ++b) out.graph.add_body(graph.body(b));
  for (NodeId n : graph.live_nodes()) {
    const Node& node = graph[n];
    known[n] = !is_opaque(node.op);
    for (NodeId in : node.inputs) known[n] = known[n] && known[in];
    if (node.op == Op::Input) continue;
    std::optional<Convolution> conv;
    if (vectors && !direct_only) conv = match_convolution(graph, n, known);
    if (conv && pays(*conv, lanes) && winograd_error(graph, *conv) <= kErrorBound) {
      size_t first = out.graph.size();
      now[n] = winograd(out, *conv, now[conv->input], now[conv->weight], lanes);
      for (size_t made = first; made < out.graph.size(); ++made)
        out.graph.credit(static_cast<NodeId>(made), graph.sources(n));
      continue;
    }
    if (in_two_steps(graph, node)) {
      now[n] = reduce_in_two_steps(out, node, now[node.inputs[0]]);
      out.graph.credit(now[n], graph.sources(n));
      continue;
    }
    Node copy = node;
    for (NodeId& in : copy.inputs) in = now[in];
    // Columns of the keys are found at run time: they lie at one distance.
    if (node.op == Op::Descend) {
      out.stored.insert(copy.inputs[0]);
      out.layouts[copy.inputs[0]] = row_major(2);
    }
    now[n] = out.graph.intern(std::move(copy));
    out.graph.credit(now[n], graph.sources(n));
  }
  for (const GraphOutput& o : graph.outputs())
    out.graph.add_output(o.name, now[o.node], o.seen);
  return out;
}

} // namespace svod
