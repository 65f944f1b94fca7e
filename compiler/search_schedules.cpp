#include "compiler/search_schedules.h"

#include "compiler/optimize/schedule_kernel.h"
#include "compiler/optimize/search/loop_space.h"
#include "compiler/plan_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace svod {

namespace {

// Another schedule is taken where it is predicted to save at least this share of the
// rules' time. The rules' one is near the best of most kernels, and the model ranks
// schedules that are near each other no better than by 0.7 (docs/search.md): of those
// that were predicted to save 15 to 25 %, copies took up to twice as long.
constexpr double kLeastGain = 0.25;
// So many of the schedules that a kernel has on a level are remembered.
constexpr size_t kRemembered = 8;

class ScheduleSearcher {
public:
  ScheduleSearcher(plan::Plan& plan, const Target& target, size_t candidates,
                   const std::set<Digest>& kept)
      : plan_(plan), target_(target), candidates_(candidates), kept_(kept),
        budget_{candidates}, around_(searched_among(plan)) {}

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
  // them, as far as their loops are the same ones.
  void search(ScheduledKernel& kernel, uint32_t program, bool joined) {
    if (kernel.call() || kernel.sequence()) return;
    const Digest digest = digest_of(kernel, joined);
    if (kept_.contains(digest)) return;
    const auto [entry, is_new] = found_.try_emplace({digest, print(kernel.loops)});
    if (is_new) entry->second = find(kernel, digest, joined, in_stream(program));
    for (const Found& found : entry->second) {
      LevelSchedule& chosen = kernel.levels[found.level];
      chosen = found.best.schedule;
      if (found.best.loops) kernel.loops = *found.best.loops;
      out_.changed.push_back({program, digest, target_.levels[found.level].suffix,
                              found.rules, found.best.seconds});
    }
  }

  // Launches that take turns do so by chunks that are rows in their order.
  bool in_stream(uint32_t program) const {
    return std::ranges::any_of(plan_.steps, [&](const plan::Step& step) {
      return step.kind == plan::StepKind::LaunchProgram && step.program == program &&
             (step.stream || step.followers > 0);
    });
  }

  struct Found {
    size_t level;
    optimize::ScheduleCandidate best;
    double rules; // seconds, predicted
  };

  std::vector<Found> find(const ScheduledKernel& kernel, const Digest& digest,
                          bool joined, bool in_stream) {
    std::vector<Found> out;
    std::vector<double> rules, now;
    for (size_t i = 0; i < kernel.levels.size(); ++i) {
      const Level& level = target_.levels[i];
      const LevelSchedule& chosen = kernel.levels[i];
      // Code for size has no other schedule that is as small.
      if (chosen.small || budget_.left == 0) return out;
      auto best = optimize::level_candidates(kernel, chosen, level, around_, kRemembered,
                                             budget_);
      rules.push_back(cost::cost_of(kernel, chosen, level, around_).total);
      now.push_back(rules.back());
      if (!best.empty() && best[0].seconds <= (1 - kLeastGain) * rules[i]) {
        now[i] = best[0].seconds;
        out.push_back({i, best[0], rules[i]});
      }
      out_.considered[{digest, level.suffix}] = {{chosen, rules[i], kernel.loops},
                                                 std::move(best)};
    }
    if (in_stream) return out;
    auto found = other_loops(kernel, digest, joined, rules, now);
    return found.empty() ? out : found;
  }

  // All levels have the same loops, so each of them has to gain as much, and no less than
  // it does by itself.
  std::vector<Found> other_loops(const ScheduledKernel& kernel, const Digest& digest,
                                 bool joined, const std::vector<double>& rules,
                                 const std::vector<double>& now) {
    std::vector<Found> best;
    std::vector<double> lowest(rules.size(), INFINITY);
    double least = 1 - kLeastGain; // of the level that gains least
    for (Loops& loops : optimize::other_loops(kernel, 1)) {
      ScheduledKernel changed = kernel;
      changed.loops = std::move(loops);
      std::vector<Found> found;
      double share = 0;
      for (size_t i = kernel.levels.size(); i-- > 0;) {
        if (budget_.left == 0) return best;
        --budget_.left;
        const Level& level = target_.levels[i];
        LevelSchedule schedule = optimize::schedule_kernel(changed, level, joined);
        const double seconds = cost::cost_of(changed, schedule, level, around_).total;
        share = std::max(share, seconds / rules[i]);
        if (seconds < lowest[i])
          out_.considered.at({digest, level.suffix})
              .other_loops.emplace(schedule, lowest[i] = seconds, changed.loops);
        if (share > least || seconds > now[i]) break;
        found.push_back({i, {std::move(schedule), seconds, changed.loops}, rules[i]});
      }
      if (found.size() == kernel.levels.size()) best = std::move(found), least = share;
    }
    return best;
  }

  plan::Plan& plan_;
  const Target& target_;
  size_t candidates_;
  const std::set<Digest>& kept_;
  optimize::SearchBudget budget_;
  cost::Surroundings around_;
  std::map<std::pair<Digest, std::string>, std::vector<Found>> found_;
  ScheduleSearch out_;
};

} // namespace

cost::Surroundings searched_among(const plan::Plan& plan) {
  return {double(plan.weight_bytes) + double(plan.arena_bytes), 1};
}

ScheduleSearch search_schedules(plan::Plan& plan, const Target& target, size_t candidates,
                                const std::set<Digest>& kept) {
  return ScheduleSearcher(plan, target, candidates, kept).run();
}

} // namespace svod
