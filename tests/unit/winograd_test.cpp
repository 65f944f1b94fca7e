// Winograd's form of a convolution against the direct one.
#include "compiler/fuse/winograd.h"
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

static Tensor random_tensor(Random& random, Shape shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(double(random.between(-1000, 1000)) / 1000);
  return make_tensor(DType::F32, std::move(shape), values);
}

// As the importer writes it: pad, two windows, product, sum.
static Graph convolution(const Tensor& weights, int64_t height, int64_t width,
                         int64_t low) {
  Graph g;
  int64_t outputs = weights.shape[0], inputs = weights.shape[1];
  NodeId x = g.add_input("x", DType::F32, {2, inputs, height, width});
  x = pad(g, x, {0, 0, low, low}, {0, 0, 1, 1}, 0);
  x = window(g, window(g, x, 2, 3, 1, 1), 3, 3, 1, 1);
  Shape p = g[x].shape;
  Shape full = {2, outputs, p[2], p[3], inputs, 3, 3};
  x = reshape(g, permute(g, x, {0, 2, 3, 1, 4, 5}), {2, 1, p[2], p[3], inputs, 3, 3});
  NodeId w =
      weight(g, DType::F32, {1, outputs, 1, 1, inputs, 3, 3}, g.add_blob(weights.bytes));
  NodeId product = map(g, Op::Mul, {expand(g, x, full), expand(g, w, full)});
  NodeId sum = reduce(g, Op::ReduceSum, product, {4, 5, 6});
  g.add_output("y", reshape(g, sum, {2, outputs, p[2], p[3]}));
  return g;
}

TEST_CASE("winograd's form computes the same convolution", "[winograd]") {
  Random random(7);
  for (auto [height, width, low] :
       {std::array<int64_t, 3>{13, 18, 1}, {16, 16, 1}, {19, 15, 0}}) {
    Tensor weights = random_tensor(random, {32, 32, 3, 3});
    Graph direct = convolution(weights, height, width, low);
    Algorithms chosen = choose_algorithms(direct, *find_target("x86-64-v4"), false);
    REQUIRE(chosen.winograd == 1);
    REQUIRE(verify(chosen.graph).empty());
    Tensor x = random_tensor(random, {2, 32, height, width});
    Tensor want = evaluate(direct, {x}).outputs[0];
    Tensor got = evaluate(chosen.graph, {x}).outputs[0];
    CHECK(compare_tensors(got, want, 1e-4, 1e-4) == "");
    CHECK(choose_algorithms(direct, *find_target("x86-64-v4"), true).winograd == 0);
  }
}

// The pool's reduction cannot take in what is written out over positions of the result.
TEST_CASE("winograd under a pooling", "[winograd]") {
  Random random(8);
  Tensor weights = random_tensor(random, {32, 32, 3, 3});
  Graph g = convolution(weights, 16, 16, 1);
  NodeId y = g.outputs()[0].node;
  y = map(g, Op::Max, {y, constant(g, DType::F32, g[y].shape, 0)});
  y = window(g, window(g, y, 2, 2, 2, 1), 3, 2, 2, 1);
  g.set_output(0, reduce(g, Op::ReduceMax, y, {4, 5}));
  Hooks hooks;
  hooks.target = *find_target("native");
  Tensor x = random_tensor(random, {2, 32, 16, 16});
  KernelRun run = run_kernels(compile(g, hooks), hooks.target, {x});
  REQUIRE(run.error == "");
  CHECK(compare_tensors(run.outputs[0], evaluate(g, {x}).outputs[0], 1e-4, 1e-4) == "");
}

TEST_CASE("winograd's sampled error is small, and its matrices are a correlation",
          "[winograd]") {
  const WinogradMatrices& m = winograd_matrices();
  // One row: outputs of a 3-tap correlation from 6 inputs, exactly.
  double x[6] = {3, -1, 4, 1, -5, 9}, w[3] = {2, -7, 1};
  for (int i = 0; i < 4; ++i) {
    double got = 0;
    for (int j = 0; j < 6; ++j) {
      double v = 0, u = 0;
      for (int k = 0; k < 6; ++k) v += m.input[j][k] * x[k];
      for (int k = 0; k < 3; ++k) u += m.weight[j][k] * w[k];
      got += m.output[i][j] * v * u;
    }
    CHECK(got == Approx(x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2]));
  }
}
