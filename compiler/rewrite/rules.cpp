#include "compiler/rewrite/rule_parts.h"

#include <array>
#include <numbers>

namespace svod::rewrite {

pattern::Pattern exp_over_sum() {
  using namespace pattern;
  return z(exp(x - expand(w(max_over(x))))) / expand(y(sum(z)));
}

pattern::Pattern clamped_sum() {
  using namespace pattern;
  return once(min(once(max(x + c, y)), z));
}

static std::vector<Rule> make_rules() {
  using namespace pattern;
  // Of a GELU, x/2 (1 + erf(x / sqrt 2)); the number is as exporters write it in f32.
  const Pattern one_and_erf = once(once(erf(x * near(std::numbers::sqrt2 / 2))) + 1);
  std::vector<Rule> rules;
#define RULE(name, pattern, replacement, condition)                                      \
  rules.emplace_back(#name, pattern, replacement, condition);
#include "compiler/rewrite/rules.def"
  return rules;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = make_rules();
  return all;
}

const std::vector<size_t>& rules_of(Op op) {
  static const auto by_op = [] {
    std::array<std::vector<size_t>, 256> of;
    for (size_t row = 0; row < rules().size(); ++row) {
      const pattern::Pattern& p = rules()[row].pattern;
      for (size_t each = 0; each < of.size(); ++each)
        if (p.kind != pattern::Pattern::Kind::Op || p.is_of(static_cast<Op>(each)))
          of[each].push_back(row);
    }
    return of;
  }();
  return by_op[static_cast<size_t>(op)];
}

} // namespace svod::rewrite
