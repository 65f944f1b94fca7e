#include "compiler/ir/value_facts.h"

#include "compiler/ir/digest.h"
#include "compiler/ir/evaluate_calls.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <map>

namespace svod {

std::span<const std::byte> Blob::bytes() const {
  if (trace.facts)
    trace.facts->note(
        {.question = ValueQuestion::Equals, .value = trace.node, .digest = digest});
  return bytes_;
}

void ValueFacts::note(ValueFact fact) {
  const std::scoped_lock lock(mutex_);
  if (open_) facts_.insert(std::move(fact));
}

void ValueFacts::lose() {
  const std::scoped_lock lock(mutex_);
  if (open_) lost_ = true;
}

NodeId ValueFacts::add_leaf(DType dtype, const Shape& shape) {
  return recipes_.add_input("", dtype, shape);
}

// A weight may read the bytes of a value as another shape or type. What has elements of
// another size has to be just these.
NodeId ValueFacts::weight_recipe(const Blob& blob, const Node& node) {
  NodeId value = blob.trace.node;
  const bool is_traced = blob.trace.facts != nullptr;
  if (is_traced && byte_size(recipes_[value].dtype) == byte_size(node.dtype)) {
    if (recipes_[value].dtype != node.dtype)
      value =
          recipes_.intern({Op::Bitcast, node.dtype, recipes_[value].shape, {}, {value}});
    if (recipes_[value].shape != node.shape)
      value = recipes_.intern({Op::Reshape, node.dtype, node.shape, {}, {value}});
    return value;
  }
  if (is_traced && open_)
    facts_.insert(
        {.question = ValueQuestion::Equals, .value = value, .digest = blob.digest});
  const uint32_t own =
      recipes_.add_blob(Blob(blob.unnoted_bytes(), blob.owner, blob.digest));
  return recipes_.intern({Op::Weight, node.dtype, node.shape, {own}, {}});
}

NodeId ValueFacts::recipe(const Graph& g, const Node& node) {
  const std::scoped_lock lock(mutex_);
  std::map<NodeId, NodeId> made;
  const auto over_recipes = [&](Node out) {
    for (NodeId& input : out.inputs) input = made.at(input);
    return out;
  };
  const auto make = [&](const Node& from) {
    SVOD_CHECK(!is_opaque(from.op)) << "no recipe for " << info(from.op).name;
    if (from.op == Op::Weight)
      return weight_recipe(g.blob(static_cast<uint32_t>(from.payload[0])), from);
    return recipes_.intern(over_recipes(from));
  };
  for (NodeId id : nodes_between(g, node.inputs, {})) made[id] = make(g[id]);
  return make(node);
}

std::vector<uint32_t> leaf_blobs(const Graph& g) {
  std::vector<bool> seen(g.blob_count());
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Call) seen[static_cast<size_t>(g[id].payload[0])] = true;
  std::vector<uint32_t> out;
  const auto add = [&](uint32_t blob) {
    if (!seen[blob]) out.push_back(blob);
    seen[blob] = true;
  };
  for (NodeId id : walk_order(g))
    if (g[id].op == Op::Weight) add(static_cast<uint32_t>(g[id].payload[0]));
  for (uint32_t blob = 0; blob < g.blob_count(); ++blob) add(blob);
  return out;
}

Graph with_traces(Graph g, const std::shared_ptr<ValueFacts>& facts) {
  SVOD_CHECK(g.body_count() == 0) << "weights of bodies are not traced";
  std::map<uint32_t, NodeId> weights; // a weight that is of the blob
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Weight)
      weights.emplace(static_cast<uint32_t>(g[id].payload[0]), id);
  for (uint32_t blob : leaf_blobs(g)) {
    const auto of = weights.find(blob);
    const bool unused = of == weights.end();
    const auto bytes = static_cast<int64_t>(g.blob(blob).size());
    const NodeId leaf = unused
                            ? facts->add_leaf(DType::U8, {bytes})
                            : facts->add_leaf(g[of->second].dtype, g[of->second].shape);
    g.trace_blob(blob, {facts, leaf});
  }
  return g;
}

// The facts that traced weights below a node are of.
static std::shared_ptr<ValueFacts> facts_below(const Graph& g, const Node& node) {
  const auto of = [&](const Node& n) -> std::shared_ptr<ValueFacts> {
    if (n.op != Op::Weight) return nullptr;
    const ValueTrace& trace = g.blob(static_cast<uint32_t>(n.payload[0])).trace;
    return trace.facts && trace.facts->is_open() ? trace.facts : nullptr;
  };
  if (auto facts = of(node)) return facts;
  for (NodeId id : nodes_between(g, node.inputs, {}))
    if (auto facts = of(g[id])) return facts;
  return nullptr;
}

ValueTrace trace_of(const Graph& g, const Node& node) {
  const std::shared_ptr<ValueFacts> facts = facts_below(g, node);
  return facts ? ValueTrace{facts, facts->recipe(g, node)} : ValueTrace{};
}

ValueTrace trace_of(const Graph& g, NodeId id) { return trace_of(g, g[id]); }

void note_fact(const Graph& g, NodeId id, ValueFact fact) {
  note_fact(g, g[id], std::move(fact));
}

void note_fact(const Graph& g, const Node& node, ValueFact fact) {
  const ValueTrace trace = trace_of(g, node);
  if (!trace.facts) return;
  fact.value = trace.node;
  trace.facts->note(std::move(fact));
}

void note_equals(const ValueTrace& trace, std::span<const std::byte> bytes) {
  if (trace.facts)
    trace.facts->note({.question = ValueQuestion::Equals,
                       .value = trace.node,
                       .digest = sha256(bytes)});
}

} // namespace svod
