// Rows of a GPU whose threads read and write several neighbours at once, on the executor
// of simt.h.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

// A softmax of rows, or rows without their mean.
Graph of_rows(DType type, int64_t row, bool softmax) {
  Graph g;
  g.keep_halves();
  const NodeId x = cast(g, g.add_input("x", type, {9, row}), DType::F32),
               top = reduce(g, Op::ReduceMax, x, {1}),
               e = map(g, Op::Exp, {broadcast_map(g, Op::Sub, {x, top})}),
               mean =
                   map(g, Op::Mul,
                       {reduce(g, Op::ReduceSum, x, {1}),
                        constant(g, DType::F32, {9, 1}, 1.0 / static_cast<double>(row))}),
               y = softmax
                       ? broadcast_map(g, Op::Div, {e, reduce(g, Op::ReduceSum, e, {1})})
                       : broadcast_map(g, Op::Sub, {x, mean});
  g.add_output("y", cast(g, y, type));
  return g;
}

} // namespace

// What a softmax keeps of its exponentials is written one by one, and so is all else.
TEST_CASE("gpu: a row is read and written by runs of neighbours") {
  Random random(1);
  const Target target = *find_device("sm_80");
  CompileOptions options;
  options.target = target;
  for (const DType type : {DType::F32, DType::F16})
    for (const int64_t row : {96, 384, 1000, 4608})
      for (const bool softmax : {false, true}) {
        CAPTURE(info(type).text, row, softmax);
        const Graph g = of_rows(type, row, softmax);
        const codegen::Kernels kernels = compile(g, options);
        REQUIRE(kernels.plan.programs.size() == 1);
        const GpuSchedule& schedule = *kernels.plan.programs[0].levels.back().gpu;
        REQUIRE(schedule.mapping == GpuMapping::Rows);
        if (!softmax) CHECK(schedule.near > 1);
        const std::vector<Tensor> inputs{random_tensor(random, {9, row}, type)};
        const KernelRun run = run_kernels(kernels, target, inputs);
        REQUIRE(run.error.empty());
        CHECK(run.faults.empty());
        const double tolerance = type == DType::F32 ? 1e-5 : 2e-3;
        CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], tolerance,
                              tolerance) == "");
      }
}
