// Facts over small values are asked of the value, which a walk over the recipes computes,
// inputs before users, each freed after its last use. The error of a fast form is asked
// of the recipe, by the function that has chosen the form; that is most of the work, so
// all cores share it. Whether a large weight varies is seen where it lies.
#include "compiler/value_questions.h"

#include "compiler/ir/fold.h"
#include "compiler/optimize/short_sums.h"
#include "compiler/select/forms/accuracy.h"
#include "compiler/support/check.h"
#include "compiler/support/threads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace svod {

namespace {

using Bytes = std::span<const std::byte>;

bool varies(Bytes bytes, DType dtype) {
  const auto size = static_cast<size_t>(byte_size(dtype));
  return bytes.size() > size &&
         std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0;
}

bool is_within(const Tensor& value, int64_t exponent) {
  const double most = std::ldexp(1.0, static_cast<int>(exponent));
  return std::ranges::all_of(doubles_of(value),
                             [&](double v) { return std::fabs(v) <= most; });
}

// The recipes over one graph's weights.
class Answers {
public:
  Answers(const ValueRecord& record, const Graph& graph)
      : record_(record), graph_(graph), leaves_(leaf_blobs(graph)) {}

  bool read_leaves();
  bool compute(const std::set<NodeId>& wanted);
  bool all_hold() const;
  Blob blob(NodeId id);

private:
  bool is_asked(const ValueFact& fact) const;
  // The bytes of a weight of the graph, where the node is nothing else.
  const Blob* leaf(NodeId id) const;
  Bytes bytes(NodeId id) const;
  bool holds(const ValueFact& fact) const;
  bool make(NodeId id, std::map<NodeId, Tensor>& values) const;

