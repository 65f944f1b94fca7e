#include "packager/tune/tune_plan.h"

#include "packager/tune/turns.h"

#include <utility>

namespace svod::packager {

namespace {

class PlanTuner {
public:
  PlanTuner(const PlanMeans& means, const std::string& folder)
      : means_(means), now_(folder + "/plan_now"), other_(folder + "/plan_a"),
        best_at_(folder + "/plan_b") {}

  std::optional<FoundPlan> run(const PlanChoice& now) {
    for (const PlanChoice& choice : all_plan_choices())
      if (choice != now && means_.goes_on() && !measure(now, choice)) break;
    return best_ ? checked(*best_) : std::nullopt;
  }

private:
  // The plan that others are compared with, once there is another one.
  bool begins(const PlanChoice& now) {
    if (!level_.empty()) return true;
    if (!means_.build(now, now_)) return false;
    const std::optional<Profile> first = means_.run(now_, kLeastRun);
    if (!first) return false;
    level_ = first->level, unit_ = first->unit;
    seconds_ = seconds_of_run(*first);
    return true;
  }

  // All of them, or nothing.
  std::optional<Turns> whole_turns(const std::string& other, int turns) {
    std::optional<Turns> out = take_turns(
        turns, now_, other, level_,
        [&](const std::string& path) { return means_.run(path, seconds_); },
        means_.interrupted);
    return out && out->whole == turns ? out : std::nullopt;
  }

  // False where nothing can be measured.
  bool measure(const PlanChoice& now, const PlanChoice& choice) {
    means_.tell("tuning: the plan '" + name_of(choice) + "'");
    if (!means_.build(choice, other_)) return true;
    if (!begins(now)) return false;
    const std::optional<Turns> turns = whole_turns(other_, kTurns);
    if (turns && is_faster(turns->other.total, turns->now.total, kLeastGain))
      take(choice, *turns);
    return turns.has_value();
  }

  void take(const PlanChoice& choice, const Turns& turns) {
    // Of several the one that has the least share of what was there before.
    const double share = turns.other.total.value / turns.now.total.value;
    if (best_ && share >= best_share_) return;
    best_ = choice, best_share_ = share;
    std::swap(best_at_, other_);
  }

  std::optional<FoundPlan> checked(const PlanChoice& choice) {
    const std::optional<Turns> turns = whole_turns(best_at_, kFinalTurns);
    if (!turns || !is_faster(turns->other.total, turns->now.total, 0))
      return std::nullopt;
    return FoundPlan{{choice, turns->other.total.value, turns->now.total.value, unit_},
                     level_};
  }

  const PlanMeans& means_;
  std::string now_, other_, best_at_, level_, unit_;
  double seconds_ = kLeastRun, best_share_ = 1;
  std::optional<PlanChoice> best_;
};

} // namespace

std::optional<FoundPlan> tune_plan(const PlanMeans& means, const PlanChoice& now,
                                   const std::string& folder) {
  return PlanTuner(means, folder).run(now);
}

} // namespace svod::packager
