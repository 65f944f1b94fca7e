// Kernels against the evaluator: random graphs through fusion, planning, emission and the
// compiler, with every level this machine has.
#include "compiler/ir/print.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace svod;
using namespace svod::test;

namespace {

using MakeGraph = std::function<RandomGraph(uint64_t seed)>;

RandomGraph any_graph(uint64_t seed) { return random_graph(seed); }
RandomGraph any_model(uint64_t seed) { return model_graph(seed); }

RandomGraph large_graph(uint64_t seed) {
  RandomGraphOptions options;
  options.nodes = 12;
  options.max_elements = 6000;
  options.large = true;
  return random_graph(seed, options);
}

// How many of the seeds [first, last] fail; each is reported with the smallest graph
// found.
int failures(uint64_t first, uint64_t last, const Target& target,
             const MakeGraph& make = any_graph) {
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    RandomGraph random = make(seed);
    std::string what = check_kernels(random, target);
    if (what.empty()) continue;
    ++count;
    RandomGraph small = shrink(random, [&](const RandomGraph& graph) {
      return !check_kernels(graph, target).empty();
    });
    UNSCOPED_INFO("seed " << seed << ": " << what
                          << "\nshrunk: " << check_kernels(small, target) << '\n'
                          << print_graph(small.graph));
  }
  return count;
}

// The same with each level in turn, and with vectors of other lengths.
int failures_by_level(uint64_t first, uint64_t last, const MakeGraph& make) {
  static constexpr LevelChoice kLevels[] = {
      {"x86-64-v2"}, {"x86-64-v3"}, {"x86-64-v4"}, {"x86-64-v3", 4}, {"x86-64-v3", 8}};
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed)
    if (auto target = target_for(kLevels[seed % std::size(kLevels)]))
      count += failures(seed, seed, *target, make);
  return count;
}

} // namespace

TEST_CASE("kernels compute what the evaluator computes", "[kernels][property]") {
  CHECK(failures(1, 12, *find_target("native")) == 0);
  CHECK(failures(1, 8, *find_target("native"), large_graph) == 0);
}

TEST_CASE("kernels of models compute what the evaluator computes",
          "[kernels][property]") {
  CHECK(failures_by_level(1, 10, any_model) == 0);
}

TEST_CASE("kernels of many graphs compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures_by_level(13, 500, any_graph) == 0);
  CHECK(failures_by_level(9, 250, large_graph) == 0);
}

TEST_CASE("kernels of many models compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures_by_level(11, 400, any_model) == 0);
}
