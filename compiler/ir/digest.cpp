// Writes the graph in a byte encoding that mentions no ids, enumerator values, names or
// pointers: nodes are numbered in depth-first order from the outputs, ops and dtypes are
// written as text. The first text is the version of this encoding.
#include "compiler/ir/digest.h"

#include <map>

namespace svod {

std::vector<NodeId> walk_order(const Graph& g) {
  std::vector<NodeId> order;
  std::vector<bool> seen(g.size());
  struct Frame {
    NodeId node;
    size_t next;
  };
  std::vector<Frame> stack; // not recursion: graphs are thousands of nodes deep
  auto enter = [&](NodeId id) {
    if (!seen[id]) stack.push_back({id, 0});
    seen[id] = true;
  };
  for (const GraphOutput& output : g.outputs()) {
    enter(output.node);
    while (!stack.empty()) {
      Frame& top = stack.back();
      const std::vector<NodeId>& inputs = g[top.node].inputs;
      if (top.next < inputs.size()) {
        enter(inputs[top.next++]);
        continue;
      }
      order.push_back(top.node);
      stack.pop_back();
    }
  }
  return order;
}

static void write_type(DigestWriter& out, const Node& node) {
  out.text(info(node.dtype).text);
  out.numbers(node.shape);
}

static void write_interface(DigestWriter& out, const Interface& seen) {
  out.text(onnx_type_text(seen.onnx_type));
  out.numbers(seen.shape);
  if (seen.extents < 0) return;
  out.text("extents");
  out.number(static_cast<uint64_t>(seen.extents));
}

static void write_graph(DigestWriter& out, const Graph& g,
                        const GraphDigestOptions& options) {
  out.text("svod graph 2");
  out.number(g.inputs().size());
  for (const GraphInput& input : g.inputs()) {
    write_type(out, g[input.node]);
    write_interface(out, input.seen);
  }

  std::vector<NodeId> order = walk_order(g);
  std::vector<uint64_t> number(g.size());
  std::map<uint32_t, uint64_t> blobs; // by first use
  out.number(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = g[order[i]];
    number[order[i]] = i;
    out.text(info(node.op).text);
    write_type(out, node);
    std::span<const int64_t> payload = node.payload;
    for (size_t b = 0; b < body_count(node.op); ++b) {
      out.digest(graph_digest(*g.body(static_cast<uint32_t>(payload[0])), options));
      payload = payload.subspan(1);
    }
    if (has_blob(node.op)) {
      auto blob = static_cast<uint32_t>(payload[0]);
      payload = payload.subspan(1);
      out.number(blobs.emplace(blob, blobs.size()).first->second);
      if (options.weight_values || node.op == Op::Call) out.digest(g.blob(blob).digest);
    }
    if (node.op != Op::Weight) out.numbers(payload);
    out.number(node.inputs.size());
    for (NodeId input : node.inputs) out.number(number[input]);
  }
  out.number(g.outputs().size());
  for (const GraphOutput& output : g.outputs()) {
    out.number(number[output.node]);
    write_interface(out, output.seen);
  }
  for (const StateLink& state : g.states()) {
    out.text("state");
    out.number(state.input);
    out.number(state.output);
    out.number(static_cast<uint64_t>(state.axis + 1));
    out.number(static_cast<uint64_t>(state.grown));
    out.number(static_cast<uint64_t>(state.period));
  }
}

Digest graph_digest(const Graph& g, const GraphDigestOptions& options) {
  DigestWriter out;
  write_graph(out, g, options);
  return out.finish();
}

std::string graph_encoding(const Graph& g, const GraphDigestOptions& options) {
  std::string text;
  DigestWriter out(&text);
  write_graph(out, g, options);
  return text;
}

} // namespace svod
