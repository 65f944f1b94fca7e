// Kernels against the evaluator: random graphs through fusion, planning, emission and the
// compiler, with every level this machine has.
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/kernel/sum_blocks.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/convolve.h"
#include "tests/support/model_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/seeds.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

using namespace svod;
using namespace svod::test;

namespace {

using MakeGraph = std::function<RandomGraph(uint64_t seed)>;

RandomGraph any_graph(uint64_t seed) { return random_graph(seed); }
RandomGraph any_model(uint64_t seed) { return model_graph(seed); }

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
int failures_by_level(Seeds seeds, const MakeGraph& make) {
  static constexpr LevelChoice kLevels[] = {
      {"x86-64-v2"}, {"x86-64-v3"}, {"x86-64-v4"}, {"x86-64-v3", 4}, {"x86-64-v3", 8}};
  int count = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed)
    if (auto target = target_for(kLevels[seed % std::size(kLevels)]))
      count += failures(seed, seed, *target, make);
  return count;
}

// The largest relative error of sums of 0.1f along `axes`.
double error_of_long_sum(const Shape& shape, const std::vector<int64_t>& axes) {
  CompileOptions options;
  options.target = *find_target("native");
  Graph g;
  g.add_output("y", reduce(g, Op::ReduceSum, g.add_input("x", DType::F32, shape), axes));
  int64_t count = 1, all = 1;
  for (int64_t axis : axes) count *= shape[static_cast<size_t>(axis)];
  for (int64_t n : shape) all *= n;
  const std::vector<float> ones(static_cast<size_t>(all), 0.1F);
  Tensor x{DType::F32, shape, {}};
  x.bytes.resize(ones.size() * sizeof(float));
  std::memcpy(x.bytes.data(), ones.data(), x.bytes.size());
  KernelRun run = run_kernels(compile(g, options), options.target, {x});
  REQUIRE(run.error.empty());
  std::vector<float> sums(run.outputs[0].bytes.size() / sizeof(float));
  std::memcpy(sums.data(), run.outputs[0].bytes.data(), run.outputs[0].bytes.size());
  double worst = 0;
  for (float sum : sums)
    worst = std::max(worst, std::abs(sum / (double(0.1F) * double(count)) - 1));
  return worst;
}

} // namespace

// Added one after the other, these sums are off by 1e-4 and more.
TEST_CASE("long sums keep their digits", "[kernels]") {
  CHECK(error_of_long_sum({1, 3, 800, 801}, {2, 3}) < 3e-5);
  CHECK(error_of_long_sum({16, 801, 800}, {1, 2}) < 3e-5);
  CHECK(error_of_long_sum({3, 1000003}, {1}) < 3e-5);
  CHECK(error_of_long_sum({500009, 5}, {0}) < 3e-5);
  CHECK(error_of_long_sum({20000, 17, 9}, {0, 2}) < 3e-5);
}

// 1.9e-7 of the mean of an image classifier's last 169 positions in one run, 0.9e-7 so.
TEST_CASE("sums of what is no product have short blocks", "[kernels]") {
  const auto has_blocks = [](const Graph& g) {
    CompileOptions options;
    options.target = *find_target("x86-64-v4");
    bool found = false;
    for (const ScheduledKernel& k : compile(g, options).plan.programs)
      for (const StageSchedule& stage : k.levels[0].stages)
        found = found || stage.blocks.has_value();
    return found;
  };
  for (auto [side, blocks] : {std::pair{7, false}, {13, true}, {100, true}}) {
    Graph sum, product;
    NodeId x = sum.add_input("x", DType::F32, {1, side, side, 32});
    sum.add_output("y", reduce(sum, Op::ReduceSum, x, {1, 2}));
    CHECK(has_blocks(sum) == blocks);
    x = product.add_input("x", DType::F32, {64, side * side});
    NodeId w = product.add_input("w", DType::F32, {side * side, 64});
    product.add_output("y", matmul(product, x, w));
    CHECK(has_blocks(product) == (side * side > 2 * kSumBlock));
  }
}

TEST_CASE("kernels compute what the evaluator computes", "[kernels][property][sweep]") {
  CHECK(failures(1, swept(12, 6), *find_target("native")) == 0);
  CHECK(failures(1, swept(8, 2), *find_target("native"), large_graph) == 0);
}

TEST_CASE("kernels of models compute what the evaluator computes",
          "[kernels][property][sweep]") {
  CHECK(failures_by_level(swept(Seeds{1, 10}, 5), any_model) == 0);
}

TEST_CASE("kernels of many graphs compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures_by_level(part_of({13, 500}), any_graph) == 0);
  CHECK(failures_by_level(part_of({9, 250}), large_graph) == 0);
}

TEST_CASE("kernels of many models compute what the evaluator computes",
          "[kernels][property][long]") {
  CHECK(failures_by_level(part_of({11, 400}), any_model) == 0);
}

// 17 channels lie in two blocks of 16, and what fills the second one is no key.
TEST_CASE("a sort along blocked channels ends with the last channel", "[kernels]") {
  for (const LevelChoice& level :
       {LevelChoice{"x86-64-v3"}, LevelChoice{"x86-64-v2", 4}}) {
    const auto target = target_for(level);
    if (!target) continue;
    RandomGraph random;
    Graph& g = random.graph;
    const NodeId x = g.add_input("x", DType::F32, {1, 8, 9, 9});
    Random draw(7);
    const NodeId y = convolve(g, x, random_tensor(draw, {17, 8, 3, 3}), 1);
    g.add_output("order", argsort(g, y, 1, true, 17));
    g.add_output("first", argsort(g, y, 1, false, 3));
    random.inputs = {random_tensor(draw, {1, 8, 9, 9})};
    random.tolerance.assign(g.size(), 0);
    CHECK(check_kernels(random, *target) == "");
  }
}
