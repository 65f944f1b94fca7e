#include "packager/tune/trials.h"

#include "compiler/optimize/search/schedule_space.h"

#include <algorithm>
#include <set>

namespace svod::packager {

namespace {

// Below this share of a run the best schedule gains less than runs differ.
constexpr double kLeastShare = 0.003;
constexpr size_t kMostOfKernel = 24;

class Collector {
public:
  Collector(const plan::Plan& plan, const Target& target, size_t level, int threads,
            const TunedKernels& best)
      : target_(target), level_(level), best_(best),
        around_{double(plan.weight_bytes) + double(plan.arena_bytes), threads} {}

  void add(const ScheduledKernel& k, bool joined, size_t program) {
    const Digest digest = digest_of(k, joined);
    std::vector<Trial>& trials = kernels_[digest];
    for (Trial& trial : trials) trial.programs.push_back(program);
    if (!trials.empty() || k.call() || k.sequence()) return;
    const auto better = best_.find(digest);
    const LevelSchedule& chosen =
        better == best_.end() ? k.levels[level_] : better->second.schedule.levels[0];
    for (optimize::ScheduleCandidate& candidate : optimize::level_candidates(
             k, chosen, target_.levels[level_], around_, kMostOfKernel, budget_))
      trials.push_back({digest, {k.loops, {std::move(candidate.schedule)}}, {program}});
  }

  std::vector<Trial> by_rank() {
    std::vector<Trial> out;
    for (size_t rank = 0; rank < kMostOfKernel; ++rank)
      for (auto& [digest, trials] : kernels_)
        if (rank < trials.size()) out.push_back(std::move(trials[rank]));
    return out;
  }

private:
  const Target& target_;
  size_t level_;
  const TunedKernels& best_;
  cost::Surroundings around_;
  optimize::SearchBudget budget_; // measuring takes the time, not pricing
  std::map<Digest, std::vector<Trial>> kernels_;
};

} // namespace

std::string program_name(size_t program) { return "k" + std::to_string(program); }

std::vector<Trial> trials_of(const plan::Plan& plan, const Target& target, size_t level,
                             int threads, const Profile& profile,
                             const TunedKernels& best) {
  Collector collector(plan, target, level, threads, best);
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const auto time = profile.kernels.find(program_name(i));
    if (time == profile.kernels.end() || time->second < kLeastShare * profile.total)
      continue;
    collector.add(plan.programs[i], false, i);
    for (const ScheduledKernel& part : plan.programs[i].parts())
      collector.add(part, true, i);
  }
  return collector.by_rank();
}

std::vector<Trial> next_round(std::vector<Trial>& left) {
  std::vector<Trial> round, later;
  std::set<size_t> taken;
  for (Trial& trial : left) {
    const bool is_free = std::ranges::none_of(
        trial.programs, [&](size_t program) { return taken.contains(program); });
    if (is_free) taken.insert(trial.programs.begin(), trial.programs.end());
    (is_free ? round : later).push_back(std::move(trial));
  }
  left = std::move(later);
  return round;
}

} // namespace svod::packager
