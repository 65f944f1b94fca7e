// First layers whose picture is copied with more channels: the same sums, fewer kernels
// than two per layer, and products by tensor cores from whole copies.
#include "compiler/rewrite/wide_channels.h"

#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/compare.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

struct Case {
  DType type = DType::F16;
  int64_t channels = 3, outputs = 16, rows = 14, taps = 3;
  std::array<int64_t, 2> strides = {1, 1};
};

Graph layer(const Case& c) {
  Graph g;
  if (is_half(c.type)) g.keep_halves();
  // Halves, all of them.
  const Shape shape{c.outputs, c.channels, c.taps, c.taps};
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(double(i * 7 % 31 - 15) / 16);
  const Tensor weights = make_tensor(DType::F32, shape, values);
  const NodeId x = g.add_input("x", c.type, {2, c.channels, c.rows, c.rows + 3});
  const NodeId y = convolve(g, cast(g, x, DType::F32), weights, 1, c.strides);
  g.add_output("y", cast(g, y, c.type));
  return g;
}

std::vector<Tensor> inputs_of(const Graph& g) {
  Random random(2);
  const Node& x = g[g.inputs()[0].node];
  return {random_tensor(random, x.shape, x.dtype)};
}

// Nodes of the graph that are a widened copy.
int64_t copies(const Graph& g, bool floats) {
  return std::ranges::count_if(
      g.live_nodes(), [&](NodeId n) { return rewrite::is_widened_input(g, n, floats); });
}

} // namespace

TEST_CASE("wide channels: the sums are the same") {
  for (const Case& c :
       {Case{}, Case{DType::BF16, 2, 8, 9, 2, {2, 2}},
        Case{DType::F16, 8, 8, 10, 3, {2, 1}}, Case{DType::F16, 12, 4, 8, 1},
        Case{DType::F32, 3, 8, 11, 5}, Case{DType::F16, 3, 8, 17, 7, {2, 2}},
        Case{DType::F16, 3, 8, 16, 7, {1, 3}}}) {
    CAPTURE(info(c.type).text, c.channels, c.taps);
    const Graph g = layer(c), wide = rewrite::widen_channels(g, true);
    CHECK(copies(wide, true) == 1);
    CHECK(copies(rewrite::widen_channels(g, false), true) == is_half(c.type));
    const std::vector<Tensor> inputs = inputs_of(g);
    CHECK(compare_tensors(evaluate(wide, inputs).outputs[0],
                          evaluate(g, inputs).outputs[0], 0, 0) == "");
  }
}

// Eight channels and no pads: a copy would be the picture again.
TEST_CASE("wide channels: what is wide stays as it is") {
  const Graph g = layer({DType::F16, 8, 8, 10, 1});
  CHECK(copies(rewrite::widen_channels(g, true), true) == 0);
}

TEST_CASE("wide channels: a first layer is a copy and a product of whole units") {
  for (const char* name : {"sm_80", "sm_90a"}) {
    const Target target = *find_device(name);
    const Graph g = layer({DType::F16, 3, 32, 20, 7, {2, 2}});
    CompileOptions options;
    options.target = target;
    const codegen::Kernels kernels = compile(g, options);
    REQUIRE(kernels.plan.programs.size() == 2);
    const GpuSchedule& product = *kernels.plan.programs[1].levels.back().gpu;
    CHECK(product.mapping == GpuMapping::Products);
    CHECK(product.product.rows.near == 8);
    CHECK(product.product.columns.near == 8);
    // Seven taps of eight channels are eight, whole rows of shared memory.
    CHECK(positions_along(kernels.plan.programs[1],
                          kernels.plan.programs[1].stages[0].inner) == 7 * 8 * 8);
    const std::vector<Tensor> inputs = inputs_of(g);
    const KernelRun run = run_kernels(kernels, target, inputs);
    REQUIRE(run.error.empty());
    CHECK(run.faults.empty());
    CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], 4e-3, 4e-3) ==
          "");
  }
}
