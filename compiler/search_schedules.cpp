#include "compiler/search_schedules.h"

#include "compiler/optimize/search/schedule_space.h"
#include "compiler/plan_cost.h"

#include <algorithm>
#include <numeric>

namespace svod {

namespace {

// Another schedule is taken where it is predicted to save at least this share of the
// rules' time. The rules' one is near the best of most kernels, and the model ranks
// schedules that are near each other no better than by 0.7 (docs/search.md): of those
// that were predicted to save 15 to 25 %, copies took up to twice as long.
constexpr double kLeastGain = 0.25;

class ScheduleSearcher {
public:
  ScheduleSearcher(plan::Plan& plan, const Target& target, size_t candidates,
                   const std::set<Digest>& kept)
      : plan_(plan), target_(target), candidates_(candidates), kept_(kept),
        budget_{candidates},
        around_{double(plan.weight_bytes) + double(plan.arena_bytes), 1} {}

  ScheduleSearch run() {
    for (uint32_t program : costliest_first()) {
      ScheduledKernel& kernel = plan_.programs[program];
      search(kernel, program, false);
      for (ScheduledKernel& part : kernel.parts()) search(part, program, true);
    }
    out_.priced = candidates_ - budget_.left;
    out_.out_of_budget = budget_.left == 0;
    return std::move(out_);
  }

private:
  // By what all launches of a program take on the best level.
  std::vector<uint32_t> costliest_first() const {
    std::vector<double> seconds(plan_.programs.size());
    for (const LaunchCost& launch :
         cost_of(plan_, target_, target_.levels.size() - 1, 1).launches)
      seconds[launch.program] += double(launch.times) * launch.each.total;
    std::vector<uint32_t> order(plan_.programs.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{},
                             [&](uint32_t program) { return seconds[program]; });
    return order;
  }

  void search(ScheduledKernel& kernel, uint32_t program, bool joined) {
    if (kernel.call() || kernel.sequence()) return;
    const Digest digest = digest_of(kernel, joined);
    if (kept_.contains(digest)) return;
    for (size_t i = 0; i < kernel.levels.size(); ++i) {
      const Level& level = target_.levels[i];
      LevelSchedule& chosen = kernel.levels[i];
      // Code for size has no other schedule that is as small.
      if (chosen.small || budget_.left == 0) continue;
      const auto best =
          optimize::level_candidates(kernel, chosen, level, around_, 1, budget_);
      if (best.empty()) continue;
      const double rules = cost::cost_of(kernel, chosen, level, around_).total;
      if (best[0].seconds > (1 - kLeastGain) * rules) continue;
      chosen = best[0].schedule;
      out_.changed.push_back({program, digest, level.suffix, rules, best[0].seconds});
    }
  }

  plan::Plan& plan_;
  const Target& target_;
  size_t candidates_;
  const std::set<Digest>& kept_;
  optimize::SearchBudget budget_;
  cost::Surroundings around_;
  ScheduleSearch out_;
};

} // namespace

ScheduleSearch search_schedules(plan::Plan& plan, const Target& target, size_t candidates,
                                const std::set<Digest>& kept) {
  return ScheduleSearcher(plan, target, candidates, kept).run();
}

} // namespace svod
