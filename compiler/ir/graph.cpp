// The graph's storage. A node is found again by a hash of its properties and then
// compared in full: the hash only filters, so a collision costs time and never merges two
// values. Ids grow from inputs to users, so ascending id order is a topological order.
#include "compiler/ir/graph.h"

#include "compiler/ir/digest.h"
#include "compiler/ir/value_facts.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

int64_t element_count(const Shape& shape) {
  // Saturates, so that no shape passes for a small one; an empty axis wins over a huge
  // one.
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent == 0) return 0;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count)) return INT64_MAX;
  return count;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::optional<int64_t> byte_size(const Interface& seen) {
  if (std::optional<DType> part = complex_part(seen.onnx_type))
    return element_count(seen.shape) * 2 * byte_size(*part);
  std::optional<DType> dtype = dtype_from_onnx(seen.onnx_type);
  // Each tensor of strings has a width of its own.
  if (!dtype || *dtype == DType::String) return std::nullopt;
  int64_t elements = element_count(seen.shape), bits = info(*dtype).bits;
  return bits >= 8 ? elements * (bits / 8) : (elements + 8 / bits - 1) / (8 / bits);
}

// One step of the mixing function (the finaliser of MurmurHash3's 64-bit form).
static uint64_t mix(uint64_t state, uint64_t value) {
  state ^= value + 0x9e3779b97f4a7c15u + (state << 6) + (state >> 2);
  state = (state ^ (state >> 33)) * 0xff51afd7ed558ccdu;
  state = (state ^ (state >> 33)) * 0xc4ceb9fe1a85ec53u;
  return state ^ (state >> 33);
}

template <class List> static uint64_t mix_list(uint64_t state, const List& list) {
  state = mix(state, list.size()); // the length keeps [1][2,3] and [1,2][3] apart
  for (auto value : list) state = mix(state, static_cast<uint64_t>(value));
  return state;
}

uint64_t hash_node(const Node& node) {
  uint64_t state = mix(static_cast<uint64_t>(node.op), static_cast<uint64_t>(node.dtype));
  state = mix_list(state, node.shape);
  state = mix_list(state, node.payload);
  return mix_list(state, node.inputs);
}

NodeId Graph::intern(Node node) {
  for (NodeId input : node.inputs)
    SVOD_CHECK(input < nodes_.size()) << info(node.op).name << " has an unknown input";
  uint64_t hash = hash_(node);
  auto [begin, end] = interned_.equal_range(hash);
  NodeId id = kNoNode;
  for (auto it = begin; it != end && id == kNoNode; ++it)
    if (nodes_[it->second] == node) id = it->second;
  if (id == kNoNode) {
    SVOD_CHECK(nodes_.size() < kNoNode) << "too many nodes";
    id = static_cast<NodeId>(nodes_.size());
    unknown_.push_back(
        is_opaque(node.op) ||
        std::ranges::any_of(node.inputs, [&](NodeId input) { return unknown_[input]; }));
    nodes_.push_back(std::move(node));
    sources_.emplace_back();
    interned_.emplace(hash, id);
  }
  if (open_source_ >= 0) credit(id, {open_source_});
  return id;
}

NodeId Graph::add_input(std::string name, DType dtype, Shape shape,
                        std::optional<Interface> seen) {
  int64_t index = static_cast<int64_t>(inputs_.size());
  NodeId id = intern({Op::Input, dtype, std::move(shape), {index}, {}});
  if (!seen) seen = interface_of(id);
  inputs_.push_back({std::move(name), id, std::move(*seen)});
  return id;
}

bool has_open_sizes(const Graph& g) {
  return std::ranges::any_of(
      g.inputs(), [](const GraphInput& input) { return input.seen.extents >= 0; });
}

void Graph::add_output(std::string name, NodeId node, std::optional<Interface> seen) {
  SVOD_CHECK(node < nodes_.size()) << "output '" << name << "' is no node";
  if (!seen) seen = interface_of(node);
  outputs_.push_back({std::move(name), node, std::move(*seen)});
}

// Two values are one blob from here on, so they have to be equal whatever the weights.
static void note_equal(const Blob& known, const Blob& added) {
  const ValueTrace &a = known.trace, &b = added.trace;
  if (a.facts && b.facts && a.node != b.node)
    a.facts->note({.question = ValueQuestion::Same, .value = a.node, .other = b.node});
  if (a.facts && !b.facts) known.bytes();
  if (b.facts && !a.facts) added.bytes();
}

uint32_t Graph::add_blob(const Blob& blob) {
  auto [begin, end] = blob_index_.equal_range(blob.digest.prefix());
  for (auto it = begin; it != end; ++it)
    if (blobs_[it->second].digest == blob.digest) {
      note_equal(blobs_[it->second], blob);
      return it->second;
    }
  uint32_t id = static_cast<uint32_t>(blobs_.size());
  blobs_.push_back(blob);
  blob_index_.emplace(blob.digest.prefix(), id);
  return id;
}

uint32_t Graph::add_blob(std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
  return add_blob(Blob(bytes, std::move(owner), sha256(bytes)));
}

uint32_t Graph::add_blob(std::vector<std::byte> bytes, ValueTrace trace) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  std::span<const std::byte> view = *owner;
  Blob blob(view, std::move(owner), sha256(view));
  blob.trace = std::move(trace);
  return add_blob(blob);
}

uint32_t Graph::add_body(std::shared_ptr<const Graph> body) {
  const Digest digest = graph_digest(*body);
  for (uint32_t id = 0; id < bodies_.size(); ++id)
    if (body_digests_[id] == digest) return id;
  bodies_.push_back(std::move(body));
  body_digests_.push_back(digest);
  return static_cast<uint32_t>(bodies_.size() - 1);
}

void Graph::open_source(std::string name) {
  open_source_ = static_cast<int32_t>(source_names_.size());
  source_names_.push_back(std::move(name));
}

std::vector<std::string> Graph::names_of(const std::vector<int32_t>& sources) const {
  std::vector<std::string> names;
  names.reserve(sources.size());
  for (int32_t source : sources) names.push_back(source_name(source));
  return names;
}

void Graph::credit(NodeId id, const std::vector<int32_t>& sources) {
  std::vector<int32_t>& list = sources_[id];
  for (int32_t source : sources) {
    auto place = std::lower_bound(list.begin(), list.end(), source);
    if (place == list.end() || *place != source) list.insert(place, source);
  }
}

void Graph::rename(const Graph& from,
                   const std::function<void(std::vector<int32_t>&)>& change) {
  SVOD_CHECK(from.inputs_.size() == inputs_.size() &&
             from.outputs_.size() == outputs_.size())
      << "names of another graph";
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i].name = from.inputs_[i].name;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].name = from.outputs_[i].name;
  for (std::vector<int32_t>& list : sources_) change(list);
  source_names_ = from.source_names_;
}

std::vector<NodeId> Graph::live_nodes() const {
  std::vector<bool> live(nodes_.size());
  for (const GraphOutput& output : outputs_) live[output.node] = true;
  std::vector<NodeId> order;
  for (NodeId id = static_cast<NodeId>(nodes_.size()); id-- > 0;) {
    if (!live[id]) continue;
    order.push_back(id);
    for (NodeId input : nodes_[id].inputs) live[input] = true;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

} // namespace svod
