// Rows of a GPU whose threads read and write several neighbours at once, and those that
// blocks share, on the executor of simt.h.
#include "compiler/ir/build.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

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

namespace {

// One row or few, reduced to a number each: a sum and its square, or the place of the
// best.
Graph of_few_rows(Op op, DType type, int64_t rows, int64_t row) {
  Graph g;
  g.keep_halves();
  const NodeId x = g.add_input("x", type, {rows, row});
  if (op == Op::ArgMax || op == Op::ArgMin) {
    g.add_output("y", arg_reduce(g, op, x, 1, row % 2 == 0));
    return g;
  }
  const NodeId y = reduce(g, op, cast(g, x, DType::F32), {1});
  g.add_output("y", cast(g, map(g, Op::Abs, {y}), type));
  return g;
}

GpuSchedule& schedule_of(codegen::Kernels& kernels) {
  REQUIRE(kernels.plan.programs.size() == 1);
  return *kernels.plan.programs[0].levels.back().gpu;
}

codegen::Kernels compiled(const Graph& g) {
  CompileOptions options;
  options.target = *find_device("sm_80");
  return compile(g, options);
}

} // namespace

// Parts of equal length, and those that end early.
TEST_CASE("gpu: blocks share rows that are few and long") {
  Random random(1);
  for (const Op op : {Op::ReduceSum, Op::ReduceMax, Op::ArgMax, Op::ArgMin})
    for (const auto& [rows, row] : {std::pair(1, 1 << 17), {1, 100003}, {3, 40001}})
      for (const DType type : {DType::F32, DType::F16}) {
        CAPTURE(info(op).text, rows, row, info(type).text);
        const Graph g = of_few_rows(op, type, rows, row);
        codegen::Kernels kernels = compiled(g);
        REQUIRE(schedule_of(kernels).mapping == GpuMapping::Rows);
        CHECK(schedule_of(kernels).splits > 1);
        const std::vector<Tensor> inputs{random_tensor(random, {rows, row}, type)};
        const KernelRun run = run_kernels(kernels, *find_device("sm_80"), inputs);
        REQUIRE(run.error.empty());
        CHECK(run.faults.empty());
        const double tolerance = type == DType::F32 ? 1e-4 : 4e-3;
        CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], tolerance,
                              tolerance) == "");
      }
}

TEST_CASE("gpu: a shared row's schedule is read back, and fits sums alone") {
  codegen::Kernels kernels = compiled(of_few_rows(Op::ReduceSum, DType::F32, 1, 1 << 17));
  const ScheduledKernel& k = kernels.plan.programs[0];
  TextFault fault;
  const auto read = parse_schedule(print(static_cast<const KernelSchedule&>(k)), fault);
  REQUIRE(read);
  CHECK(read->levels == k.levels);
  GpuSchedule s = schedule_of(kernels);
  CHECK(gpu_misfit(k, s) == "");
  s.splits = 2 * s.threads;
  CHECK(gpu_misfit(k, s) != "");
  codegen::Kernels softmax = compiled(of_rows(DType::F32, 4608, true));
  s = schedule_of(softmax);
  CHECK(s.splits == 1);
  s.splits = 2;
  CHECK(gpu_misfit(softmax.plan.programs[0], s) != "");
}

TEST_CASE("gpu: the executor finds parts of a row that nobody waited for") {
  Random random(1);
  codegen::Kernels kernels = compiled(of_few_rows(Op::ReduceSum, DType::F32, 1, 1 << 17));
  std::string& text = kernels.sources[0].text;
  const std::string last = "*is_last == 0";
  text.replace(text.rfind(last), last.size(), "block_number() != 0");
  const KernelRun run =
      run_kernels(kernels, *find_device("sm_80"), {random_tensor(random, {1, 1 << 17})});
  REQUIRE(run.error.empty());
  REQUIRE(!run.faults.empty());
  CHECK(run.faults[0].find("of scratch memory") != std::string::npos);
}

// Rows of one warp, of whole turns of a block, and with a rest behind them.
TEST_CASE("gpu: the threads of a block share a running sum", "[sweep]") {
  struct Case {
    Shape shape;
    int64_t axis;
  };
  Random random(1);
  for (const Op op : swept({Op::ScanSum, Op::ScanMax, Op::ScanProd, Op::ScanMin}, 2))
    for (const auto& [shape, axis] :
         {Case{{3, 32}, 1}, {{1024, 2}, 0}, {{5, 777}, 1}, {{5000}, 0}})
      for (const DType type : {DType::F32, DType::I8}) {
        CAPTURE(info(op).text, shape, axis, info(type).text);
        Graph g;
        g.add_output("y", scan(g, op, g.add_input("x", type, shape), axis));
        codegen::Kernels kernels = compiled(g);
        CHECK(schedule_of(kernels).mapping == GpuMapping::Rows);
        const std::vector<Tensor> inputs{random_tensor(random, shape, type)};
        const KernelRun run = run_kernels(kernels, *find_device("sm_80"), inputs);
        REQUIRE(run.error.empty());
        CHECK(run.faults.empty());
        const double tolerance = type == DType::F32 ? 1e-5 : 0;
        CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], tolerance,
                              tolerance) == "");
      }
}
