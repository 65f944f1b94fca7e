// Rows of softmax are computed four at a time where the first cache holds them.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

// With exponentials a softmax, without a row over its sum.
static NodeId over_sums(Graph& g, NodeId x, bool exponentials = true) {
  const Shape shape = g[x].shape;
  const NodeId greatest = expand(g, reduce(g, Op::ReduceMax, x, {1}), shape);
  NodeId e = map(g, Op::Sub, {x, greatest});
  if (exponentials) e = map(g, Op::Exp, {e});
  const NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {1}), shape);
  return map(g, Op::Div, {e, sum});
}

static Graph rows_over_sums(int64_t rows, int64_t columns, bool exponentials) {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {rows, columns});
  g.add_output("y", over_sums(g, x, exponentials));
  return g;
}

static int rows_at_once(const Graph& g, const std::string& target) {
  CompileOptions options;
  options.target = *find_target(target);
  const codegen::Kernels kernels = compile(g, options);
  const auto reduces =
      std::ranges::find_if(kernels.plan.programs,
                           [](const ScheduledKernel& k) { return k.stages.size() > 2; });
  REQUIRE(reduces != kernels.plan.programs.end());
  return tile_count(reduces->levels[0].tile, 0);
}

TEST_CASE("rows of softmax are computed four at a time", "[lanes]") {
  for (const char* target : {"x86-64-v4", "x86-64-v3"}) {
    INFO(target);
    CHECK(rows_at_once(rows_over_sums(150, 50, true), target) == 4);
    CHECK(rows_at_once(rows_over_sums(100, 512, true), target) == 4);
    CHECK(rows_at_once(rows_over_sums(100, 8192, true), target) == 1);
    CHECK(rows_at_once(rows_over_sums(3, 50, true), target) == 1);
    CHECK(rows_at_once(rows_over_sums(150, 50, false), target) == 1);
  }
}

// The last rows are no four, the last numbers of a row no vector.
TEST_CASE("rows of softmax beyond the last four are right", "[lanes][sweep]") {
  for (const LevelChoice& level :
       swept({LevelChoice{"x86-64-v3", 8}, LevelChoice{"x86-64-v4"},
              LevelChoice{"x86-64-v2", 4}},
             1)) {
    const std::optional<Target> target = target_for(level);
    if (!target) continue;
    for (const int64_t rows : {4, 7, 9})
      for (const int64_t columns : {16, 50, 199}) {
        INFO(rows << " rows of " << columns);
        const Graph g = rows_over_sums(rows, columns, true);
        std::vector<double> values(static_cast<size_t>(rows * columns));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<double>(i * 37 % 101) / 16 - 3;
        const Tensor in = make_tensor(DType::F32, {rows, columns}, values);
        const Tensor want = evaluate(g, {in}).outputs[0];
        CompileOptions options;
        options.target = *target;
        const KernelRun run = run_kernels(compile(g, options), *target, {in});
        REQUIRE(run.error.empty());
        CHECK(compare_tensors(run.outputs[0], want, 1e-6, 1e-30) == "");
      }
  }
}

// Exponentials are kept where the result will be, so nothing that may lie there is read
// after them: bytes of a mask cannot, a factor of every element can.
TEST_CASE("a softmax keeps its exponentials in front of a mask", "[lanes]") {
  const std::optional<Target> target = target_for({"x86-64-v3"});
  if (!target) return;
  const Shape shape = {9, 50};
  const auto drawn = [&](DType dtype, int64_t step) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i) * step % 101;
      values[i] = dtype == DType::Bool ? double(at % 3 == 0) : double(at) / 16 - 3;
    }
    return make_tensor(dtype, shape, values);
  };
  for (const DType dtype : {DType::Bool, DType::F32}) {
    Graph g;
    const NodeId softmax = over_sums(g, g.add_input("x", DType::F32, shape));
    const NodeId by = g.add_input("by", dtype, shape);
    const NodeId zero = constant(g, DType::F32, shape, 0);
    g.add_output("y", dtype == DType::Bool ? map(g, Op::Select, {by, softmax, zero})
                                           : map(g, Op::Mul, {softmax, by}));
    const std::vector<Tensor> in = {drawn(DType::F32, 37), drawn(dtype, 53)};
    const Tensor want = evaluate(g, in).outputs[0];
    CompileOptions options;
    options.target = *target;
    const codegen::Kernels kernels = compile(g, options);
    size_t kept = 0;
    for (const ScheduledKernel& k : kernels.plan.programs)
      kept += static_cast<size_t>(std::ranges::count_if(k.stages, &Stage::keeps));
    CHECK((kept == 1) == (dtype == DType::Bool));
    const KernelRun run = run_kernels(kernels, *target, in);
    REQUIRE(run.error.empty());
    CHECK(compare_tensors(run.outputs[0], want, 1e-6, 1e-30) == "");
  }
}
