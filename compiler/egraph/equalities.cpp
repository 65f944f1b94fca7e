#include "compiler/egraph/equality.h"
#include "compiler/egraph/equality_parts.h"

#include <algorithm>

namespace svod::egraph {

using rewrite::Rule;
using rewrite::pattern::Pattern;

std::string_view name_of(Family family) {
  switch (family) {
  case Family::Rules:
    return "rules";
  case Family::Reversed:
    return "reversed";
  case Family::Factor:
    return "factor";
  case Family::Scale:
    return "scale";
  case Family::Transpose:
    return "transpose";
  case Family::Split:
    return "split";
  case Family::Join:
    return "join";
  }
  return "";
}

namespace {

void collect_letters(const Pattern& p, std::set<uint8_t>& letters) {
  if (p.letter != rewrite::pattern::kNoLetter) letters.insert(p.letter);
  for (const Pattern& input : p.inputs) collect_letters(input, letters);
}

// Whether a side can be found and made: scalar functions of letters and exact numbers.
bool reads_both_ways(const Pattern& p) {
  if (p.kind == Pattern::Kind::Made || p.tolerance != 0) return false;
  if (p.kind == Pattern::Kind::Any) return true;
  // A letter at an op stands for that op, which only the pattern has.
  if (p.letter != rewrite::pattern::kNoLetter) return false;
  if (p.kind != Pattern::Kind::Op) return true;
  return is_map(p.op) && !p.any_map && std::ranges::all_of(p.inputs, reads_both_ways);
}

std::vector<Equality> make_equalities() {
  using namespace rewrite;
  using namespace rewrite::pattern;
  std::vector<Equality> all;
  for (const Rule& rule : rules())
    if (rule.pattern.kind == Pattern::Kind::Op) all.push_back({rule, Family::Rules});
  for (const Rule& rule : rules())
    if (auto back = reversed(rule)) all.push_back({std::move(*back), Family::Reversed});
#define EQUALITY(family, name, pattern, replacement, condition)                          \
  all.push_back({Rule(#name, pattern, replacement, condition), Family::family});
#include "compiler/egraph/equalities.def"
  return all;
}

} // namespace

std::optional<Rule> reversed(const Rule& rule) {
  if (rule.replacement.kind != Pattern::Kind::Op) return std::nullopt;
  if (!reads_both_ways(rule.pattern) || !reads_both_ways(rule.replacement))
    return std::nullopt;
  std::set<uint8_t> left, right;
  collect_letters(rule.pattern, left);
  collect_letters(rule.replacement, right);
  if (left != right) return std::nullopt;
  return Rule(rule.name, rule.replacement, rule.pattern, rule.condition);
}

const std::vector<Equality>& equalities() {
  static const std::vector<Equality> all = make_equalities();
  return all;
}

const std::vector<size_t>& equalities_of(Op op) {
  static const auto by_op = [] {
    std::vector<std::vector<size_t>> of(op_count());
    for (size_t row = 0; row < equalities().size(); ++row)
      for (size_t each = 0; each < of.size(); ++each)
        if (equalities()[row].rule.pattern.is_of(static_cast<Op>(each)))
          of[each].push_back(row);
    return of;
  }();
  return by_op[static_cast<size_t>(op)];
}

} // namespace svod::egraph
