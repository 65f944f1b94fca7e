// Results on what their kernels read: how far apart they are kept, and that a run still
// computes what the evaluator does.
#include "compiler/optimize/search/schedule_space.h"
#include "compiler/pipeline.h"
#include "compiler/plan/apart.h"
#include "compiler/plan/plan_memory.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

TEST_CASE("a pair may share bytes as far as it is allowed to", "[plan][overlap]") {
  const std::vector<plan::Lifetime> lives = {{640, 0, 1}, {640, 1, 2}, {64, 0, 2}};
  CHECK(plan::plan_memory(lives, 64).bytes == 1344);
  const plan::MemoryPlan below = plan::plan_memory(lives, 64, {{0, 1, 70, 640}});
  CHECK(below.bytes == 832); // 128 apart
  CHECK(below.lower_bound == 832);
  CHECK(below.offsets[0] == below.offsets[1] + 128);
  const plan::MemoryPlan above = plan::plan_memory(lives, 64, {{0, 1, 640, 0}});
  CHECK(above.bytes == 704);
  CHECK(above.offsets[1] >= above.offsets[0]);
}

TEST_CASE("pairs keep their distance, all others share nothing",
          "[plan][overlap][property]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<plan::Lifetime> lives;
    std::vector<plan::MemoryPair> pairs;
    for (uint32_t s = 0; s < 12; ++s) {
      lives.push_back({static_cast<uint64_t>(random.between(1, 900)), s, s + 1});
      const auto bytes = [&](uint32_t i) { return static_cast<int64_t>(lives[i].bytes); };
      if (s > 0)
        pairs.push_back({s - 1, s, static_cast<uint64_t>(random.between(0, bytes(s))),
                         static_cast<uint64_t>(random.between(0, bytes(s - 1)))});
    }
    const plan::MemoryPlan plan = plan::plan_memory(lives, 8, pairs);
    INFO("seed " << seed);
    for (const plan::MemoryPair& p : pairs) {
      const auto first = static_cast<int64_t>(plan.offsets[p.first]);
      const auto second = static_cast<int64_t>(plan.offsets[p.second]);
      REQUIRE((second + static_cast<int64_t>(p.below) <= first ||
               second >= first + static_cast<int64_t>(p.above)));
    }
    REQUIRE(plan.bytes <= plan::plan_memory(lives, 8).bytes);
  }
}

namespace {

// A kernel that copies what is at `load` to `store`, both sums of axes times numbers, in
// loops over axes of these extents; the last one is in tiles.
struct Copy {
  std::vector<int64_t> extents, load, store;
  int tile = 1;
  int64_t inner = 1; // positions that one step reads beside each other
};

ScheduledKernel kernel_of(const Copy& copy) {
  ScheduledKernel k;
  k.arguments = {{Argument::Kind::Buffer, 0, DType::U8, false, true},
                 {Argument::Kind::Buffer, 1, DType::U8, true, false}};
  Expr load{Expr::Kind::Load, DType::U8};
  Stage store;
  store.argument = 1;
  store.dtype = DType::U8;
  for (size_t i = 0; i < copy.extents.size(); ++i) {
    const AxisId axis = k.indices.add_axis(copy.extents[i]);
    const auto at = [&](int64_t by) {
      return IndexPool::scale(k.indices.axis(axis), by);
    };
    load.index = IndexPool::add(load.index, at(copy.load[i]));
    store.index = IndexPool::add(store.index, at(copy.store[i]));
    k.outer.push_back(axis);
  }
  Stage sum;
  sum.kind = StageKind::Reduce;
  sum.inner = {k.indices.add_axis(copy.inner)};
  load.index = IndexPool::add(load.index, k.indices.axis(sum.inner[0]));
  sum.value = k.add(load);
  store.value = k.add({Expr::Kind::Local, DType::U8});
  k.stages = {sum, store};
  k.loops = plain_loops(k);
  LevelSchedule level;
  level.tile = {{k.outer.back(), copy.tile}};
  level.stages.resize(2);
  k.levels = {level};
  return k;
}

plan::Apart apart_of(const Copy& copy) {
  const auto apart = plan::least_apart(kernel_of(copy), 0, 1);
  REQUIRE(apart);
  return *apart;
}

} // namespace

