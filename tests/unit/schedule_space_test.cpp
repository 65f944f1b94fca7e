// The schedules that a search may choose from: they fit, no two are equal, and kernels
// that run by them compute what the evaluator does.
#include "compiler/kernel/fit.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/optimize/search/loop_space.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/program_forms.h"
#include "tests/support/seeds.h"

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
        const auto& [schedule, seconds, loops] = candidates[i];
        CHECK(!loops);
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

TEST_CASE("other loops and vectors fit, differ, and come by their cost", "[space]") {
  const Target target = *target_for({"x86-64-v3"});
  const Level& level = target.levels[0];
  size_t orders = 0, chunks = 0, narrow = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const codegen::Kernels kernels =
        compile(large_graph(seed).graph, options_for(target));
    for (const ScheduledKernel& program : kernels.plan.programs) {
      SearchBudget budget;
      const LevelSchedule& chosen = program.levels[0];
      const auto candidates =
          kernel_candidates(program, chosen, level, {0, 4}, false, kMost, budget);
      double before = 0;
      for (const auto& [schedule, seconds, loops] : candidates) {
        ScheduledKernel changed = program;
        if (loops) changed.loops = *loops;
        CHECK(misfit(program, changed.loops, program.loops) == "");
        const LevelSchedule proven =
            schedule_tile(changed, level, schedule.lanes, schedule.tile);
        CHECK(misfit(changed, schedule, proven) == "");
        CHECK((loops || schedule.lanes != chosen.lanes));
        CHECK(before <= seconds);
        before = seconds;
        orders += loops && loops->chunks == program.loops.chunks;
        chunks += loops && loops->chunks != program.loops.chunks;
        narrow += schedule.lanes != chosen.lanes;
        CHECK((changed.chunk_count() > 1) == (program.chunk_count() > 1));
      }
    }
  }
  CHECK(orders > 100);
  INFO("chunks " << chunks << ", narrow " << narrow);
  CHECK(chunks + narrow > 0);
}

TEST_CASE("what depends on the order of its loops has no other ones", "[space]") {
  const Target target = *target_for({"x86-64-v3"});
  size_t scatters = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const codegen::Kernels kernels =
        compile(random_graph(seed).graph, options_for(target));
    for (const ScheduledKernel& program : kernels.plan.programs)
      if (std::ranges::any_of(program.stages, [](const Stage& s) {
            return s.kind == StageKind::Scatter;
          })) {
        CHECK(other_loops(program, 4).empty());
        ++scatters;
      }
  }
  CHECK(scatters > 0);
}

TEST_CASE("any schedule of the space computes what the evaluator does",
          "[space][property][long]") {
  const Seeds seeds = part_of({0, 99});
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
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
