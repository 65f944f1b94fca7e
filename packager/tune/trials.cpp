#include "packager/tune/trials.h"

#include "compiler/optimize/search/loop_space.h"

#include <algorithm>
#include <set>

namespace svod::packager {

namespace {

// Below this share of a run the best schedule gains less than runs differ.
constexpr double kLeastShare = 0.003;
constexpr size_t kMostOfKernel = 24;
// With other loops, or vectors of another length.
constexpr size_t kMostWithLoops = 8;

class Collector {
public:
  Collector(const plan::Plan& plan, const Target& target, size_t level, int threads,
            const TunedKernels& best)
      : plan_(plan), target_(target), level_(level), best_(best),
        around_{double(plan.weight_bytes) + double(plan.arena_bytes), threads} {}

  void add(const ScheduledKernel& k, bool joined, size_t program) {
    const Digest digest = digest_of(k, joined);
    std::vector<Trial>& trials = kernels_[digest];
    for (Trial& trial : trials) trial.programs.push_back(program);
    if (k.call() || k.sequence()) return;
    if (const auto seen = loops_.find(digest); seen != loops_.end()) {
      // Programs that differ in their loops alone would become one.
      std::erase_if(trials,
                    [&](const Trial& t) { return t.schedule.loops != seen->second; });
      return;
    }
    ScheduledKernel start = k;
    const auto better = best_.find(digest);
    if (better != best_.end()) start.loops = better->second.schedule.loops;
    loops_.emplace(digest, start.loops);
    const LevelSchedule& chosen =
        better == best_.end() ? k.levels[level_] : better->second.schedule.levels[0];
    for (optimize::ScheduleCandidate& candidate :
         candidates_of(start, chosen, joined, may_reorder(k, program)))
      trials.push_back(
          {digest,
           {candidate.loops.value_or(start.loops), {std::move(candidate.schedule)}},
           {program}});
  }

  std::vector<Trial> by_rank() {
    std::vector<Trial> out;
    for (size_t rank = 0; rank < kMostOfKernel + kMostWithLoops; ++rank)
      for (auto& [digest, trials] : kernels_)
        if (rank < trials.size()) out.push_back(std::move(trials[rank]));
    return out;
  }

private:
  // Where a result lies on what is read, or launches take turns by chunks, the memory is
  // planned for these loops.
  bool may_reorder(const ScheduledKernel& k, size_t program) const {
    auto shares = [](const ScheduledKernel& kernel) {
      return std::ranges::any_of(kernel.arguments, &Argument::shares);
    };
    return !shares(k) && !shares(plan_.programs[program]) &&
           std::ranges::none_of(plan_.steps, [&](const plan::Step& step) {
             return step.kind == plan::StepKind::LaunchProgram &&
                    step.program == program && (step.stream || step.followers > 0);
           });
  }

  std::vector<optimize::ScheduleCandidate> candidates_of(const ScheduledKernel& k,
                                                         const LevelSchedule& chosen,
                                                         bool joined, bool loops) {
    const Level& level = target_.levels[level_];
    auto out =
        optimize::level_candidates(k, chosen, level, around_, kMostOfKernel, budget_);
    if (!loops) return out;
    // They come last: each round with them compiles kernels for all levels.
    auto others = optimize::kernel_candidates(k, chosen, level, around_, joined,
                                              kMostWithLoops, budget_);
    std::ranges::move(others, std::back_inserter(out));
    return out;
  }

  const plan::Plan& plan_;
  const Target& target_;
  size_t level_;
  const TunedKernels& best_;
  cost::Surroundings around_;
  optimize::SearchBudget budget_; // measuring takes the time, not pricing
  std::map<Digest, std::vector<Trial>> kernels_;
  std::map<Digest, Loops> loops_; // that they start from
};

} // namespace

std::string program_name(size_t program) { return "k" + std::to_string(program); }

// Kernels as a tuning file names them, numbered by the program that has them first: of a
// program and its parts one machine finds out what is fast together.
static std::map<Digest, size_t> numbers_of(const plan::Plan& plan) {
  std::map<Digest, size_t> out;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    out.emplace(digest_of(plan.programs[i], false), i);
    for (const ScheduledKernel& part : plan.programs[i].parts())
      out.emplace(digest_of(part, true), i);
  }
  return out;
}

std::vector<Trial> trials_of(const plan::Plan& plan, const Target& target, size_t level,
                             int threads, const Profile& profile,
                             const TunedKernels& best, Shard shard) {
  Collector collector(plan, target, level, threads, best);
  const std::map<Digest, size_t> numbers = numbers_of(plan);
  const auto add = [&](const ScheduledKernel& kernel, bool joined, size_t program) {
    if (shard.has(numbers.at(digest_of(kernel, joined))))
      collector.add(kernel, joined, program);
  };
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const auto time = profile.kernels.find(program_name(i));
    if (time == profile.kernels.end() || time->second < kLeastShare * profile.total)
      continue;
    add(plan.programs[i], false, i);
    for (const ScheduledKernel& part : plan.programs[i].parts()) add(part, true, i);
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
