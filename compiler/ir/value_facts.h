// What a plan took for granted of the values of weights. While a graph's weights are
// traced, every look at their bytes ends as a fact: a question of the closed list below,
// asked of a value, with its answer. What is only computed from weights is no look: its
// recipe is kept, and makes the same of other weights. A plan is right for any weights of
// which all facts hold.
//
// Blob::bytes() notes the strictest fact, so that a reader who does not know of facts can
// only make a plan fit fewer weights, never a wrong one.
#pragma once

#include "compiler/ir/graph.h"

#include <mutex>
#include <set>

namespace svod {

enum class ValueQuestion : uint8_t {
  Equals,      // Are its bytes those of `digest`?
  Varies,      // Do elements differ from each other?
  Same,        // Has the value `other` the same bytes?
  Positive,    // Is each element above zero?
  PowersOfTwo, // Is each one, and has an inverse of the type `number`?
  Normal,      // Is each finite, and no smaller than the least with all its digits?
  Finite,      // Is each one?
  FitsByte,    // Is each an integer from -128 to 127?
  Within,      // Is each magnitude at most two to the power of `number`?
  Accurate,    // Is the error of the fast form `about` within the bounds of the choice?
  ShortSums,   // Do products of bytes, added as `about` says, fit 16 bits?
};
inline constexpr ValueQuestion kLastQuestion = ValueQuestion::ShortSums;

struct ValueFact {
  ValueQuestion question = ValueQuestion::Equals;
  NodeId value = kNoNode; // of the recipes
  bool answer = true;
  NodeId other = kNoNode;
  int64_t number = 0;
  Digest digest = {};
  std::string about = {};

  auto operator<=>(const ValueFact&) const = default;
};

class ValueFacts {
public:
  // Each value that something was asked of, or that a weight of the plan has, as a node
  // over inputs: input k is leaf k of the traced graph.
  const Graph& recipes() const { return recipes_; }
  const std::set<ValueFact>& facts() const { return facts_; }
  // Something was asked that no fact says: the plan is right for these weights alone.
  bool is_lost() const { return lost_; }

  void note(ValueFact fact);
  void lose();
  // Beyond this point what reads weights changes no plan.
  void close() { open_ = false; }
  bool is_open() const { return open_; }

  NodeId add_leaf(DType dtype, const Shape& shape);
  // The known node of g as a recipe.
  NodeId recipe(const Graph& g, const Node& node);

private:
  NodeId weight_recipe(const Blob& blob, const Node& node);

  std::mutex mutex_;
  Graph recipes_;
  std::set<ValueFact> facts_;
  bool open_ = true, lost_ = false;
};

// The weights of a graph: their blobs in the order in which a walk from the outputs meets
// them, then those that it does not meet. Functions of calls are none.
std::vector<uint32_t> leaf_blobs(const Graph& g);

// The graph with its leaves traced. Graphs with bodies cannot be.
Graph with_traces(Graph g, const std::shared_ptr<ValueFacts>& facts);

// The value of a known node; without facts where it depends on no traced weight.
ValueTrace trace_of(const Graph& g, NodeId id);
ValueTrace trace_of(const Graph& g, const Node& node);

// Notes a fact of a known node, where it is traced: `fact` gets the value.
void note_fact(const Graph& g, NodeId id, ValueFact fact);
void note_fact(const Graph& g, const Node& node, ValueFact fact);
void note_equals(const ValueTrace& trace, std::span<const std::byte> bytes);

} // namespace svod
