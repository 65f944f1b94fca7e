#include "tests/support/program_forms.h"

#include "compiler/fuse.h"
#include "compiler/optimize/search/loop_space.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"

#include <functional>

namespace svod::test {

namespace {

constexpr size_t kMostOfKernel = 1000, kPriced = 2000, kCuts = 20, kGraphs = 8;
constexpr int kThreads = 4; // that chunks are chosen for
constexpr LevelChoice kLevels[] = {
    {"x86-64-v4"}, {"x86-64-v3"}, {"x86-64-v2"}, {"x86-64-v3", 4}};

RandomGraph graph_of(uint64_t seed) {
  switch (seed % 3) {
  case 0:
    return random_graph(seed);
  case 1:
    return large_graph(seed);
  default:
    return model_graph(seed);
  }
}

// Below this machine's best one where it has fewer.
Target target_of(uint64_t seed) {
  for (size_t i = seed / 3; i < seed / 3 + std::size(kLevels); ++i)
    if (auto target = target_for(kLevels[i % std::size(kLevels)])) return *target;
  return *find_target("native");
}

codegen::Kernels unfused(const Graph& graph, const Target& target) {
  const select::CutSearchOptions stored{0, 0, 0, 0,
                                        [](const std::vector<CutChoice>& choices) {
                                          select::CutDecisions out;
                                          for (const CutChoice& choice : choices)
                                            if (!choice.stored)
                                              out.stored.insert(choice.node);
                                          return out;
                                        }};
  Passes passes;
  FusedGraph fused = fuse(rewrite::simplify(graph), target, true, passes, {}, stored);
  ScheduledPlan scheduled =
      schedule(plan::plan(std::move(fused), target.machine()), target);
  return codegen::emit(std::move(scheduled.plan), target);
}

} // namespace

ScheduleFile drawn_schedules(const plan::Plan& plan, const Target& target,
                             uint64_t seed) {
  ScheduleFile out;
  Random draw(seed);
  for (const ScheduledKernel& program : plan.programs) {
    optimize::SearchBudget budget;
    auto candidates = optimize::level_candidates(
        program, program.levels[0], target.levels[0], {}, kMostOfKernel, budget);
    auto others =
        optimize::kernel_candidates(program, program.levels[0], target.levels[0],
                                    {0, kThreads}, false, kMostOfKernel, budget);
    // Half of them have other loops or vectors, where there are any.
    if (!others.empty() && (candidates.empty() || draw.below(2) == 0))
      candidates = std::move(others);
    if (candidates.empty()) continue;
    const auto at = static_cast<size_t>(draw.below(std::ssize(candidates)));
    KernelSchedule schedule = program;
    schedule.levels = {candidates[at].schedule};
    if (candidates[at].loops) schedule.loops = *candidates[at].loops;
    out.emplace(digest_of(program), std::move(schedule));
  }
  return out;
}

std::string check_forms(uint64_t seed) {
  const RandomGraph random = graph_of(seed);
  const Target target = target_of(seed);
  CompileOptions rules;
  rules.target = target;
  rules.as_written = true;
  CompileOptions searched = rules;
  searched.search_budget = kPriced;
  searched.fusion_budget = kCuts;
  searched.equal_budget = kGraphs;
  const codegen::Kernels ruled = compile(random.graph, rules);
  const ScheduleFile file = drawn_schedules(ruled.plan, target, seed);
  optimize::AppliedSchedules applied;
  CompileOptions tuned = rules;
  tuned.schedules = &file;
  tuned.applied = &applied;
  const std::pair<const char*, codegen::Kernels> forms[] = {
      {"unfused", unfused(random.graph, target)},
      {"rules", ruled},
      {"searched", compile(random.graph, searched)},
      {"tuned", compile(random.graph, tuned)}};
  for (const auto& [name, kernels] : forms)
    if (const std::string what = check_answers(random, kernels, target); !what.empty())
      return std::string(name) + ", " + target.levels[0].name + ": " + what;
  return applied.misfits.empty() ? "" : "tuned: " + applied.misfits[0].text();
}

} // namespace svod::test
