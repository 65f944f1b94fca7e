// Backtracking over a list of goals, "this pattern is found at that node". An op is a
// choice (which form of the node, which order of its operands) that adds its inputs to
// the list; when the list is done the pattern fits. Patterns are a handful of nodes, so
// nothing cleverer pays.
#include "compiler/rewrite/match.h"

#include "compiler/ir/build.h"

#include <algorithm>

namespace svod::rewrite {

using pattern::Pattern;

namespace {

// Minima and maxima are among them, although the builder keeps their order: of zeros of
// either sign the first operand may be the result, and rules may change that sign.
bool may_swap(Op op) {
  switch (op) {
  case Op::Add:
  case Op::Mul:
  case Op::Min:
  case Op::Max:
  case Op::And:
  case Op::Or:
  case Op::Xor:
    return true;
  default:
    return false;
  }
}

class Matcher {
public:
  Matcher(const Forms& forms, const std::function<bool(const Found&)>& accept)
      : forms_(forms), accept_(accept) {}

  bool run(const Pattern& pattern, NodeId root) {
    found_.root = root;
    found_.letters.fill(kNoNode);
    goals_.push_back({&pattern, root});
    return solve(0);
  }

private:
  struct Goal {
    const Pattern* pattern;
    NodeId id;
  };

  // Whether goals from `at` on can be met, with `accept_` agreeing.
  bool solve(size_t at) {
    if (at == goals_.size()) return accept_(found_);
    const Goal goal = goals_[at];
    if (goal.pattern->letter == pattern::kNoLetter) return solve_kind(goal, at, nullptr);
    NodeId& stands_for = found_.letters[goal.pattern->letter];
    if (stands_for != kNoNode)
      return forms_.same(stands_for, goal.id) && solve_kind(goal, at, nullptr);
    stands_for = goal.id;
    if (solve_kind(goal, at, &stands_for)) return true;
    stands_for = kNoNode;
    return false;
  }

  // `letter`: what is still to be the form that fits.
  bool solve_kind(const Goal& goal, size_t at, NodeId* letter) {
    const Pattern& p = *goal.pattern;
    if (p.kind == Pattern::Kind::Any)
      return (!p.known || forms_.known(goal.id)) && solve(at + 1);
    if (p.kind == Pattern::Kind::Op && p.once && !forms_.used_once(goal.id)) return false;
    const auto forms = at == 0 ? std::span(&goal.id, 1) : forms_.of(goal.id);
    for (NodeId form : forms) {
      const Node& node = forms_.node(form);
      if (p.kind != Pattern::Kind::Op) {
        if (is_number(p, node) && solve(at + 1)) return true;
        continue;
      }
      if (!p.is_of(node.op) || (!p.any_inputs && node.inputs.size() != p.inputs.size()))
        continue;
      if (letter != nullptr) *letter = form;
      if (solve_inputs(p, form, at)) return true;
    }
    return false;
  }

  bool solve_inputs(const Pattern& p, NodeId form, size_t at) {
    const size_t goals = goals_.size(), below = found_.below.size();
    if (at > 0) found_.below.push_back(form);
    const int orders = !p.any_inputs && may_swap(p.op) ? 2 : 1;
    for (int order = 0; order < orders; ++order) {
      const std::vector<NodeId>& inputs = forms_.node(form).inputs;
      for (size_t i = 0; i < p.inputs.size(); ++i)
        goals_.push_back({&p.inputs[order == 0 ? i : 1 - i], inputs[i]});
      if (solve(at + 1)) return true;
      goals_.resize(goals);
    }
    found_.below.resize(below);
    return false;
  }

  static bool is_number(const Pattern& p, const Node& node) {
    if (node.op != Op::Constant) return false;
    const auto bits = static_cast<uint64_t>(node.payload[0]);
    if (p.tolerance == 0) return bits == bits_of(p, node.dtype);
    return std::fabs(scalar_value(node.dtype, bits) / p.number - 1) < p.tolerance;
  }

  const Forms& forms_;
  const std::function<bool(const Found&)>& accept_;
  Found found_;
  std::vector<Goal> goals_;
};

} // namespace

uint64_t bits_of(const Pattern& number, DType dtype) {
  if (number.kind != Pattern::Kind::AllOnes) return scalar_bits(dtype, number.number);
  return dtype == DType::Bool ? 1 : scalar_bits_int(dtype, -1);
}

bool match(const Forms& forms, const Pattern& pattern, NodeId root,
           const std::function<bool(const Found&)>& accept) {
  return Matcher(forms, accept).run(pattern, root);
}

} // namespace svod::rewrite
