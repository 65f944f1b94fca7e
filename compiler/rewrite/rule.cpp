// Applying a rule: find its pattern, ask its condition, build its replacement.
#include "compiler/rewrite/rule.h"

#include "compiler/rewrite/known_values.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::rewrite {

using pattern::Pattern;

namespace {

bool has_known(const Pattern& p) {
  return p.known || std::ranges::any_of(p.inputs, has_known);
}

// What has no operands of its own takes the type of the rule's root.
NodeId build(const Pattern& p, const Match& m) {
  Graph& g = m.r.g;
  const DType dtype = m.root().dtype;
  if (p.kind == Pattern::Kind::Any) return m.found.letters[p.letter];
  if (p.kind == Pattern::Kind::Number || p.kind == Pattern::Kind::AllOnes)
    return constant_bits(g, dtype, m.root().shape, bits_of(p, dtype));
  // From the right, where what is known stands: if that does not work out, nothing else
  // is made.
  std::vector<NodeId> inputs(p.inputs.size());
  for (size_t i = inputs.size(); i-- > 0;) {
    inputs[i] = build(p.inputs[i], m);
    if (inputs[i] == kNoNode) return kNoNode;
  }
  if (p.kind == Pattern::Kind::Made) return p.maker(m, inputs);
  if (p.op == Op::Cast) return svod::cast(g, inputs[0], dtype);
  if (p.op == Op::Expand) return svod::expand(g, inputs[0], m.root().shape);
  SVOD_CHECK(is_map(p.op)) << info(p.op).name << " takes a Helper to be made by a rule";
  const bool both_known =
      inputs.size() == 2 && m.r.known(inputs[0]) && m.r.known(inputs[1]);
  return both_known ? join_known(g, p.op, inputs[0], inputs[1]) : map(g, p.op, inputs);
}

} // namespace

Rule::Rule(std::string_view its_name, Pattern its_pattern, Pattern its_replacement,
           Condition its_condition)
    : name(its_name), pattern(std::move(its_pattern)),
      replacement(std::move(its_replacement)), condition(std::move(its_condition)),
      tells_known(has_known(pattern)) {}

std::vector<Found> find_all(const Rule& rule, const Forms& forms, NodeId root) {
  std::vector<Found> all;
  if (rule.tells_known && forms.known(root)) return all;
  match(forms, rule.pattern, root, [&](const Found& found) {
    all.push_back(found);
    return false;
  });
  return all;
}

NodeId apply_at(const Rule& rule, Rewriter& r, const Found& found,
                std::vector<NodeId>& replaced) {
  std::vector<NodeId> also;
  const Match m{r, found, also};
  if (!rule.condition(m)) return kNoNode;
  const NodeId made = build(rule.replacement, m);
  if (made == kNoNode || made == found.root) return kNoNode;
  replaced.insert(replaced.end(), found.below.begin(), found.below.end());
  replaced.insert(replaced.end(), also.begin(), also.end());
  return made;
}

NodeId apply(const Rule& rule, Rewriter& r, NodeId root, std::vector<NodeId>& replaced) {
  if (rule.tells_known && r.known(root)) return kNoNode;
  NodeId result = kNoNode;
  match(r, rule.pattern, root, [&](const Found& found) {
    result = apply_at(rule, r, found, replaced);
    return result != kNoNode;
  });
  return result;
}

} // namespace svod::rewrite
