// Whether a plan that was made for some weights is right for others: the facts that it
// took for granted (compiler/ir/value_facts.h) are asked of these, and what it computed
// from weights is computed again.
#pragma once

#include "compiler/ir/value_facts.h"

#include <map>
#include <optional>
#include <vector>

namespace svod {

// What a plan keeps of the weights that it was made for.
struct ValueRecord {
  Graph recipes;
  std::set<ValueFact> facts;
  std::vector<Digest> leaves; // of the weights themselves, by number
};

// The record of a graph whose weights were traced by these facts.
ValueRecord record_of(const ValueFacts& facts, const Graph& graph);

// The wanted recipes' values of the weights of `graph`, a weight's own as it is; nothing
// where a fact is none of these weights. What concerns only weights that are what they
// were is true without asking.
std::optional<std::map<NodeId, Blob>>
values_of(const ValueRecord& record, const Graph& graph, const std::set<NodeId>& wanted);

} // namespace svod
