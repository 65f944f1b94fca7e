// Kernels that take turns row by row: a run of them still computes what the evaluator
// does, each turn finds the rows that it reads, and the arena is smaller.
#include "compiler/plan/rows.h"
#include "compiler/plan/stream.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"
#include "tests/support/quantised_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

TEST_CASE("layers that take turns compute what the evaluator does",
          "[stream][property][long]") {
  for (const LevelChoice& level : {LevelChoice{"native"}, LevelChoice{"x86-64-v3", 4}}) {
    const auto target = target_for(level);
    if (!target) continue;
    size_t streams = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      ModelGraphOptions options;
      options.pictures = true;
      options.max_products = 1000000;
      INFO("seed " << seed << " at " << level.name);
      CHECK(check_kernels(model_graph(seed, options), *target, nullptr, &streams) == "");
    }
    CHECK(streams > 30);
  }
}

TEST_CASE("networks of all kinds may take turns", "[stream][property][long]") {
  const auto target = target_for({"x86-64-v3", 4});
  if (!target) return;
  size_t streams = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    CHECK(check_kernels(model_graph(seed), *target, nullptr, &streams) == "");
    CHECK(check_kernels(Quantised(seed).run(), *target, nullptr, &streams) == "");
  }
}
