// Constant folding in the builder. Shape arithmetic of ONNX models (Shape, Gather,
// Concat, Reshape chains) vanishes here, node by node, before any pass runs. What would
// grow the package is not folded: an expand or a window of a weight repeats bytes, as a
// view it costs nothing.
#include "compiler/ir/fold.h"

#include "compiler/ir/shape_rules.h"
#include "compiler/support/check.h"

#include <cstring>

namespace svod {

static bool repeats_elements(Op op) { return op == Op::Expand || op == Op::Window; }

static Tensor splat_tensor(DType dtype, const Shape& shape, uint64_t bits) {
  size_t size = static_cast<size_t>(byte_size(dtype));
  Tensor out{dtype, shape, {}};
  out.bytes.resize(static_cast<size_t>(element_count(shape)) * size);
  for (size_t i = 0; i < out.bytes.size(); i += size)
    std::memcpy(out.bytes.data() + i, &bits, size);
  return out;
}

std::optional<Tensor> known_tensor(const Graph& g, NodeId id, int64_t limit) {
  const Node& node = g[id];
  if (element_count(node.shape) > limit || node.op == Op::Input) return std::nullopt;
  if (node.op == Op::Constant)
    return splat_tensor(node.dtype, node.shape, static_cast<uint64_t>(node.payload[0]));
  if (node.op == Op::Weight) {
    auto bytes = g.blob(static_cast<uint32_t>(node.payload[0])).bytes;
    return Tensor{node.dtype, node.shape, {bytes.begin(), bytes.end()}};
  }
  std::vector<Tensor> values;
  for (NodeId input : node.inputs) {
    std::optional<Tensor> value = known_tensor(g, input, limit);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& value : values) inputs.push_back(&value);
  Tensor out;
  if (!evaluate_node(g, id, inputs, out))
    return std::nullopt; // fails when run, as it must
  return out;
}

// The bits every element shares, if they do. Looks at each byte at most once.
static std::optional<uint64_t> equal_bits(DType dtype, std::span<const std::byte> bytes) {
  size_t size = static_cast<size_t>(byte_size(dtype));
  if (bytes.empty()) return 0;
  if (bytes.size() > size &&
      std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0)
    return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), size);
  return bits;
}

NodeId tensor_node(Graph& g, Tensor tensor) {
  if (auto bits = equal_bits(tensor.dtype, tensor.bytes))
    return constant_bits(g, tensor.dtype, std::move(tensor.shape), *bits);
  uint32_t blob = g.add_blob(std::move(tensor.bytes));
  return g.intern({Op::Weight, tensor.dtype, std::move(tensor.shape), {blob}, {}});
}

NodeId weight(Graph& g, DType dtype, Shape shape, uint32_t blob) {
  Node node{Op::Weight, dtype, std::move(shape), {blob}, {}};
  std::string why = infer_type(g, node);
  if (why == kTooLarge) throw TooLarge(std::string(info(node.op).name) + ": " + why);
  SVOD_CHECK(why.empty()) << "weight: " << why;
  if (auto bits = equal_bits(dtype, g.blob(blob).bytes))
    return constant_bits(g, dtype, std::move(node.shape), *bits);
  return g.intern(std::move(node));
}

// The node over inputs of one element each, in a graph of its own: what a map of splats
// is.
static std::optional<uint64_t> splat_of_map(const Graph& g, const Node& node) {
  Graph scalar;
  Node small{node.op, node.dtype, {}, {}, {}};
  std::vector<Tensor> values;
  for (NodeId input : node.inputs) {
    auto bits = splat_bits(g, input);
    if (!bits) return std::nullopt;
    values.push_back(splat_tensor(g[input].dtype, {}, *bits));
    small.inputs.push_back(constant_bits(scalar, g[input].dtype, {}, *bits));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& value : values) inputs.push_back(&value);
  Tensor out;
  NodeId id = scalar.intern(small);
  if (!evaluate_node(scalar, id, inputs, out)) return std::nullopt;
  return equal_bits(out.dtype, out.bytes);
}

static std::optional<Tensor> evaluate_known_inputs(const Graph& g, const Node& node) {
  if (repeats_elements(node.op)) return std::nullopt;
  if (element_count(node.shape) > kFoldElements) return std::nullopt;
  std::vector<Tensor> values;
  Graph scratch; // so that a node that folds leaves nothing behind
  Node copy = node;
  for (NodeId& input : copy.inputs) {
    std::optional<Tensor> value = known_tensor(g, input);
    if (!value) return std::nullopt;
    input = scratch.add_input("", value->dtype, value->shape);
    values.push_back(std::move(*value));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& value : values) inputs.push_back(&value);
  Tensor out;
  NodeId id = scratch.intern(std::move(copy));
  if (!evaluate_node(scratch, id, inputs, out)) return std::nullopt;
  return out;
}

NodeId make(Graph& g, Node node) {
  std::string why = infer_type(g, node);
  if (why == kTooLarge) throw TooLarge(std::string(info(node.op).name) + ": " + why);
  SVOD_CHECK(why.empty()) << info(node.op).name << ": " << why;
  OpClass kind = info(node.op).op_class;
  if (kind == OpClass::Source) return g.intern(std::move(node));
  if (element_count(node.shape) == 0)
    return constant_bits(g, node.dtype, std::move(node.shape), 0);
  if (kind == OpClass::Map || kind == OpClass::Convert)
    if (auto bits = splat_of_map(g, node))
      return constant_bits(g, node.dtype, std::move(node.shape), *bits);
  if (std::optional<Tensor> value = evaluate_known_inputs(g, node))
    return tensor_node(g, std::move(*value));
  return g.intern(std::move(node));
}

template <class T> static T element(const Tensor& tensor, size_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

std::optional<std::vector<int64_t>> known_ints(const Graph& g, NodeId id) {
  DType dtype = g[id].dtype;
  if (is_float(dtype)) return std::nullopt;
  auto tensor = known_tensor(g, id, is_known(g, id) ? kKnownElements : kFoldElements);
  if (!tensor) return std::nullopt;
  std::vector<int64_t> out(static_cast<size_t>(element_count(tensor->shape)));
  with_compute_type(dtype, [&](auto zero) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<int64_t>(element<decltype(zero)>(*tensor, i));
  });
  return out;
}

std::optional<std::vector<double>> known_floats(const Graph& g, NodeId id) {
  DType dtype = g[id].dtype;
  auto tensor = known_tensor(g, id, is_known(g, id) ? kKnownElements : kFoldElements);
  if (!tensor) return std::nullopt;
  size_t size = static_cast<size_t>(byte_size(dtype));
  std::vector<double> out(static_cast<size_t>(element_count(tensor->shape)));
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor->bytes.data() + i * size, size);
    out[i] = scalar_value(dtype, bits);
  }
  return out;
}

bool is_known(const Graph& g, NodeId id) {
  return g[id].op == Op::Weight || g[id].op == Op::Constant;
}

std::optional<uint64_t> splat_bits(const Graph& g, NodeId id) {
  if (g[id].op != Op::Constant) return std::nullopt;
  return static_cast<uint64_t>(g[id].payload[0]);
}

} // namespace svod
