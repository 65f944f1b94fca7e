// How a model is planned as a whole. Costs that are predicted choose among plans, and two
// that are close may be the other way round on a machine: --tune measures them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace svod::packager {

struct PlanChoice {
  bool by_rules = false;   // neither cuts nor equal graphs are searched
  bool as_written = false; // contractions have no form with fewer products
  bool operator==(const PlanChoice&) const = default;
};

// All of them, what a pack without --tuning has first.
std::vector<PlanChoice> all_plan_choices();

// "searched", "rules", "as-written", "rules-as-written".
std::string name_of(const PlanChoice& choice);
std::optional<PlanChoice> plan_choice_named(std::string_view name);

} // namespace svod::packager
