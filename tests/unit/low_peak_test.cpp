// The order of kernels: allowed, never of a higher peak, of the lowest for few units.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/plan/low_peak.h"
#include "tests/support/check_kernels.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

// Each unit writes a block that some of the next ones read.
plan::UnitGraph drawn_units(Random& random, int64_t count) {
  plan::UnitGraph out;
  out.needs.resize(static_cast<size_t>(count));
  for (int64_t u = 0; u < count; ++u) {
    out.blocks.push_back(
        {static_cast<uint64_t>(random.between(0, 900)), {static_cast<uint32_t>(u)}});
    for (int64_t reads = std::min(u, random.between(0, 2)); reads > 0; --reads) {
      const auto read =
          static_cast<size_t>(u - 1 - random.below(std::min<int64_t>(u, 5)));
      std::vector<uint32_t>& users = out.blocks[read].users;
      if (users.back() != u) users.push_back(static_cast<uint32_t>(u));
      out.needs[static_cast<size_t>(u)].push_back(static_cast<uint32_t>(read));
    }
  }
  return out;
}

bool is_allowed(const plan::UnitGraph& graph, const std::vector<uint32_t>& order) {
  std::vector<bool> has_run(graph.needs.size());
  for (const uint32_t u : order) {
    if (has_run[u] || !std::ranges::all_of(graph.needs[u],
                                           [&](uint32_t need) { return has_run[need]; }))
      return false;
    has_run[u] = true;
  }
  return order.size() == graph.needs.size();
}

uint64_t least_peak(const plan::UnitGraph& graph) {
  std::vector<uint32_t> order = plan::as_written(graph);
  uint64_t least = ~uint64_t{0};
  do {
    if (is_allowed(graph, order)) least = std::min(least, plan::peak_of(graph, order));
  } while (std::ranges::next_permutation(order).found);
  return least;
}

} // namespace

TEST_CASE("no order of few units has a lower peak", "[plan][property]") {
  int lowered = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const plan::UnitGraph graph = drawn_units(random, random.between(1, 8));
    const std::vector<uint32_t> order = plan::low_peak_order(graph);
    REQUIRE(is_allowed(graph, order));
    CHECK(plan::peak_of(graph, order) == least_peak(graph));
    lowered +=
        plan::peak_of(graph, order) < plan::peak_of(graph, plan::as_written(graph));
  }
  CHECK(lowered > 20);
}

TEST_CASE("orders of many units are allowed and cost nothing", "[plan][property]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const plan::UnitGraph graph = drawn_units(random, random.between(20, 300));
    const std::vector<uint32_t> order = plan::low_peak_order(graph);
    REQUIRE(is_allowed(graph, order));
    CHECK(plan::peak_of(graph, order) <= plan::peak_of(graph, plan::as_written(graph)));
  }
}

TEST_CASE("a graph of one chain stays as it is", "[plan]") {
  plan::UnitGraph graph;
  for (uint32_t u = 0; u < 9; ++u) {
    graph.needs.push_back(u == 0 ? std::vector<uint32_t>() : std::vector{u - 1});
    graph.blocks.push_back({64, {u, std::min(u + 1, 8u)}});
  }
  CHECK(plan::low_peak_order(graph) == plan::as_written(graph));
  CHECK(plan::low_peak_order({}).empty());
}

namespace {

// Wide layers of one input, all before the narrow ones that read them.
RandomGraph wide_first(int64_t branches, int64_t rows, int64_t wide) {
  Random random(static_cast<uint64_t>(branches));
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = g.add_input("x", DType::F32, {rows, 16});
  out.inputs.push_back(random_tensor(random, {rows, 16}));
  const auto known = [&](Shape shape) {
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& v : values) v = float(random.between(-1000, 1000)) / 8000;
    return tensor_f32(g, shape, values);
  };
  std::vector<NodeId> layers;
  for (int64_t b = 0; b < branches; ++b)
    layers.push_back(map(g, Op::Tanh, {matmul(g, x, known({16, wide}))}));
  NodeId sum = kNoNode;
  for (const NodeId layer : layers) {
    const NodeId narrow = matmul(g, layer, known({wide, 8}));
    sum = sum == kNoNode ? narrow : map(g, Op::Add, {sum, narrow});
  }
  g.add_output("y", map(g, Op::Tanh, {sum}));
  out.tolerance.assign(g.size(), 1e-3);
  return out;
}

} // namespace

TEST_CASE("branches run one after the other where all at once need more bytes",
          "[plan]") {
  CompileOptions options;
  options.target = *find_target("native");
  options.as_written = true;
  for (Level& level : options.target.levels) level.machine.launch_ns = 0;
  const RandomGraph random = wide_first(6, 40, 512);
  const codegen::Kernels kernels = compile(random.graph, options);
  CHECK(kernels.plan.arena_bytes < 3 * 40 * 512 * sizeof(float));
  CHECK(check_answers(random, kernels, options.target) == "");
}
