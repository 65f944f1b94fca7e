#include "compiler/search_schedules.h"

#include "compiler/optimize/search/schedule_space.h"
#include "compiler/plan_cost.h"

#include <algorithm>
#include <map>
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

  // Kernels of one digest get the same schedules, also where the budget ends between
  // them.
  void search(ScheduledKernel& kernel, uint32_t program, bool joined) {
    if (kernel.call() || kernel.sequence()) return;
    const Digest digest = digest_of(kernel, joined);
    if (kept_.contains(digest)) return;
    const auto [entry, is_new] = found_.try_emplace(digest);
    if (is_new) entry->second = find(kernel);
    for (const Found& found : entry->second) {
      LevelSchedule& chosen = kernel.levels[found.level];
      chosen = found.best.schedule;
      out_.changed.push_back({program, digest, target_.levels[found.level].suffix,
                              found.rules, found.best.seconds});
    }
  }

  struct Found {
    size_t level;
    optimize::ScheduleCandidate best;
    double rules; // seconds, predicted
  };

  std::vector<Found> find(const ScheduledKernel& kernel) {
    std::vector<Found> out;
    for (size_t i = 0; i < kernel.levels.size(); ++i) {
      const Level& level = target_.levels[i];
      const LevelSchedule& chosen = kernel.levels[i];
      // Code for size has no other schedule that is as small.
      if (chosen.small || budget_.left == 0) continue;
      auto best = optimize::level_candidates(kernel, chosen, level, around_, 1, budget_);
      if (best.empty()) continue;
      const double rules = cost::cost_of(kernel, chosen, level, around_).total;
      if (best[0].seconds > (1 - kLeastGain) * rules) continue;
      out.push_back({i, std::move(best[0]), rules});
    }
    return out;
  }

  plan::Plan& plan_;
  const Target& target_;
  size_t candidates_;
  const std::set<Digest>& kept_;
  optimize::SearchBudget budget_;
  cost::Surroundings around_;
  std::map<Digest, std::vector<Found>> found_;
  ScheduleSearch out_;
};

} // namespace

ScheduleSearch search_schedules(plan::Plan& plan, const Target& target, size_t candidates,
                                const std::set<Digest>& kept) {
  return ScheduleSearcher(plan, target, candidates, kept).run();
}

} // namespace svod
