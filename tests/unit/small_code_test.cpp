// Code for size: what is not written out, and that it computes the same.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/model_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

// A core without vectors that this machine can play.
Target scalar_core() {
  Target target = *target_for({default_target().is_x86() ? "x86-64-v2" : "native"});
  for (Level& level : target.levels) level.register_bits = 32, level.registers = 32;
  return target;
}

// tanh of the product of 33 x 24 numbers by a matrix of 24 x 16.
Graph activated() {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {33, 24});
  std::vector<double> values(24 * 16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = double(i * 7919 % 101) / 64 - 1;
  const Tensor weights = make_tensor(DType::F32, {1, 24, 16}, values);
  const NodeId w = weight(g, DType::F32, weights.shape, g.add_blob(weights.bytes));
  const NodeId each = broadcast_map(g, Op::Mul, {unsqueeze(g, x, 2), w});
  const NodeId y = squeeze_axes(g, reduce(g, Op::ReduceSum, each, {1}), {1});
  g.add_output("z", map(g, Op::Tanh, {map(g, Op::Add, {y, y})}));
  return g;
}

codegen::Kernels compiled(const Graph& graph, const Target& target) {
  CompileOptions options;
  options.target = target;
  options.exact = true;
  return compile(graph, options);
}

// The kernel that has the activation, and its text.
std::pair<ScheduledKernel, std::string> activation_of(const Target& target) {
  const codegen::Kernels kernels = compiled(activated(), target);
  for (const codegen::KernelSource& source : kernels.sources)
    if (source.text.find("_tanh_") != std::string::npos)
      return {kernels.plan.programs[source.program], source.text};
  FAIL("no kernel has the activation");
  return {};
}

size_t count(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++out;
  return out;
}

} // namespace

TEST_CASE("small code calls what is long, and ends no row by itself", "[kernels]") {
  const auto [fast, fast_text] = activation_of(scalar_core());
  const auto [small, small_text] = activation_of(for_size(scalar_core()));
  CHECK(fast.has_lane_axis());
  CHECK(fast.levels[0].called.empty());
  CHECK(count(fast_text, "inline __attribute__((noinline)) f32") == 0);

  CHECK_FALSE(small.has_lane_axis());
  CHECK(small.levels[0].called.size() == 1);
  CHECK(count(small_text, "inline __attribute__((noinline)) f32 call_tanh_f32(") == 1);
  for (const TileAxis& t : small.levels[0].tile) {
    INFO(t.count << " of " << small.indices.extent(t.axis));
    CHECK(small.indices.extent(t.axis) % t.count == 0);
  }
  CHECK(tile_points(small.levels[0].tile) > 1);
  CHECK(2 * count(small_text, "_tanh_") < count(fast_text, "_tanh_") * fast.loops.lanes);
}

TEST_CASE("copies keep their lanes where code is small", "[kernels]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {8, 16});
  g.add_output("y", map(g, Op::Neg, {x}));
  const codegen::Kernels kernels = compiled(g, for_size(scalar_core()));
  REQUIRE(kernels.plan.programs.size() == 1);
  CHECK(kernels.plan.programs[0].has_lane_axis());
}

TEST_CASE("small kernels compute what the evaluator computes",
          "[kernels][property][sweep]") {
  const Target scalar = for_size(scalar_core()),
               native = for_size(*find_target("native"));
  for (uint64_t seed = 1; seed <= swept(6, 2); ++seed) {
    INFO("seed " << seed);
    CHECK(check_kernels(model_graph(seed), scalar) == "");
    CHECK(check_kernels(random_graph(seed), scalar) == "");
    CHECK(check_kernels(model_graph(seed + 6), native) == "");
  }
}

TEST_CASE("many small kernels compute what the evaluator computes",
          "[kernels][property][long]") {
  const Target scalar = for_size(scalar_core()),
               native = for_size(*find_target("native"));
  const Seeds seeds = part_of({7, 120});
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    INFO("seed " << seed);
    CHECK(check_kernels(model_graph(seed), seed % 2 == 0 ? scalar : native) == "");
    CHECK(check_kernels(random_graph(seed), seed % 2 == 0 ? native : scalar) == "");
  }
}
