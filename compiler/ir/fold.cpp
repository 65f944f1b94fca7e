// Constant folding in the builder. Shape arithmetic of ONNX models (Shape, Gather,
// Concat, Reshape chains) vanishes here, node by node, before any pass runs. What would
// grow the package is not folded: an expand or a window of a weight repeats bytes, as a
// view it costs nothing.
#include "compiler/ir/fold.h"

#include "compiler/ir/shape_rules.h"
#include "compiler/ir/value_facts.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace svod {

static bool repeats_elements(Op op) { return op == Op::Expand || op == Op::Window; }

// 8-bit weights made wider, and those of half precision that are to be kept. Kernels do
// that as they load.
static bool widens_weights(const Graph& g, const Node& node) {
  constexpr int64_t kFew = 16; // shapes, zero points
  if (node.op != Op::Cast || element_count(node.shape) <= kFew) return false;
  const Node& from = g[node.inputs[0]];
  if (g.keeps_halves() && is_half(from.dtype)) return node.dtype == DType::F32;
  return is_integer(from.dtype) && byte_size(from.dtype) == 1 &&
         byte_size(node.dtype) > 1;
}

bool stays_narrow(const Graph& g, NodeId id) { return widens_weights(g, g[id]); }

// scale * (weights - zero) and views of it: later passes look for the bytes in it, so it
// is folded last.
static bool dequantizes(const Graph& g, const Node& node) {
  if (widens_weights(g, node)) return true;
  bool step =
      node.op == Op::Sub || node.op == Op::Cast || node.op == Op::Mul || is_view(node.op);
  return step && std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId in) {
           return !is_known(g, in) && dequantizes(g, g[in]);
         });
}

static Tensor splat_tensor(DType dtype, const Shape& shape, uint64_t bits) {
  size_t size = static_cast<size_t>(byte_size(dtype));
  Tensor out{dtype, shape, {}};
  out.bytes.resize(static_cast<size_t>(element_count(shape)) * size);
  for (size_t i = 0; i < out.bytes.size(); i += size)
    std::memcpy(out.bytes.data() + i, &bits, size);
  return out;
}

static Tensor leaf_tensor(const Graph& g, const Node& node) {
  if (node.op == Op::Constant)
    return splat_tensor(node.dtype, node.shape, static_cast<uint64_t>(node.payload[0]));
  auto bytes = g.blob(static_cast<uint32_t>(node.payload[0])).unnoted_bytes();
  return {node.dtype, node.shape, {bytes.begin(), bytes.end()}};
}

// Everything a known node is computed from, itself included; empty when that is too much:
// a long chain over a large weight would be walked again for each of its nodes.
static std::set<NodeId> computed_from(const Graph& g, NodeId id, int64_t limit) {
  constexpr size_t kMostNodes = 256;
  std::set<NodeId> needed{id};
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const Node& node = g[open.back()];
    open.pop_back();
    if (element_count(node.shape) > limit || needed.size() > kMostNodes) return {};
    for (NodeId input : node.inputs)
      if (needed.insert(input).second) open.push_back(input);
  }
  return needed;
}

// Other weights may not fail.
static void note_failure(const ValueTrace& trace) {
  if (trace.facts) trace.facts->lose();
}

std::optional<Tensor> unnoted_tensor(const Graph& g, NodeId id, int64_t limit) {
  if (g.depends_on_input(id) || element_count(g[id].shape) > limit) return std::nullopt;
  if (is_known(g, id)) return leaf_tensor(g, g[id]);
  std::map<NodeId, Tensor> values;
  // Ascending ids: inputs come before what uses them, and each is computed once.
  for (NodeId needed : computed_from(g, id, limit)) {
    if (is_known(g, needed)) {
      values.emplace(needed, leaf_tensor(g, g[needed]));
      continue;
    }
    std::vector<const Tensor*> inputs;
    for (NodeId input : g[needed].inputs) inputs.push_back(&values.at(input));
    if (!evaluate_node(g, needed, inputs, values[needed])) {
      note_failure(trace_of(g, id));
      return std::nullopt; // fails when run, as it must
    }
  }
  if (values.empty()) return std::nullopt;
  return std::move(values.at(id));
}

