// The arena: no two lives share bytes, and no plan is below the bound.
#include "compiler/kernel/verify.h"
#include "compiler/plan/plan_memory.h"
#include "compiler/plan/verify.h"
#include "compiler/support/check.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <numeric>

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

namespace {

// The least arena of all: blocks by ascending offset, each pushed down as far as it goes,
// are some order of placing each at the lowest place that is free.
uint64_t least_arena(const std::vector<plan::Lifetime>& lives) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  uint64_t least = ~uint64_t{0};
  do {
    std::vector<uint64_t> offsets(lives.size());
    uint64_t end = 0;
    for (size_t n = 0; n < order.size() && end < least; ++n) {
      const plan::Lifetime& mine = lives[order[n]];
      uint64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t m = 0; m < n; ++m) {
          const plan::Lifetime& other = lives[order[m]];
          const uint64_t from = offsets[order[m]];
          if (mine.first > other.last || other.first > mine.last) continue;
          if (at < from + other.bytes && from < at + mine.bytes)
            at = from + other.bytes, moved = true;
        }
      }
      offsets[order[n]] = at;
      end = std::max(end, at + mine.bytes);
    }
    least = std::min(least, end);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

} // namespace

TEST_CASE("of few lives no plan takes less", "[plan][property]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<plan::Lifetime> lives;
    for (int64_t i = random.between(2, 7); i > 0; --i) {
      const auto first = static_cast<uint32_t>(random.between(0, 7));
      lives.push_back({static_cast<uint64_t>(random.between(1, 40)), first,
                       first + static_cast<uint32_t>(random.between(0, 4))});
    }
    const plan::MemoryPlan memory = plan::plan_memory(lives, 1);
    REQUIRE(memory.bytes == least_arena(lives));
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