  const ValueRecord& record_;
  const Graph& graph_;
  const std::vector<uint32_t> leaves_;
  Graph values_;              // the recipes with weights in place of inputs, same ids
  std::vector<bool> changed_; // computed from a weight that is another one
  std::map<NodeId, Tensor> made_;
};

bool Answers::read_leaves() {
  const Graph& recipes = record_.recipes;
  if (leaves_.size() != record_.leaves.size() ||
      leaves_.size() != recipes.inputs().size())
    return false;
  for (NodeId id = 0; id < recipes.size(); ++id) {
    Node node = recipes[id];
    bool changed =
        std::ranges::any_of(node.inputs, [&](NodeId in) { return changed_[in]; });
    if (node.op == Op::Input) {
      const auto number = static_cast<size_t>(node.payload[0]);
      if (number >= leaves_.size()) return false;
      const Blob& weight = graph_.blob(leaves_[number]);
      const int64_t bytes = element_count(node.shape) * byte_size(node.dtype);
      if (bytes != static_cast<int64_t>(weight.size())) return false;
      changed = weight.digest != record_.leaves[number];
      node = {Op::Weight, node.dtype, node.shape, {values_.add_blob(weight)}, {}};
    } else if (node.op == Op::Weight) {
      node.payload[0] =
          values_.add_blob(recipes.blob(static_cast<uint32_t>(node.payload[0])));
    }
    // Weights that are equal now make nodes equal that were not.
    if (values_.intern(std::move(node)) != id) return false;
    changed_.push_back(changed);
  }
  return true;
}

bool Answers::is_asked(const ValueFact& fact) const {
  return changed_[fact.value] || (fact.other != kNoNode && changed_[fact.other]);
}

const Blob* Answers::leaf(NodeId id) const {
  while (values_[id].op == Op::Bitcast || values_[id].op == Op::Reshape)
    id = values_[id].inputs[0];
  if (values_[id].op != Op::Weight) return nullptr;
  return &values_.blob(static_cast<uint32_t>(values_[id].payload[0]));
}

Bytes Answers::bytes(NodeId id) const {
  if (const Blob* weight = leaf(id)) return weight->unnoted_bytes();
  return made_.at(id).bytes;
}

// One value from those of its inputs.
bool Answers::make(NodeId id, std::map<NodeId, Tensor>& values) const {
  const Node& node = values_[id];
  if (const Blob* weight = leaf(id)) {
    const Bytes bytes = weight->unnoted_bytes();
    values[id] = {node.dtype, node.shape, {bytes.begin(), bytes.end()}};
    return true;
  }
  std::vector<const Tensor*> inputs;
  for (NodeId input : node.inputs) inputs.push_back(&values.at(input));
  return evaluate_node(values_, id, inputs, values[id]);
}

bool Answers::compute(const std::set<NodeId>& wanted) {
  std::set<NodeId> roots = wanted;
  for (const ValueFact& fact : record_.facts) {
    if (fact.question == ValueQuestion::Accurate || !is_asked(fact)) continue;
    roots.insert(fact.value);
    if (fact.other != kNoNode) roots.insert(fact.other);
  }
  std::erase_if(roots, [&](NodeId id) { return leaf(id) != nullptr; });
  std::set<NodeId> needed = roots;
  std::map<NodeId, size_t> uses;
  for (std::vector<NodeId> open(roots.begin(), roots.end()); !open.empty();) {
    const NodeId id = open.back();
    open.pop_back();
    if (leaf(id) != nullptr) continue;
    for (NodeId input : values_[id].inputs) {
      uses[input]++;
      if (needed.insert(input).second) open.push_back(input);
    }
  }
  std::map<NodeId, Tensor> values;
  for (NodeId id : needed) {
    if (!make(id, values)) return false;
    if (leaf(id) != nullptr) continue;
    for (NodeId input : values_[id].inputs)
      if (--uses[input] == 0 && !roots.contains(input)) values.erase(input);
  }
  made_ = std::move(values);
  return true;
}

bool Answers::holds(const ValueFact& fact) const {
  const Node& node = values_[fact.value];
  const auto value = [&] {
    const Bytes of = bytes(fact.value);
    return Tensor{node.dtype, node.shape, {of.begin(), of.end()}};
  };
  switch (fact.question) {
  case ValueQuestion::Equals:
    return sha256(bytes(fact.value)) == fact.digest;
  case ValueQuestion::Varies:
    return varies(bytes(fact.value), node.dtype);
  case ValueQuestion::Same:
    return std::ranges::equal(bytes(fact.value), bytes(fact.other));
  case ValueQuestion::Within:
    return is_within(value(), fact.number);
  case ValueQuestion::Accurate:
    return select::stays_accurate(values_, fact);
  case ValueQuestion::ShortSums:
    return optimize::fits_short_sums(value(), fact);
  default:
    return holds_for_all(value(), fact.question, static_cast<DType>(fact.number)) ==
           fact.answer;
  }
}

bool Answers::all_hold() const {
  std::vector<const ValueFact*> asked;
  for (const ValueFact& fact : record_.facts)
    if (is_asked(fact)) asked.push_back(&fact);
  std::atomic<bool> all = true;
  run_on_threads(asked.size(), 0, [&](size_t i) {
    if (all && !holds(*asked[i])) all = false;
  });
  return all;
}

Blob Answers::blob(NodeId id) {
  if (const Blob* weight = leaf(id)) return *weight;
  auto owner =
      std::make_shared<const std::vector<std::byte>>(std::move(made_.at(id).bytes));
  const Bytes view = *owner;
  return {view, std::move(owner), sha256(view)};
}

} // namespace

ValueRecord record_of(const ValueFacts& facts, const Graph& graph) {
  ValueRecord out{facts.recipes(), facts.facts(), {}};
  for (uint32_t blob : leaf_blobs(graph)) out.leaves.push_back(graph.blob(blob).digest);
  return out;
}

std::optional<std::map<NodeId, Blob>>
values_of(const ValueRecord& record, const Graph& graph, const std::set<NodeId>& wanted) {
  Answers answers(record, graph);
  if (!answers.read_leaves() || !answers.compute(wanted) || !answers.all_hold())
    return std::nullopt;
  std::map<NodeId, Blob> out;
  for (NodeId id : wanted) out.emplace(id, answers.blob(id));
  return out;
}

} // namespace svod
