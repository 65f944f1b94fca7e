// The arena: no two lives share bytes, and no plan is below the bound.
#include "compiler/kernel/verify.h"
#include "compiler/plan/plan_memory.h"
#include "compiler/plan/verify.h"
#include "compiler/support/check.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

static void check_plan(const std::vector<plan::Lifetime>& lives,
                       const plan::MemoryPlan& plan, uint64_t align) {
  REQUIRE(plan.offsets.size() == lives.size());
  CHECK(plan.bytes >= plan.lower_bound);
  for (size_t i = 0; i < lives.size(); ++i) {
    REQUIRE(plan.offsets[i] % align == 0);
    REQUIRE(plan.offsets[i] + lives[i].bytes <= plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      bool apart = plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                   plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
      REQUIRE((!together || apart));
    }
  }
}

TEST_CASE("no two lives share bytes", "[plan][property]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::vector<plan::Lifetime> lives;
    for (int64_t count = random.between(1, 24); count > 0; --count) {
      auto first = static_cast<uint32_t>(random.below(12));
      auto last = first + static_cast<uint32_t>(random.below(6));
      lives.push_back({static_cast<uint64_t>(random.between(1, 900)), first, last});
    }
    INFO("seed " << seed);
    check_plan(lives, plan::plan_memory(lives, 64), 64);
  }
}

TEST_CASE("lives one after the other share their bytes", "[plan]") {
  const auto plan = plan::plan_memory({{100, 0, 1}, {60, 1, 2}, {128, 2, 3}}, 64);
  CHECK(plan.lower_bound == 192);
  CHECK(plan.bytes == 192);
}

static plan::Step step_of(plan::StepKind kind, plan::SlotId slot) {
  plan::Step step;
  step.kind = kind;
  step.slot = slot;
  return step;
}

TEST_CASE("verify finds temporaries that share bytes or end outside", "[plan]") {
  plan::Plan s;
  s.arena_bytes = 128;
  s.slots = {{plan::SlotClass::Temporary, 0, 0, 64, 0},
             {plan::SlotClass::Temporary, 0, 64, 64, 0}};
  s.steps = {step_of(plan::StepKind::Allocate, 0), step_of(plan::StepKind::Allocate, 1),
             step_of(plan::StepKind::Deallocate, 0),
             step_of(plan::StepKind::Deallocate, 1)};
  CHECK_NOTHROW(verify(s));
  s.slots[1].offset = 32;
  CHECK_THROWS_AS(verify(s), InternalError);
  s.slots[1].offset = 128;
  CHECK_THROWS_AS(verify(s), InternalError);
  s.slots[1].offset = 64;
  s.steps.pop_back();
  CHECK_THROWS_AS(verify(s), InternalError);
}

TEST_CASE("verify finds accesses outside a buffer", "[fuse]") {
  FusedGraph f;
  f.buffers.push_back({0, DType::F32, {10}, row_major(1), -1, {}});
  ScheduledKernel k;
  AxisId axis = k.indices.add_axis(10);
  k.outer = {axis};
  k.arguments = {{Argument::Kind::Buffer, 0, DType::F32, true, false}};
  Stage store;
  store.value = k.add(Expr{Expr::Kind::Constant, DType::F32});
  store.index = k.indices.axis(axis);
  k.stages = {store};
  k.loops = plain_loops(k);
  f.kernels = {k};
  CHECK_NOTHROW(verify(f));
  f.kernels[0].stages[0].index.constant = 1;
  CHECK_THROWS_AS(verify(f), InternalError);
  f.kernels[0] = k;
  f.kernels[0].arguments[0].id = 1;
  CHECK_THROWS_AS(verify(f), InternalError);
}
