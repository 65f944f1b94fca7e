// Strassen's form of a matrix product against the one that is written.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline.h"
#include "compiler/select/forms/strassen.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

namespace {

// [batch, rows, inner] x [inner, columns] and a bias.
Graph dense_layer(Random& random, int64_t rows, int64_t inner, int64_t columns) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, rows, inner});
  const Tensor weights = random_tensor(random, {inner, columns});
  NodeId w = weight(g, DType::F32, weights.shape, g.add_blob(weights.bytes));
  const Tensor bias = random_tensor(random, {columns});
  NodeId b = weight(g, DType::F32, bias.shape, g.add_blob(bias.bytes));
  g.add_output("y", broadcast_map(g, Op::Add, {matmul(g, x, w), b}));
  return g;
}

// 1x1 taps over the pixels of x.
NodeId pointwise(Random& random, Graph& g, NodeId x, int64_t outputs) {
  const Shape from = g[x].shape;
  const Tensor weights = random_tensor(random, {1, outputs, 1, 1, from[1]});
  NodeId w = weight(g, DType::F32, weights.shape, g.add_blob(weights.bytes));
  const Shape full = {1, outputs, from[2], from[3], from[1]};
  x = reshape(g, permute(g, x, {0, 2, 3, 1}), {1, 1, from[2], from[3], from[1]});
  NodeId products = map(g, Op::Mul, {expand(g, x, full), expand(g, w, full)});
  return reshape(g, reduce(g, Op::ReduceSum, products, {4}),
                 {1, outputs, from[2], from[3]});
}

// A rectifier behind it.
Graph pointwise_layer(Random& random, int64_t height, int64_t width, int64_t inputs,
                      int64_t outputs) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, inputs, height, width});
  NodeId y = pointwise(random, g, x, outputs);
  g.add_output("y", map(g, Op::Max, {y, constant(g, DType::F32, g[y].shape, 0)}));
  return g;
}

void check_form(const Graph& g, Random& random) {
  const Algorithms chosen = choose_algorithms(g, *find_target("x86-64-v4"), false);
  REQUIRE(chosen.strassen == 1);
  REQUIRE(verify(chosen.graph).empty());
  CHECK(choose_algorithms(g, *find_target("x86-64-v4"), true).strassen == 0);
  const Tensor x = random_tensor(random, g[g.inputs()[0].node].shape);
  const Tensor want = evaluate(g, {x}).outputs[0];
  CHECK(compare_tensors(evaluate(chosen.graph, {x}).outputs[0], want, 1e-4, 1e-4) == "");
  CompileOptions options;
  options.target = *find_target("native");
  const KernelRun run = run_kernels(compile(g, options), options.target, {x});
  REQUIRE(run.error == "");
  CHECK(compare_tensors(run.outputs[0], want, 1e-4, 1e-4) == "");
}

} // namespace

TEST_CASE("strassen's form computes the same matrix product", "[strassen]") {
  Random random(21);
  check_form(dense_layer(random, 64, 512, 512), random);
  check_form(dense_layer(random, 55, 512, 768), random); // the last row has no partner
}

TEST_CASE("strassen's form of a pointwise convolution", "[strassen]") {
  Random random(22);
  check_form(pointwise_layer(random, 14, 14, 512, 512), random);
  check_form(pointwise_layer(random, 7, 14, 512, 512),
             random); // pixels of a row are paired
}

// Halves of 18 rows and tiles of six: written out together they would be
// the whole result.
TEST_CASE("strassen's form meets winograd's", "[strassen]") {
  Random random(24);
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 256, 18, 16});
  NodeId y = convolve(g, x, random_tensor(random, {256, 256, 3, 3}), 1);
  y = map(g, Op::Add, {y, pointwise(random, g, x, 256)});
  NodeId norm = constant(g, DType::F32, g[y].shape, 1.0 / 64);
  g.add_output("y", map(g, Op::Mul, {y, norm}));
  const Target target = *find_target("x86-64-v4");
  REQUIRE(choose_algorithms(g, target, false).winograd == 1);
  for (const Kernel& k : fuse(g, target).kernels) CHECK(k.stages.size() <= 64);
  check_form(g, random);
}

TEST_CASE("strassen's form is left where it does not pay", "[strassen]") {
  Random random(23);
  const Target target = *find_target("x86-64-v4");
  for (const Graph& g :
       {dense_layer(random, 32, 512, 512), dense_layer(random, 64, 64, 512),
        dense_layer(random, 64, 520, 512)})
    CHECK(choose_algorithms(g, target, false).strassen == 0);
  // A transposed convolution: 256 channels and 2 taps are one axis.
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {128, 512});
  const Tensor weights = random_tensor(random, {512, 512});
  NodeId w = weight(g, DType::F32, weights.shape, g.add_blob(weights.bytes));
  NodeId y = reshape(g, matmul(g, x, w), {128, 256, 2});
  g.add_output("y", permute(g, y, {1, 0, 2}));
  CHECK(choose_algorithms(g, target, false).strassen == 0);
}

// Columns of the weights' second half that are far larger than those of the first drown
// these in the sums.
TEST_CASE("strassen's error is measured on the weights", "[strassen]") {
  for (float large : {1.f, 1e6f}) {
    Graph g;
    const int64_t n = 512;
    NodeId x = g.add_input("x", DType::F32, {128, n});
    std::vector<double> values;
    Random random(24);
    for (int64_t i = 0; i < n * n; ++i)
      values.push_back(double(random.between(-1000, 1000)) / 1000 *
                       (i % n >= n / 2 ? large : 1));
    const Tensor weights = make_tensor(DType::F32, {n, n}, values);
    NodeId w = weight(g, DType::F32, weights.shape, g.add_blob(weights.bytes));
    g.add_output("y", matmul(g, x, w));
    const bool taken =
        choose_algorithms(g, *find_target("x86-64-v4"), false).strassen == 1;
    CHECK(taken == (large == 1));
  }
}
