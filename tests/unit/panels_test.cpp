// Products of two tensors that exceed the second cache read their factors in panels.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

// Rows, steps and columns of a product of two inputs, each of which may lie with its last
// two axes swapped, in batches.
struct ProductCase {
  int64_t rows, steps, columns;
  bool turned_left = false, turned_right = false;
  int64_t batch = 1;
};

NodeId factor(Graph& g, const char* name, int64_t batch, int64_t rows, int64_t columns,
              bool turned) {
  const Shape lies = turned ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
  NodeId x = g.add_input(name, DType::F32, lies);
  return turned ? permute(g, x, {0, 2, 1}) : x;
}

Graph product_of(const ProductCase& c) {
  Graph g;
  NodeId a = factor(g, "a", c.batch, c.rows, c.steps, c.turned_left);
  NodeId b = factor(g, "b", c.batch, c.steps, c.columns, c.turned_right);
  g.add_output("y", matmul(g, a, b));
  return rewrite::simplify(g);
}

// The distance of two steps of the sum in each factor, that of the columns last.
std::vector<int64_t> distances(const ScheduledKernel& k) {
  std::vector<int64_t> out;
  for (ExprId load : loads_below(k, k.stages[0].value)) {
    int64_t step = 0;
    CHECK(k.indices.affine_in(k.exprs[load].index, k.loops.inner[0].back(), step));
    out.push_back(step);
  }
  if (k.indices.depends_on(k.exprs[loads_below(k, k.stages[0].value)[0]].index,
                           *k.loops.lane))
    std::ranges::reverse(out);
  return out;
}

} // namespace

TEST_CASE("a large factor of a product of two tensors lies in panels", "[panels]") {
  for (const char* name : {"x86-64-v3", "x86-64-v4"})
    for (const ProductCase& c :
         {ProductCase{1024, 1024, 1024}, ProductCase{1000, 1001, 999},
          ProductCase{1024, 1024, 1024, true, false},
          ProductCase{1024, 1024, 1024, false, true},
          ProductCase{640, 768, 768, true, true, 3}}) {
      const FusedGraph f = fuse(product_of(c), *find_target(name));
      INFO(name << "\n" << print(f));
      const ScheduledKernel& k = f.kernels.back();
      REQUIRE(k.has_lane_axis());
      CHECK(distances(k) == std::vector<int64_t>{1, k.loops.lanes});
    }
}

TEST_CASE("a factor that stays in the second cache is read as it lies", "[panels]") {
  // Few rows sweep over the factor too seldom.
  for (const ProductCase& c : {ProductCase{256, 256, 256}, ProductCase{64, 64, 2048},
                               ProductCase{16, 1024, 1024}})
    CHECK(fuse(product_of(c), *find_target("x86-64-v4")).kernels.size() == 1);
}

// Keys and values of all heads lie side by side: rows of one head share sets of the
// cache.
TEST_CASE("rows at distances that share sets of the cache lie in panels", "[panels]") {
  Graph g;
  NodeId scores = g.add_input("p", DType::F32, {8, 1024, 1024});
  NodeId values = g.add_input("v", DType::F32, {1024, 8, 128});
  g.add_output("y", matmul(g, scores, permute(g, values, {1, 0, 2})));
  const FusedGraph f = fuse(rewrite::simplify(g), *find_target("x86-64-v4"));
  CHECK(distances(f.kernels.back()).back() == 16);
}

namespace {

// A convolution, 3x3, whose filters are an input too.
Graph convolution_of_inputs(int64_t channels, int64_t filters, int64_t size,
                            int64_t stride) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, channels, size, size});
  NodeId w = g.add_input("w", DType::F32, {filters, channels, 3, 3});
  g.add_output("y", convolve(g, x, w, 1, {stride, stride}));
  return rewrite::simplify(g);
}

} // namespace

TEST_CASE("filters that are an input lie in panels, and no windows are stored",
          "[panels]") {
  for (const char* name : {"x86-64-v3", "x86-64-v4"})
    for (int64_t stride : {1, 2}) {
      const Graph g = convolution_of_inputs(32, 32, 40, stride);
      const FusedGraph f = fuse(g, *find_target(name));
      INFO(name << "\n" << print(f));
      for (const Buffer& b : f.buffers) CHECK(element_count(b.shape) <= 32 * 42 * 42);
      const ScheduledKernel& k = f.kernels.back();
      REQUIRE(k.has_lane_axis());
      const ExprId filter = loads_below(k, k.stages[0].value).back();
      CHECK(k.indices.coefficient(k.exprs[filter].index, *k.loops.lane) == 1);
    }
}

TEST_CASE("filters that meet few positions are read as they lie", "[panels]") {
  const FusedGraph f =
      fuse(convolution_of_inputs(32, 32, 4, 1), *find_target("x86-64-v4"));
  const auto filters = std::ranges::count_if(f.buffers, [](const Buffer& b) {
    return element_count(b.shape) == 32 * 32 * 3 * 3;
  });
  CHECK(filters == 1);
}

TEST_CASE("a product of panels computes the same", "[panels][sweep]") {
  Random random(31);
  for (const Graph& g :
       swept({product_of({41, 1024, 257, true, true, 2}),
              convolution_of_inputs(17, 24, 11, 1), product_of({41, 2048, 140}),
              convolution_of_inputs(16, 40, 13, 2)},
             2)) {
    std::vector<Tensor> inputs;
    for (const GraphInput& in : g.inputs())
      inputs.push_back(random_tensor(random, g[in.node].shape));
    CompileOptions options;
    options.target = *find_target("native");
    const KernelRun run = run_kernels(compile(g, options), options.target, inputs);
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], 1e-4, 1e-3) ==
          "");
  }
}
