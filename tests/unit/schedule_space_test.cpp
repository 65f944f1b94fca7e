// The schedules that a search may choose from: they fit, no two are equal, and kernels
// that run by them compute what the evaluator does.
#include "compiler/kernel/fit.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/optimize/search/schedule_space.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/program_forms.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::optimize;
using namespace svod::test;

namespace {

constexpr LevelChoice kLevels[] = {{"x86-64-v4"}, {"x86-64-v3", 8}, {"x86-64-v2", 4}};
constexpr size_t kMost = 1000;

CompileOptions options_for(const Target& target) {
  CompileOptions out;
  out.target = target;
  out.as_written = true;
  return out;
}

std::vector<ScheduleCandidate> candidates_of(const ScheduledKernel& program,
                                             const Target& target) {
  SearchBudget budget;
  return level_candidates(program, program.levels[0], target.levels[0], {}, kMost,
                          budget);
}

} // namespace

TEST_CASE("candidates fit, differ, and come by their cost", "[space]") {
  const Target target = *target_for({"x86-64-v2", 4});
  size_t found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const codegen::Kernels kernels =
        compile(large_graph(seed).graph, options_for(target));
    for (const ScheduledKernel& program : kernels.plan.programs) {
      const auto candidates = candidates_of(program, target);
      found += candidates.size();
      const LevelSchedule& chosen = program.levels[0];
      for (size_t i = 0; i < candidates.size(); ++i) {
        const auto& [schedule, seconds] = candidates[i];
        const LevelSchedule proven =
            schedule_tile(program, target.levels[0], chosen.lanes, schedule.tile);
        CHECK(misfit(program, schedule, proven) == "");
        CHECK(!(schedule == chosen));
        if (i > 0) CHECK(candidates[i - 1].seconds <= seconds);
        CHECK(std::ranges::count(candidates, schedule, &ScheduleCandidate::schedule) ==
              1);
      }
      SearchBudget budget;
      const auto few = level_candidates(program, chosen, target.levels[0], {}, 3, budget);
      REQUIRE(few.size() == std::min<size_t>(3, candidates.size()));
      for (size_t i = 0; i < few.size(); ++i)
        CHECK(few[i].schedule == candidates[i].schedule);
    }
  }
  CHECK(found > 200);
}

TEST_CASE("any schedule of the space computes what the evaluator does",
          "[space][property][long]") {
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const RandomGraph random = large_graph(seed);
      CompileOptions options = options_for(*target);
      const ScheduleFile file =
          drawn_schedules(compile(random.graph, options).plan, *target, seed);
      AppliedSchedules applied;
      options.schedules = &file;
      options.applied = &applied;
      const codegen::Kernels kernels = compile(random.graph, options);
      INFO("level " << level.name << ", seed " << seed);
      CHECK(applied.misfits.empty());
      CHECK(applied.used.size() == file.size());
      CHECK(check_answers(random, kernels, *target) == "");
    }
  }
}