std::optional<Tensor> known_tensor(const Graph& g, NodeId id, int64_t limit) {
  std::optional<Tensor> out = unnoted_tensor(g, id, limit);
  if (out) note_equals(trace_of(g, id), out->bytes);
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

// A constant is made of values that are just these, a weight of any that differ.
static NodeId traced_node(Graph& g, Tensor tensor, const ValueTrace& trace) {
  if (auto bits = equal_bits(tensor.dtype, tensor.bytes)) {
    note_equals(trace, tensor.bytes);
    return constant_bits(g, tensor.dtype, std::move(tensor.shape), *bits);
  }
  if (trace.facts)
    trace.facts->note({.question = ValueQuestion::Varies, .value = trace.node});
  uint32_t blob = g.add_blob(std::move(tensor.bytes), trace);
  return g.intern({Op::Weight, tensor.dtype, std::move(tensor.shape), {blob}, {}});
}

NodeId tensor_node(Graph& g, Tensor tensor) {
  return traced_node(g, std::move(tensor), {});
}

NodeId folded_node(Graph& g, const Node& node, Tensor value) {
  const ValueTrace trace = trace_of(g, node);
  return traced_node(g, std::move(value), trace);
}

NodeId fold_known(Graph& g, NodeId id, int64_t limit) {
  std::optional<Tensor> value = unnoted_tensor(g, id, limit);
  return value ? folded_node(g, g[id], std::move(*value)) : kNoNode;
}

NodeId weight(Graph& g, DType dtype, Shape shape, uint32_t blob) {
  Node node{Op::Weight, dtype, std::move(shape), {blob}, {}};
  std::string why = infer_type(g, node);
  const std::string at = std::string(info(node.op).name) + ": ";
  if (why == kTooLarge) throw TooLarge(at + why);
  if (why == kDtypesDiffer || why.starts_with(kNotDefined)) throw WrongType(at + why);
  SVOD_CHECK(why.empty()) << "weight: " << why;
  const Blob& of = g.blob(blob);
  if (auto bits = equal_bits(dtype, of.unnoted_bytes())) {
    of.bytes(); // notes that they are equal
    return constant_bits(g, dtype, std::move(node.shape), *bits);
  }
  note_fact(g, node, {.question = ValueQuestion::Varies});
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
    std::optional<Tensor> value = unnoted_tensor(g, input);
    if (!value) return std::nullopt;
    input = scratch.add_input("", value->dtype, value->shape);
    values.push_back(std::move(*value));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& value : values) inputs.push_back(&value);
  Tensor out;
  NodeId id = scratch.intern(std::move(copy));
  if (evaluate_node(scratch, id, inputs, out)) return out;
  note_failure(trace_of(g, node));
  return std::nullopt;
}

NodeId make(Graph& g, Node node) {
  std::string why = infer_type(g, node);
  const std::string at = std::string(info(node.op).name) + ": ";
  if (why == kTooLarge) throw TooLarge(at + why);
  if (why == kDtypesDiffer || why.starts_with(kNotDefined)) throw WrongType(at + why);
  SVOD_CHECK(why.empty()) << at << why;
  OpClass kind = info(node.op).op_class;
  if (kind == OpClass::Source) return g.intern(std::move(node));
  if (element_count(node.shape) == 0)
    return constant_bits(g, node.dtype, std::move(node.shape), 0);
  if (kind == OpClass::Call || kind == OpClass::Region) return g.intern(std::move(node));
  if (kind == OpClass::Map || kind == OpClass::Convert)
    if (auto bits = splat_of_map(g, node))
      return constant_bits(g, node.dtype, std::move(node.shape), *bits);
  if (dequantizes(g, node)) return g.intern(std::move(node));
  if (std::optional<Tensor> value = evaluate_known_inputs(g, node))
    return folded_node(g, node, std::move(*value));
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

std::vector<double> doubles_of(const Tensor& tensor) {
  size_t size = static_cast<size_t>(byte_size(tensor.dtype));
  std::vector<double> out(static_cast<size_t>(element_count(tensor.shape)));
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * size, size);
    out[i] = scalar_value(tensor.dtype, bits);
  }
  return out;
}

std::optional<std::vector<double>> known_floats(const Graph& g, NodeId id) {
  auto tensor = known_tensor(g, id, is_known(g, id) ? kKnownElements : kFoldElements);
  if (!tensor) return std::nullopt;
  return doubles_of(*tensor);
}

bool all_elements(const Graph& g, NodeId id, ValueQuestion question, DType dtype) {
  const auto tensor =
      unnoted_tensor(g, id, is_known(g, id) ? kKnownElements : kFoldElements);
  if (!tensor) return false;
  const bool answer = holds_for_all(*tensor, question, dtype);
  note_fact(
      g, id,
      {.question = question, .answer = answer, .number = static_cast<int64_t>(dtype)});
  return answer;
}

bool is_known(const Graph& g, NodeId id) {
  return g[id].op == Op::Weight || g[id].op == Op::Constant;
}

std::optional<uint64_t> splat_bits(const Graph& g, NodeId id) {
  if (g[id].op != Op::Constant) return std::nullopt;
  return static_cast<uint64_t>(g[id].payload[0]);
}

} // namespace svod
