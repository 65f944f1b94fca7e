// Choice by cost: never costlier than the rules, bounded by its budget, the same again,
// and right.
#include "compiler/pipeline.h"
#include "compiler/plan_cost.h"
#include "tests/support/check_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

CompileOptions options_for(const Target& target, size_t budget, ScheduleSearch* found) {
  CompileOptions out;
  out.target = target;
  out.as_written = true;
  out.search_budget = budget;
  out.searched = found;
  return out;
}

// Kernels that leave much to be found: the rules' schedules without tiles.
plan::Plan without_tiles(plan::Plan plan) {
  for (ScheduledKernel& program : plan.programs)
    for (LevelSchedule& level : program.levels) level.tile.clear();
  return plan;
}

} // namespace

TEST_CASE("a search never costs more than the rules, and less where they are poor",
          "[space][search]") {
  const Target target = *target_for({"x86-64-v3", 8});
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto kernels =
        compile(large_graph(seed).graph, options_for(target, 0, nullptr));
    const plan::Plan rules = without_tiles(kernels.plan);
    plan::Plan plan = rules;
    const ScheduleSearch found = search_schedules(plan, target, 100000);
    changed += found.changed.size();
    CHECK_FALSE(found.out_of_budget);
    const double before = cost_of(rules, target, 0, 1).total.total;
    const double after = cost_of(plan, target, 0, 1).total.total;
    CHECK(after <= before);
    if (!found.changed.empty()) CHECK(after < before);
    for (const ChangedSchedule& c : found.changed) CHECK(c.seconds <= 0.75 * c.rules);
  }
  CHECK(changed > 5);
}

TEST_CASE("a search prices what its budget allows, and kept kernels stay",
          "[space][search]") {
  const Target target = *target_for({"x86-64-v3", 8});
  const auto kernels = compile(large_graph(3).graph, options_for(target, 0, nullptr));
  const plan::Plan rules = without_tiles(kernels.plan);
  plan::Plan all = rules, few = rules, again = rules, kept = rules;
  const ScheduleSearch found = search_schedules(all, target, 100000);
  REQUIRE(found.priced > 10);
  const ScheduleSearch ended = search_schedules(few, target, 10);
  CHECK(ended.priced == 10);
  CHECK(ended.out_of_budget);
  search_schedules(again, target, 10);
  std::set<Digest> digests;
  for (size_t i = 0; i < rules.programs.size(); ++i) {
    CHECK(few.programs[i].levels == again.programs[i].levels);
    digests.insert(digest_of(rules.programs[i]));
    for (const ScheduledKernel& part : rules.programs[i].parts())
      digests.insert(digest_of(part, true));
  }
  CHECK(search_schedules(kept, target, 100000, digests).priced == 0);
  for (size_t i = 0; i < rules.programs.size(); ++i)
    CHECK(kept.programs[i].levels == rules.programs[i].levels);
}

TEST_CASE("kernels of one digest get one schedule where the budget ends between them",
          "[space][search]") {
  const Target target = *target_for({"x86-64-v3", 8});
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto kernels =
        compile(large_graph(seed).graph, options_for(target, 0, nullptr));
    plan::Plan plan = without_tiles(kernels.plan);
    const size_t programs = plan.programs.size();
    for (size_t i = 0; i < programs; ++i)
      plan.programs.push_back(ScheduledKernel(plan.programs[i]));
    for (const size_t budget : {20, 100, 300, 100000}) {
      plan::Plan searched = plan;
      changed += search_schedules(searched, target, budget).changed.size();
      for (size_t i = 0; i < programs; ++i)
        CHECK(searched.programs[i].levels == searched.programs[programs + i].levels);
    }
  }
  CHECK(changed > 5);
}

TEST_CASE("searched kernels compute what the evaluator does", "[space][search][sweep]") {
  const auto target = target_for({"x86-64-v3", 8});
  if (!target) return;
  for (uint64_t seed = 0; seed < swept(10, 4); ++seed) {
    const RandomGraph random = large_graph(seed);
    ScheduleSearch found;
    const auto kernels = compile(random.graph, options_for(*target, 20000, &found));
    INFO("seed " << seed);
    CHECK(check_answers(random, kernels, *target) == "");
  }
}
