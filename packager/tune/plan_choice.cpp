#include "packager/tune/plan_choice.h"

namespace svod::packager {

std::vector<PlanChoice> all_plan_choices() {
  return {{false, false}, {true, false}, {false, true}, {true, true}};
}

std::string name_of(const PlanChoice& choice) {
  if (choice.as_written) return choice.by_rules ? "rules-as-written" : "as-written";
  return choice.by_rules ? "rules" : "searched";
}

std::optional<PlanChoice> plan_choice_named(std::string_view name) {
  for (const PlanChoice& choice : all_plan_choices())
    if (name_of(choice) == name) return choice;
  return std::nullopt;
}

} // namespace svod::packager
