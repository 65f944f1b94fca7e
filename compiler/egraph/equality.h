// What the search holds to be equal: the rules of simplify (rules.def), those of them
// that hold the other way round as well, and equalities that lead nowhere by themselves
// (equalities.def), so that only a cost can choose between their sides.
#pragma once

#include "compiler/rewrite/rule.h"

#include <optional>
#include <set>

namespace svod::egraph {

enum class Family : uint8_t { Rules, Reversed, Factor, Scale, Transpose, Split, Join };
std::string_view name_of(Family family);

struct Equality {
  rewrite::Rule rule;
  Family family;
  // All bits stay but the sign of zeros. Where a rounding must stay (--accuracy exact, or
  // a rounding to integers that follows) no other applies.
  bool keeps_rounding() const { return !rule.condition.changes_rounding(); }
};

// All but those of the family Join, which take more than one root (join_contractions.h).
const std::vector<Equality>& equalities();
// Which of them may be found at a node of this op, in order.
const std::vector<size_t>& equalities_of(Op op);

// The rule from right to left. Nothing where its sides do not say all that the other
// needs: a helper makes the right one, a letter of the left one is not in it, a number
// stands for several, an op needs a payload.
std::optional<rewrite::Rule> reversed(const rewrite::Rule& rule);

} // namespace svod::egraph