TEST_CASE("a result may follow what its kernel has read", "[plan][overlap]") {
  // In place but for the tile that is computed at once.
  CHECK(apart_of({{64}, {1}, {1}}).below == 1);
  CHECK(apart_of({{64}, {1}, {1}, 4}).below == 4);
  // A window of three rows of eight: two rows stay, and the one that is written.
  CHECK(apart_of({{14, 8}, {8, 1}, {8, 1}, 1, 17}).below == 1);
  CHECK(apart_of({{14, 8}, {8, 1}, {8, 1}, 8, 17}).below == 8);
  // Every second one is kept: the result falls behind. Twice as many: it runs ahead.
  CHECK(apart_of({{32}, {2}, {1}}).below == 1);
  CHECK(apart_of({{32}, {1}, {2}}).below == 32);
  // Two passes over what is read: only the second one may write over it.
  CHECK(apart_of({{2, 32}, {0, 1}, {32, 1}}).below == 33);
  // Backwards it is the other way round.
  CHECK(apart_of({{64}, {1}, {1}}).above == 64);
}

TEST_CASE("what is not understood has to lie apart", "[plan][overlap]") {
  ScheduledKernel k = kernel_of({{64}, {1}, {1}});
  k.arguments[1].read = true;
  CHECK_FALSE(plan::least_apart(k, 0, 1));
  k = kernel_of({{64}, {1}, {1}});
  k.stages[1].kind = StageKind::Scatter;
  CHECK_FALSE(plan::least_apart(k, 0, 1));
  k = kernel_of({{64}, {1}, {1}});
  k.levels.clear();
  CHECK_FALSE(plan::least_apart(k, 0, 1));
  k = kernel_of({{64}, {1}, {1}});
  k.loops.chunks = {{k.outer[0], 32}};
  CHECK_FALSE(plan::least_apart(k, 0, 1));
  // A value decides where it is read: anywhere, at any time.
  k = kernel_of({{64}, {1}, {1}});
  const ExprId where = k.add({Expr::Kind::Constant, DType::I64});
  k.exprs[0].index = k.indices.dynamic(where, 64);
  CHECK(plan::least_apart(k, 0, 1)->below == 64);
}

namespace {

struct Net {
  const char* name;
  RandomGraph (*make)(uint64_t seed);
};

RandomGraph layers(uint64_t seed) { return model_graph(seed); }

} // namespace

TEST_CASE("results on what is read are what the evaluator computes",
          "[overlap][property][long]") {
  for (const LevelChoice& level : {LevelChoice{"native"}, LevelChoice{"x86-64-v3", 4}}) {
    const auto target = target_for(level);
    if (!target) continue;
    for (const Net& net : {Net{"layers", layers}, Net{"graphs", large_graph}}) {
      size_t overlaps = 0;
      for (uint64_t seed = 1; seed <= 40; ++seed) {
        INFO(net.name << ", seed " << seed);
        CHECK(check_kernels(net.make(seed), *target, &overlaps) == "");
      }
      CHECK(overlaps > 5);
    }
  }
}

// Where a result lies on what its kernel reads, a tile may read what another has written.
TEST_CASE("a given schedule keeps to the memory that the rules' one was planned for",
          "[overlap]") {
  CompileOptions options;
  options.target = *find_target("cortex-m4");
  options.one_thread = true;
  const Target& target = options.target;
  size_t refused = 0, taken = 0;
  for (uint64_t seed = 0; seed < 40 && (refused < 3 || taken < 3); ++seed) {
    ModelGraphOptions pictures;
    pictures.pictures = true;
    const Graph graph = model_graph(seed, pictures).graph;
    const plan::Plan rules = compile(graph, options).plan;
    const cost::Surroundings around{double(rules.weight_bytes + rules.arena_bytes), 1};
    for (const ScheduledKernel& kernel : rules.programs) {
      if (std::ranges::none_of(kernel.arguments, &Argument::shares)) continue;
      optimize::SearchBudget all;
      for (const auto& candidate : optimize::level_candidates(
               kernel, kernel.levels.back(), target.levels.back(), around, 8, all)) {
        const Digest digest = digest_of(kernel);
        const ScheduleFile file{{digest, {kernel.loops, {candidate.schedule}}}};
        optimize::AppliedSchedules applied;
        CompileOptions given = options;
        given.schedules = &file;
        given.applied = &applied;
        const plan::Plan plan = compile(graph, given).plan;
        CHECK(plan.arena_bytes == rules.arena_bytes);
        const auto same = std::ranges::find(plan.programs, digest,
                                            [](const auto& k) { return digest_of(k); });
        REQUIRE(same != plan.programs.end());
        const bool is_rules = same->levels == kernel.levels;
        CHECK(is_rules == !applied.misfits.empty());
        is_rules ? ++refused : ++taken;
      }
    }
    // What a search finds keeps to it, too: the compiler checks the plan it ends with.
    CompileOptions searched = options;
    searched.search_budget = 500;
    CHECK(compile(graph, searched).plan.arena_bytes == rules.arena_bytes);
  }
  CHECK(refused > 0);
  CHECK(taken > 0);
}
