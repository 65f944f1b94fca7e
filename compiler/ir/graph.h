// The lazy graph: a hash-consed DAG of the ops in ops.def. Equal nodes are one node.
//
// Every node has one result, a dense row-major tensor of a dtype and a shape fixed at
// pack time. Identity is op, dtype, shape, payload and child ids; names and provenance
// are side tables.
#pragma once

#include "compiler/ir/dtype.h"
#include "compiler/support/digest.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace svod {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = ~0u;
using Shape = std::vector<int64_t>;
using Payload = std::vector<int64_t>;

enum class Op : uint8_t {
#define OP(name, text, class, arity, shape, payload) name,
#define MAP(name, text, arity, result, cell) name,
#include "compiler/ir/ops.def"
};

enum class OpClass : uint8_t {
  Source,
  Convert,
  View,
  Join,
  Reduce,
  Scan,
  Index,
  Order,
  Call,
  Region,
  Map
};

struct OpInfo {
  std::string_view name; // enumerator
  std::string_view text; // as printed
  OpClass op_class;
  int arity;                // -1: one or more
  std::string_view payload; // legend, empty for maps
  std::string_view cell;    // C++ over a, b, c; empty unless a map
};
const OpInfo& info(Op op);
size_t op_count();
std::optional<Op> op_from_text(std::string_view text);
inline bool is_map(Op op) { return info(op).op_class == OpClass::Map; }
inline bool is_reduce(Op op) { return info(op).op_class == OpClass::Reduce; }
// Ops whose payload begins with the number of a blob.
inline bool has_blob(Op op) { return op == Op::Weight || op == Op::Call; }
inline bool is_view(Op op) { return info(op).op_class == OpClass::View; }
inline bool has_body(Op op) { return op == Op::Loop || op == Op::If; }
// Bodies of a region; the first entries of its payload.
inline size_t body_count(Op op) { return op == Op::If ? 2 : op == Op::Loop ? 1 : 0; }
// Its value is only known when the program runs, whatever its inputs are; no pass may
// compute it. A loop is no constant even where all it reads is: it may run for ever.
inline bool is_opaque(Op op) { return op == Op::Input || op == Op::Call || has_body(op); }

struct Node {
  Op op;
  DType dtype;
  Shape shape;
  Payload payload;
  std::vector<NodeId> inputs;

  bool operator==(const Node&) const = default;
};

class ValueFacts; // compiler/ir/value_facts.h

// A value among the recipes of who notes what is asked of values; none: nobody does.
struct ValueTrace {
  std::shared_ptr<ValueFacts> facts;
  NodeId node = kNoNode;
};

// Bytes known at pack time, row-major, little endian. Either a view of the mapped model
// file (kept alive by `owner`) or owned. Unaligned: read elements with memcpy.
class Blob {
public:
  Blob(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, Digest digest)
      : owner(std::move(owner)), digest(digest), bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  // Who looks decides by them: that they are just these is noted where they are traced.
  std::span<const std::byte> bytes() const;
  // For who notes a weaker fact, keeps a recipe, or decides nothing by them.
  std::span<const std::byte> unnoted_bytes() const { return bytes_; }

  std::shared_ptr<const void> owner;
  Digest digest; // of the bytes
  ValueTrace trace;

private:
  std::span<const std::byte> bytes_;
};

// What the caller of a graph sees of an input or output: element type and shape. They are
// the node's own, but where the caller's elements do not lie one by one in memory: two
// int4 elements share a byte of a u8 node. The caller's bytes are always the node's.
struct Interface {
  int onnx_type = 0; // TensorProto.DataType
  Shape shape;
  // Of what has a size that a run decides, within `shape`: the number of the input, or of
  // the output, that holds its extents. -1: the size is known.
  int32_t extents = -1;

  bool operator==(const Interface&) const = default;
};

// Bytes of the caller's tensor; none for elements of a type that has no size here.
std::optional<int64_t> byte_size(const Interface& seen);

struct GraphInput {
  std::string name;
  NodeId node;
  Interface seen;
};
struct GraphOutput {
  std::string name;
  NodeId node;
  Interface seen;
};

// An output that is an input of the next run (--state). Of one that is longer along an
// axis the next run reads the end.
struct StateLink {
  uint32_t input = 0, output = 0; // numbers among the graph's
  int64_t axis = -1;              // where the output is longer; -1: shapes are equal
  int64_t grown = 0;              // positions that the output has more
  // Runs until what is kept is moved to the front of its memory, which is so much longer.
  int64_t period = 1;

  bool operator==(const StateLink&) const = default;
};

class Graph;
// Whether a run decides the size of some input.
bool has_open_sizes(const Graph& graph);

int64_t element_count(const Shape& shape);
Shape row_major_strides(const Shape& shape);

