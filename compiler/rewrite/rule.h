// A rule: a pattern, what may stand for the node it is found at, and on which condition.
#pragma once

#include "compiler/rewrite/rewriter.h"

#include <functional>
#include <string_view>

namespace svod::rewrite {

// A pattern that is found, in what is being rewritten.
struct Match {
  Rewriter& r;
  const Found& found;
  // Nodes below the root, not named by letters, that the rule takes the place of too.
  std::vector<NodeId>& replaced;

  NodeId operator[](pattern::Letter letter) const { return found.letters[letter.index]; }
  const Node& node(pattern::Letter letter) const { return r.g[(*this)[letter]]; }
  const Node& root() const { return r.g[found.root]; }
};

class Condition {
public:
  // `rounds`: it admits what changes the last bits of a float, where those may change.
  Condition(std::function<bool(const Match&)> holds, bool rounds = false)
      : holds_(std::move(holds)), rounds_(rounds) {}
  bool operator()(const Match& m) const { return holds_(m); }
  bool changes_rounding() const { return rounds_; }

private:
  std::function<bool(const Match&)> holds_;
  bool rounds_;
};

inline Condition operator&&(const Condition& a, const Condition& b) {
  return Condition([a, b](const Match& m) { return a(m) && b(m); },
                   a.changes_rounding() || b.changes_rounding());
}
inline Condition operator!(const Condition& a) {
  return Condition([a](const Match& m) { return !a(m); });
}

struct Rule {
  Rule(std::string_view name, pattern::Pattern pattern, pattern::Pattern replacement,
       Condition condition);

  std::string_view name;
  pattern::Pattern pattern, replacement;
  Condition condition;
  // Its pattern tells the known part of a node from the rest, so it is not for nodes that
  // are known as a whole: those are folded.
  bool tells_known;
};

// The rows of rules.def.
const std::vector<Rule>& rules();
// Which of them may apply to a node of this op, in order.
const std::vector<size_t>& rules_of(Op op);

// All ways in which the rule's pattern fits the node; the condition is not asked.
std::vector<Found> find_all(const Rule& rule, const Forms& forms, NodeId root);
// What the rule makes of one of them, kNoNode where it does not apply. Appends the nodes
// that it takes the place of.
NodeId apply_at(const Rule& rule, Rewriter& r, const Found& found,
                std::vector<NodeId>& replaced);

// What may stand for the node by this rule, kNoNode where it does not apply. It has the
// same value, so a search may keep both. Appends the nodes that it takes the place of.
NodeId apply(const Rule& rule, Rewriter& r, NodeId root, std::vector<NodeId>& replaced);

} // namespace svod::rewrite
