// Kernels that run part by part: found where parts belong together, and only there.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

// softmax(q k^T) v of `heads` heads.
static Graph attention(int64_t heads, int64_t rows, bool scores_leave) {
  Graph g;
  const Shape shape = {heads, rows, 16};
  NodeId q = g.add_input("q", DType::F32, shape);
  NodeId k = g.add_input("k", DType::F32, shape);
  NodeId v = g.add_input("v", DType::F32, shape);
  NodeId scores = matmul(g, q, permute_last_two(g, k));
  const Shape full = g[scores].shape;
  NodeId most = expand(g, reduce(g, Op::ReduceMax, scores, {2}), full);
  NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {scores, most})});
  NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {2}), full);
  g.add_output("y", matmul(g, map(g, Op::Div, {e, sum}), v));
  if (scores_leave) g.add_output("scores", scores);
  return g;
}

static uint32_t chained_steps(const codegen::Kernels& kernels) {
  uint32_t count = 0;
  for (const plan::Step& step : kernels.plan.steps)
    if (step.followers != 0) count += 1 + step.followers;
  return count;
}

static KernelRun check_attention(const Graph& g, Shape shape,
                                 const codegen::Kernels& kernels) {
  Random random(3);
  std::vector<Tensor> inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(random_tensor(random, shape));
  KernelRun run = run_kernels(kernels, *find_target("native"), inputs);
  REQUIRE(run.error == "");
  const std::vector<Tensor> want = evaluate(g, inputs).outputs;
  REQUIRE(run.outputs.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(compare_tensors(run.outputs[i], want[i], 1e-4, 1e-4) == "");
  return run;
}

TEST_CASE("the scores of an attention are one part large", "[chain]") {
  for (auto [heads, rows] : {std::array<int64_t, 2>{12, 100}, {2, 360}}) {
    const Graph g = attention(heads, rows, false);
    CompileOptions options;
    options.target = *find_target("native");
    const codegen::Kernels kernels = compile(g, options);
    CHECK(chained_steps(kernels) == 3);
    const auto whole = static_cast<uint64_t>(heads * rows * rows * 4);
    CHECK(kernels.plan.arena_bytes + kernels.plan.scratch_bytes < 2 * whole);
    check_attention(g, {heads, rows, 16}, kernels);
  }
}

// Keys pass by all rows of a part while they are near.
TEST_CASE("the rows of a part are the innermost loop", "[chain]") {
  const Graph g = attention(2, 360, false);
  const FusedGraph f = fuse(rewrite::simplify(g), *find_target("native"));
  REQUIRE(f.chains.size() == 1);
  const ScheduledKernel& scores = f.kernels[f.chains[0].first];
  INFO(print(scores));
  CHECK(scores.loops.outer.back() == scores.loops.chunks.back().axis);
}

TEST_CASE("what is read elsewhere, or is small, is stored whole", "[chain]") {
  for (auto [rows, leave] : {std::pair<int64_t, bool>{100, true}, {20, false}}) {
    const Graph g = attention(12, rows, leave);
    CompileOptions options;
    options.target = *find_target("native");
    const codegen::Kernels kernels = compile(g, options);
    for (const plan::Step& step : kernels.plan.steps)
      for (plan::SlotId id : step.arguments)
        if (leave && kernels.plan.slots[id].slot_class == plan::SlotClass::Part)
          CHECK(kernels.plan.slots[id].bytes < static_cast<uint64_t>(rows * rows * 48));
    if (!leave) CHECK(chained_steps(kernels) == 0);
    check_attention(g, {12, rows, 16}, kernels);
  }
}

// [1,C,H,W] -> [1,M,H,W], every channel of which is a sum over all of x.
static NodeId pointwise(Graph& g, NodeId x, int64_t results, Random& draw) {
  const Shape& from = g[x].shape;
  const Tensor t = random_tensor(draw, {1, results, from[1], 1, 1});
  const NodeId weights = weight(g, DType::F32, t.shape, g.add_blob(t.bytes));
  const NodeId products = broadcast_map(g, Op::Mul, {unsqueeze(g, x, 1), weights});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, products, {2}), {2});
}

// Parts are 16 channels each, and all would read the whole picture.
TEST_CASE("channels that are sums over a large picture make no chain", "[chain]") {
  for (const int64_t channels : {64, 104}) {
    Graph g;
    Random draw(5);
    const Shape shape = {1, channels, 60, 60};
    const NodeId a = g.add_input("a", DType::F32, shape);
    const NodeId b = g.add_input("b", DType::F32, shape);
    const NodeId sum = map(g, Op::Add,
                           {pointwise(g, map(g, Op::Exp, {a}), 256, draw),
                            pointwise(g, map(g, Op::Exp, {b}), 256, draw)});
    g.add_output("y", reduce(g, Op::ReduceMax, sum, {2, 3}));
    const FusedGraph f = fuse(rewrite::simplify(g), *find_target("x86-64-v4"), true);
    UNSCOPED_INFO(print(f));
    CHECK(f.chains.empty());
  }
}

// A window reads rows of the parts beside it.
TEST_CASE("parts that overlap make no chain", "[chain]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 600, 512});
  NodeId rows = expand(g, reduce(g, Op::ReduceMax, x, {2}), {1, 600, 512});
  NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, rows})});
  NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {2}), {1, 600, 512});
  NodeId y = window(g, map(g, Op::Div, {e, sum}), 1, 3, 1, 1);
  g.add_output("y", reduce(g, Op::ReduceSum, y, {3}));
  CompileOptions options;
  options.target = *find_target("native");
  const codegen::Kernels kernels = compile(g, options);
  CHECK(chained_steps(kernels) == 0);
  Random random(4);
  Tensor input = random_tensor(random, {1, 600, 512});
  KernelRun run = run_kernels(kernels, options.target, {input});
  REQUIRE(run.error == "");
  CHECK(compare_tensors(run.outputs[0], evaluate(g, {input}).outputs[0], 1e-4, 1e-4) ==
        "");
}

// Its transformed values would leave the second cache. Of the products some have fewer
// taps, and kernels of their own; rows of what is transformed end within a vector.
TEST_CASE("a picture's first layer runs row by row", "[chain][winograd]") {
  Graph g;
  Random random(6);
  const NodeId x = g.add_input("x", DType::F32, {1, 3, 224, 224});
  const Tensor weights = random_tensor(random, {64, 3, 7, 7});
  const NodeId y = convolve(g, x, weights, 3, {2, 2});
  g.add_output("y", y);
  const uint64_t bytes = static_cast<uint64_t>(element_count(g[y].shape)) * 4;
  const Tensor input = random_tensor(random, {1, 3, 224, 224});
  for (const char* name : {"x86-64-v4", "x86-64-v3"}) {
    CompileOptions options;
    options.target = *find_target(name);
    const codegen::Kernels kernels = compile(g, options);
    INFO(name);
    CHECK(chained_steps(kernels) == 4);
    CHECK(kernels.plan.arena_bytes + kernels.plan.scratch_bytes < bytes);
    if (!target_for({name})) continue;
    const KernelRun run = run_kernels(kernels, options.target, {input});
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], evaluate(g, {input}).outputs[0], 1e-3, 1e-3) ==
          "");
  }
}