// Equal nodes have equal hashes; what interning filters by.
uint64_t hash_node(const Node& node);

class Graph {
public:
  // Tests pass a poor hash to see that collisions keep nodes apart.
  explicit Graph(uint64_t (*hash)(const Node&) = hash_node) : hash_(hash) {}

  // The node with these properties, made on first use. Shapes and payloads must be valid:
  // build.h computes them, verify() checks them.
  NodeId intern(Node node);
  // Adds an input; inputs are distinct nodes even when equal in type.
  // Without `seen` the caller sees the node's type.
  NodeId add_input(std::string name, DType dtype, Shape shape,
                   std::optional<Interface> seen = std::nullopt);
  void add_output(std::string name, NodeId node,
                  std::optional<Interface> seen = std::nullopt);
  // Equal bytes become one blob.
  uint32_t add_blob(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  uint32_t add_blob(std::vector<std::byte> bytes, ValueTrace trace = {});
  // Of another graph: shares the bytes and trusts the digest.
  uint32_t add_blob(const Blob& blob);
  // The graph a region runs. Bodies that compute the same are one.
  uint32_t add_body(std::shared_ptr<const Graph> body);

  const Node& operator[](NodeId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  // Whether the value is only known when the program runs.
  bool depends_on_input(NodeId id) const { return unknown_[id]; }
  const Blob& blob(uint32_t id) const { return blobs_[id]; }
  void trace_blob(uint32_t id, ValueTrace trace) { blobs_[id].trace = std::move(trace); }
  size_t blob_count() const { return blobs_.size(); }
  const std::shared_ptr<const Graph>& body(uint32_t id) const { return bodies_[id]; }
  size_t body_count() const { return bodies_.size(); }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<StateLink>& states() const { return states_; }
  void set_states(std::vector<StateLink> states) { states_ = std::move(states); }
  void add_state(const StateLink& state) { states_.push_back(state); }
  // The element type and shape of a node as an interface.
  Interface interface_of(NodeId id) const {
    return {info(nodes_[id].dtype).onnx, nodes_[id].shape};
  }
  // Another value for an output, seen as the node's type.
  void set_output(size_t index, NodeId node) {
    outputs_[index].node = node;
    outputs_[index].seen = interface_of(node);
  }

  // Numbers of inputs, or of outputs.
  void set_input_extents(size_t input, size_t extents) {
    inputs_[input].seen.extents = static_cast<int32_t>(extents);
  }
  void set_output_extents(size_t output, size_t extents) {
    outputs_[output].seen.extents = static_cast<int32_t>(extents);
  }

  // Provenance: indices into source_names() of the ONNX nodes that asked for `id`. While
  // a source is open, every node interned is credited to it.
  void open_source(std::string name);
  void close_source() { open_source_ = -1; }
  void credit(NodeId id, const std::vector<int32_t>& sources);
  const std::vector<int32_t>& sources(NodeId id) const { return sources_[id]; }
  const std::vector<std::string>& source_names() const { return source_names_; }
  const std::string& source_name(int32_t source) const {
    return source_names_[static_cast<size_t>(source)];
  }
  std::vector<std::string> names_of(const std::vector<int32_t>& sources) const;
  // What a graph is about, before it gets the nodes of another one: the names, how half
  // precision lies, and what stays from run to run.
  void begin_as(const Graph& from) {
    source_names_ = from.source_names_, keeps_halves_ = from.keeps_halves_;
    states_ = from.states_;
  }
  // Values of half precision are what the model says between operators, too, known ones
  // as well, and are widened where they are read: for tensor cores, which multiply them
  // as they are. Otherwise they may be the float32 that they are computed in.
  bool keeps_halves() const { return keeps_halves_; }
  void keep_halves() { keeps_halves_ = true; }
  // Takes the names of `from`, which has as many inputs and outputs. `change` makes the
  // sources of a node numbers of its names.
  void rename(const Graph& from,
              const std::function<void(std::vector<int32_t>&)>& change);

  // Nodes reachable from the outputs, inputs before users. Deterministic.
  std::vector<NodeId> live_nodes() const;

private:
  uint64_t (*hash_)(const Node&);
  // A deque: a reference to a node or its shape stays good while nodes are added.
  std::deque<Node> nodes_;
  std::unordered_multimap<uint64_t, NodeId> interned_;
  std::vector<Blob> blobs_;
  std::unordered_multimap<uint64_t, uint32_t> blob_index_;
  std::vector<std::shared_ptr<const Graph>> bodies_;
  std::vector<Digest> body_digests_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::vector<StateLink> states_;
  std::vector<bool> unknown_; // computed from an input or by a region
  std::vector<std::vector<int32_t>> sources_;
  std::vector<std::string> source_names_;
  int32_t open_source_ = -1;
  bool keeps_halves_ = false;
};

} // namespace svod
