// Every node is made again as it is, with another element type. Bits that are written
// into a node (constants, borders of pads) and weights become the doubles they stand for.
// A bitcast sees the float of the model's type, which it is turned into and out of.
#include "compiler/rewrite/in_double.h"

#include "compiler/ir/build.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace svod::rewrite {

namespace {

bool widens(DType dtype) { return is_half(dtype) || dtype == DType::F32; }

DType wide(DType dtype) { return widens(dtype) ? DType::F64 : dtype; }

uint64_t wide_bits(DType dtype, uint64_t bits) {
  return widens(dtype) ? std::bit_cast<uint64_t>(scalar_value(dtype, bits)) : bits;
}

std::vector<std::byte> wide_bytes(std::span<const std::byte> from, DType dtype) {
  const auto size = static_cast<size_t>(byte_size(dtype));
  std::vector<std::byte> bytes(from.size() / size * sizeof(double));
  for (size_t i = 0; i * size < from.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, from.data() + i * size, size);
    bits = wide_bits(dtype, bits);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return bytes;
}

class Widen {
public:
  explicit Widen(const Graph& from) : from_(from) {}
  Graph run();

private:
  NodeId make(NodeId id);
  NodeId bitcast(const Node& node, DType from);

  const Graph& from_;
  Graph to_;
  GraphCopy copy_{to_, from_, [this](NodeId id) { return make(id); }};
};

NodeId Widen::bitcast(const Node& node, DType from) {
  NodeId x = node.inputs[0];
  const Shape& shape = to_[x].shape;
  if (widens(from)) x = to_.intern({Op::Cast, from, shape, {}, {x}});
  x = to_.intern({Op::Bitcast, node.dtype, node.shape, {}, {x}});
  return widens(node.dtype) ? to_.intern({Op::Cast, DType::F64, node.shape, {}, {x}}) : x;
}

NodeId Widen::make(NodeId id) {
  Node node = copy_.over_copies(id, [](const std::shared_ptr<const Graph>& body) {
    return std::make_shared<const Graph>(Widen(*body).run());
  });
  const DType dtype = node.dtype;
  const auto bits = [&](size_t at) {
    node.payload[at] =
        static_cast<int64_t>(wide_bits(dtype, static_cast<uint64_t>(node.payload[at])));
  };
  switch (node.op) {
  case Op::Weight:
    if (widens(dtype))
      node.payload[0] = to_.add_blob(
          wide_bytes(to_.blob(static_cast<uint32_t>(node.payload[0])).bytes(), dtype));
    break;
  case Op::Constant:
    bits(0);
    break;
  case Op::Pad:
    bits(node.payload.size() - 1);
    break;
  case Op::Bitcast:
    return bitcast(node, from_[from_[id].inputs[0]].dtype);
  case Op::Cast:
    if (wide(dtype) == to_[node.inputs[0]].dtype) return node.inputs[0];
    break;
  default:
    break;
  }
  node.dtype = wide(dtype);
  return to_.intern(std::move(node));
}

Graph Widen::run() {
  to_.begin_as(from_);
  for (const GraphInput& input : from_.inputs()) {
    const Node& node = from_[input.node];
    copy_.set(input.node, to_.add_input(input.name, wide(node.dtype), node.shape));
  }
  for (const NodeId id : from_.live_nodes()) copy_.copy(id);
  for (const GraphOutput& output : from_.outputs())
    to_.add_output(output.name, copy_[output.node]);
  return std::move(to_);
}

bool calls(const Graph& graph) {
  for (const NodeId id : graph.live_nodes()) {
    if (graph[id].op == Op::Call) return true;
    for (size_t b = 0; b < body_count(graph[id].op); ++b)
      if (calls(*graph.body(static_cast<uint32_t>(graph[id].payload[b])))) return true;
  }
  return false;
}

} // namespace

std::optional<Graph> in_double(const Graph& graph) {
  if (calls(graph)) return std::nullopt;
  return Widen(graph).run();
}

Tensor in_double(Tensor value) {
  if (!widens(value.dtype)) return value;
  return {DType::F64, value.shape, wide_bytes(value.bytes, value.dtype)};
}

} // namespace svod::rewrite
