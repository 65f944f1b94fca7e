// Kernels for a GPU against the evaluator, on the executor of simt.h, which also finds
// races and accesses outside of buffers; and that it finds those that are planted.
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/layer_graphs.h"
#include "tests/support/model_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/seeds.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace svod;
using namespace svod::test;

namespace {

Target gpu() { return *find_device("sm_80"); }

// How many of the seeds [first, last] fail.
int failures(Seeds seeds, RandomGraph (*make)(uint64_t)) {
  int count = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const RandomGraph random = make(seed);
    const std::string what = check_kernels(random, gpu());
    if (what.empty()) continue;
    ++count;
    const RandomGraph small = shrink(random, [&](const RandomGraph& graph) {
      return !check_kernels(graph, gpu()).empty();
    });
    UNSCOPED_INFO("seed " << seed << ": " << what
                          << "\nshrunk: " << check_kernels(small, gpu()) << '\n'
                          << print_graph(small.graph));
  }
  return count;
}

RandomGraph any_graph(uint64_t seed) { return random_graph(seed); }
RandomGraph any_model(uint64_t seed) { return model_graph(seed); }

codegen::Kernels compiled(const Graph& g) {
  CompileOptions options;
  options.target = gpu();
  return compile(g, options);
}

std::vector<GpuMapping> mappings(const codegen::Kernels& kernels) {
  std::vector<GpuMapping> out;
  for (const ScheduledKernel& k : kernels.plan.programs)
    out.push_back(k.levels.back().gpu->mapping);
  return out;
}

// What goes wrong with a graph of one output; the tolerance is relative.
std::string wrong(const Graph& g, const std::vector<Tensor>& inputs, double tolerance) {
  const codegen::Kernels kernels = compiled(g);
  const KernelRun run = run_kernels(kernels, gpu(), inputs);
  if (!run.error.empty()) return run.error;
  if (!run.faults.empty()) return run.faults.front();
  const Evaluated want = evaluate(g, inputs);
  return compare_tensors(run.outputs[0], want.outputs[0], tolerance, tolerance);
}

NodeId product(Graph& g, NodeId a, NodeId b) {
  const Shape &x = g[a].shape, &y = g[b].shape;
  const NodeId rows = expand(g, reshape(g, a, {x[0], x[1], 1}), {x[0], x[1], y[1]});
  const NodeId columns = expand(g, reshape(g, b, {1, y[0], y[1]}), {x[0], x[1], y[1]});
  return reshape(g, reduce(g, Op::ReduceSum, map(g, Op::Mul, {rows, columns}), {1}),
                 {x[0], y[1]});
}

// Factors of these types, widened to `sum` where they are multiplied, as tensor cores
// take them.
Graph narrow_product(DType type, DType other, DType sum, int64_t rows, int64_t inner,
                     int64_t columns) {
  Graph g;
  g.keep_halves();
  const NodeId a = g.add_input("a", type, {rows, inner}),
               b = g.add_input("b", other, {inner, columns});
  const NodeId y = product(g, cast(g, a, sum), cast(g, b, sum));
  g.add_output("y", sum == DType::F32 ? cast(g, y, type) : y);
  return g;
}

Graph float_product(int64_t rows, int64_t inner, int64_t columns) {
  return narrow_product(DType::F32, DType::F32, DType::F32, rows, inner, columns);
}

std::vector<Tensor> random_inputs(const Graph& g) {
  Random random(1);
  std::vector<Tensor> out;
  for (const GraphInput& input : g.inputs())
    out.push_back(random_tensor(random, g[input.node].shape, g[input.node].dtype));
  return out;
}

// One kernel with a line before its last one that should not be there.
std::vector<std::string> planted(const Graph& g, const std::vector<Tensor>& inputs,
                                 const std::string& after, const std::string& text) {
  codegen::Kernels kernels = compiled(g);
  REQUIRE(kernels.sources.size() == 1);
  std::string& source = kernels.sources[0].text;
  const size_t at = source.rfind(after);
  REQUIRE(at != std::string::npos);
  source.replace(at, after.size(), text);
  const KernelRun run = run_kernels(kernels, gpu(), inputs);
  REQUIRE(run.error.empty());
  return run.faults;
}

} // namespace

TEST_CASE("gpu: random graphs compute what the evaluator does", "[long]") {
  CHECK(failures({1, 60}, any_graph) == 0);
}

TEST_CASE("gpu: random models compute what the evaluator does", "[sweep]") {
  CHECK(failures(swept(Seeds{1, 15}, 6), any_model) == 0);
}

TEST_CASE("gpu: more random graphs and models", "[long]") {
  CHECK(failures(part_of({1000, 1600}), any_graph) == 0);
  CHECK(failures(part_of({1000, 1200}), any_model) == 0);
}

TEST_CASE("gpu: products are tiled, with rests of tiles on all sides") {
  Random random(1);
  for (const auto& [rows, inner, columns] :
       {std::tuple(64, 64, 64), std::tuple(33, 17, 65), std::tuple(200, 40, 9),
        std::tuple(8, 130, 300)}) {
    CAPTURE(rows, inner, columns);
    Graph g;
    const NodeId a = g.add_input("a", DType::F32, {rows, inner}),
                 b = g.add_input("b", DType::F32, {inner, columns});
    g.add_output("y", map(g, Op::Abs, {product(g, a, b)}));
    CHECK(mappings(compiled(g)) == std::vector{GpuMapping::Products});
    CHECK(wrong(g,
                {random_tensor(random, {rows, inner}),
                 random_tensor(random, {inner, columns})},
                1e-5) == "");
  }
}

namespace {

// What goes wrong with the one kernel of a graph when it is run by this tile; nothing
// where the tile does not fit it.
std::string wrong_with(const Graph& g, const std::vector<Tensor>& inputs,
                       const GpuSchedule& schedule, double tolerance, int& tried) {
  codegen::Kernels kernels = compiled(g);
  REQUIRE(kernels.plan.programs.size() == 1);
  ScheduledKernel& k = kernels.plan.programs[0];
  if (!gpu_misfit(k, schedule).empty()) return "";
  ++tried;
  k.levels.back().gpu = schedule;
  const KernelRun run =
      run_kernels(codegen::emit(std::move(kernels.plan), gpu()), gpu(), inputs);
  if (!run.error.empty()) return run.error;
  if (!run.faults.empty()) return run.faults.front();
  return compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], tolerance,
                         tolerance);
}

// The tile of the graph's kernel that is chosen.
GpuSchedule chosen(const Graph& g) {
  return *compiled(g).plan.programs.at(0).levels.back().gpu;
}

} // namespace

TEST_CASE("gpu: tiles of all forms compute the same", "[long]") {
  Random random(1);
  Graph g;
  const NodeId a = g.add_input("a", DType::F32, {40, 72}),
               b = g.add_input("b", DType::F32, {72, 68});
  g.add_output("y", map(g, Op::Abs, {product(g, a, b)}));
  const std::vector<Tensor> inputs{random_tensor(random, {40, 72}),
                                   random_tensor(random, {72, 68})};
  int tried = 0;
  for (const auto& [rows, columns, steps, part_rows, part_columns] :
       {std::tuple(32, 32, 8, 4, 4), std::tuple(32, 64, 16, 8, 8),
        std::tuple(16, 32, 16, 2, 1), std::tuple(12, 20, 4, 6, 5),
        std::tuple(64, 16, 24, 4, 2)})
    for (const int splits : {1, 2, 3})
      for (const int near : {1, 4})
        for (const bool by_steps : {false, true}) {
          const int ahead = near == 1 ? 0 : splits;
          CAPTURE(rows, columns, steps, part_rows, part_columns, splits, near, by_steps);
          GpuSchedule s = chosen(g);
          s.product.block_rows = rows, s.product.block_columns = columns;
          s.product.steps = steps, s.product.splits = splits, s.product.ahead = ahead;
          s.product.part_rows = part_rows, s.product.part_columns = part_columns;
          s.product.rows.by_steps = by_steps, s.product.columns.by_steps = by_steps;
          s.product.rows.near = by_steps ? near : 1;
          s.product.columns.near = by_steps ? 1 : near;
          s.threads = threads_of(s.product);
          CHECK(wrong_with(g, inputs, s, 1e-5, tried) == "");
        }
  CHECK(tried > 30);
}

TEST_CASE("gpu: tensor cores multiply narrow numbers", "[long]") {
  struct Types {
    DType a, b, sum;
  };
  for (const auto& [a, b, sum] : {Types{DType::F16, DType::F16, DType::F32},
                                  {DType::BF16, DType::BF16, DType::F32},
                                  {DType::I8, DType::I8, DType::I32},
                                  {DType::U8, DType::I8, DType::I32},
                                  {DType::I8, DType::U8, DType::I32},
                                  {DType::U8, DType::U8, DType::I32}}) {
    CAPTURE(info(a).text, info(b).text);
    const Graph g = narrow_product(a, b, sum, 40, 80, 72);
    const std::vector<Tensor> inputs = random_inputs(g);
    const GpuSchedule own = chosen(g);
    REQUIRE(own.mapping == GpuMapping::Products);
    CHECK(own.product.matrices());
    int tried = 0;
    struct Filled {
      bool rows, columns; // by steps
      int near, ahead;
    };
    for (const int splits : {1, 2})
      for (const int part : {16, 32})
        for (const auto& [rows, columns, near, ahead] : {Filled{true, false, 8, 0},
                                                         {true, false, 8, 3},
                                                         {true, false, 1, 0},
                                                         {false, true, 1, 0}}) {
          CAPTURE(splits, part, rows, columns, near, ahead);
          GpuSchedule s = own;
          s.product.block_rows = 32, s.product.block_columns = 64;
          s.product.steps = sum == DType::I32 ? 32 : 16, s.product.splits = splits;
          s.product.part_rows = part, s.product.part_columns = 32;
          s.product.rows.by_steps = rows, s.product.columns.by_steps = columns;
          s.product.rows.near = s.product.columns.near = near;
          // Bytes of a step are turned one by one, which are no copies.
          s.product.ahead = sum == DType::I32 ? 0 : ahead;
          s.threads = threads_of(s.product);
          CHECK(wrong_with(g, inputs, s, sum == DType::I32 ? 0 : 4e-3, tried) == "");
        }
    CHECK(tried == 16);
  }
}

namespace {

// As narrow_product() of 80 rows and 72 columns; each factor's steps follow each other,
// or its positions do.
Graph turned_product(DType type, DType other, DType sum, bool rows_by_steps,
                     bool columns_by_steps, int64_t inner = 144) {
  constexpr int64_t kRows = 80, kColumns = 72;
  Graph g;
  g.keep_halves();
  const Shape a = rows_by_steps ? Shape{kRows, inner} : Shape{inner, kRows},
              b = columns_by_steps ? Shape{kColumns, inner} : Shape{inner, kColumns};
  NodeId x = cast(g, g.add_input("a", type, a), sum),
         y = cast(g, g.add_input("b", other, b), sum);
  if (!rows_by_steps) x = permute(g, x, {1, 0});
  if (columns_by_steps) y = permute(g, y, {1, 0});
  const NodeId z = product(g, x, y);
  g.add_output("z", sum == DType::F32 ? cast(g, z, type) : z);
  return g;
}

// By groups of warps, whose tiles of steps are rows of shared memory.
GpuSchedule by_groups(const Graph& g, int part_rows, int part_columns, int ahead) {
  GpuSchedule s = chosen(g);
  ProductTile& t = s.product;
  const int size = static_cast<int>(byte_size(g[g.inputs()[0].node].dtype));
  t.by = Multiplier::Group, t.ahead = ahead, t.splits = 1;
  t.steps = kSwizzledBytes / size;
  t.part_rows = part_rows, t.part_columns = part_columns;
  t.block_rows = 128, t.block_columns = part_columns;
  t.rows.near = t.columns.near = 16 / size;
  s.threads = threads_of(t);
  return s;
}

} // namespace

TEST_CASE("gpu: groups of warps multiply from shared memory", "[long]") {
  int tried = 0;
  for (const DType type : {DType::F16, DType::BF16})
    for (const bool rows : {true, false})
      for (const bool columns : {true, false}) {
        const Graph g = turned_product(type, type, DType::F32, rows, columns);
        const std::vector<Tensor> inputs = random_inputs(g);
        for (const auto& [part_rows, part_columns, ahead, splits] :
             {std::tuple(64, 64, 1, 1), std::tuple(128, 64, 2, 2),
              std::tuple(64, 128, 3, 1)}) {
          CAPTURE(info(type).text, rows, columns, part_rows, part_columns, ahead, splits);
          GpuSchedule s = by_groups(g, part_rows, part_columns, ahead);
          s.product.splits = splits;
          CHECK(wrong_with(g, inputs, s, 4e-3, tried) == "");
        }
      }
  CHECK(tried == 24);
}

TEST_CASE("gpu: groups of warps multiply bytes", "[sweep]") {
  int tried = 0;
  for (const DType a : swept({DType::U8, DType::I8}, 1))
    for (const DType b : {DType::I8, DType::U8}) {
      const Graph g = turned_product(a, b, DType::I32, true, true);
      CAPTURE(info(a).text, info(b).text);
      CHECK(wrong_with(g, random_inputs(g), by_groups(g, 64, 96, 2), 0, tried) == "");
    }
  CHECK(static_cast<uint64_t>(tried) == swept(4, 2));
}

TEST_CASE("gpu: tensor cores multiply the first bits of floats") {
  const Graph g = turned_product(DType::F32, DType::F32, DType::F32, true, true);
  const std::vector<Tensor> inputs = random_inputs(g);
  CHECK(!chosen(g).product.matrices());
  int tried = 0;
  GpuSchedule s = by_groups(g, 64, 64, 2);
  CHECK(wrong_with(g, inputs, s, 4e-3, tried) == "");
  s.product.by = Multiplier::Warp;
  s.product.part_rows = s.product.part_columns = s.product.block_rows = 32;
  for (const int ahead : {0, 2}) {
    s.product.ahead = ahead;
    s.threads = threads_of(s.product);
    CHECK(wrong_with(g, inputs, s, 4e-3, tried) == "");
  }
  CHECK(tried == 3);
  CHECK(wrong_with(g, inputs, s, 1e-6, tried) != "");
}

// Products that nobody has waited for read what is copied for later steps.
TEST_CASE("gpu: the executor finds products that are not waited for") {
  const Graph g = turned_product(DType::F16, DType::F16, DType::F32, true, true, 256);
  codegen::Kernels kernels = compiled(g);
  kernels.plan.programs[0].levels.back().gpu = by_groups(g, 64, 64, 1);
  kernels = codegen::emit(std::move(kernels.plan), gpu());
  std::string& text = kernels.sources[0].text;
  const std::string wait = "wait_for_products<1>";
  text.replace(text.rfind(wait), wait.size(), "wait_for_products<2>");
  const KernelRun run = run_kernels(kernels, gpu(), random_inputs(g));
  REQUIRE(run.error.empty());
  CHECK(!run.faults.empty());
}

// Halves that are read eight at a time are 32 bytes once they are widened.
TEST_CASE("gpu: runs that are widened on their way") {
  Random random(1);
  Graph g;
  g.keep_halves();
  const NodeId a = g.add_input("a", DType::F16, {40, 72}),
               b = g.add_input("b", DType::F32, {72, 68});
  g.add_output("y", product(g, cast(g, a, DType::F32), b));
  GpuSchedule s = chosen(g);
  CHECK(!s.product.matrices());
  FactorTile& halves = s.product.row_factor == 0 ? s.product.rows : s.product.columns;
  CHECK(halves.near == 8);
  CHECK(wrong(g,
              {random_tensor(random, {40, 72}, DType::F16),
               random_tensor(random, {72, 68})},
              1e-5) == "");
}

TEST_CASE("gpu: long sums of few results are shared by blocks") {
  const Graph g = float_product(32, 4000, 32);
  CHECK(chosen(g).product.splits > 1);
  CHECK(wrong(g, random_inputs(g), 1e-4) == "");
}

TEST_CASE("gpu: the executor finds parts of a sum that nobody waited for") {
  const Graph g = float_product(32, 4000, 32);
  const std::vector<std::string> faults =
      planted(g, random_inputs(g), "count_arrival(arrived) == kShares - 1",
              "block_number() == kShares - 1");
  REQUIRE(!faults.empty());
  CHECK(faults[0].find("of scratch memory") != std::string::npos);
}

// One warp alone, two, and as many as a block has.
TEST_CASE("gpu: a long row is a block's") {
  Random random(1);
  for (const int64_t row : {32, 50, 1000})
    for (const Op op :
         {Op::ReduceSum, Op::ReduceMax, Op::ReduceProd, Op::ArgMax, Op::ArgMin}) {
      CAPTURE(row, info(op).text);
      Graph g;
      const NodeId x = g.add_input("x", DType::F32, {7, row});
      const bool place = op == Op::ArgMax || op == Op::ArgMin;
      g.add_output("y", place ? arg_reduce(g, op, x, 1, false) : reduce(g, op, x, {1}));
      CHECK(mappings(compiled(g)) == std::vector{GpuMapping::Rows});
      CHECK(wrong(g, {random_tensor(random, {7, row})}, 1e-5) == "");
    }
}

TEST_CASE("gpu: of equal values a block finds the first, or the last") {
  Tensor in{DType::F32, {3, 500}, {}};
  std::vector<float> values;
  for (int i = 0; i < 1500; ++i) values.push_back(static_cast<float>(i * 7 % 5));
  in.bytes.resize(values.size() * sizeof(float));
  std::memcpy(in.bytes.data(), values.data(), in.bytes.size());
  for (const Op op : {Op::ArgMax, Op::ArgMin})
    for (const bool last : {false, true}) {
      CAPTURE(info(op).text, last);
      Graph g;
      const NodeId x = g.add_input("x", DType::F32, {3, 500});
      g.add_output("y", arg_reduce(g, op, x, 1, last));
      CHECK(wrong(g, {in}, 0) == "");
    }
}

// Two runs of one kernel on one machine are the same, and the tree adds up as no loop
// would: a long sum of equal numbers is exact to a few units of the last place.
TEST_CASE("gpu: the threads of a block add up in a tree") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1, 100000});
  g.add_output("y", reduce(g, Op::ReduceSum, x, {1}));
  Tensor in{DType::F32, {1, 100000}, {}};
  const std::vector<float> tenths(100000, 0.1F);
  in.bytes.resize(tenths.size() * sizeof(float));
  std::memcpy(in.bytes.data(), tenths.data(), in.bytes.size());
  const KernelRun run = run_kernels(compiled(g), gpu(), {in});
  REQUIRE(run.faults.empty());
  float sum = 0;
  std::memcpy(&sum, run.outputs[0].bytes.data(), sizeof sum);
  CHECK(std::abs(sum / (double(0.1F) * 100000) - 1) < 1e-6);
}

TEST_CASE("gpu: schedules are read back as they are printed") {
  Graph g;
  const NodeId a = g.add_input("a", DType::F32, {64, 64}),
               b = g.add_input("b", DType::F32, {64, 64});
  g.add_output("y", product(g, a, b));
  g.add_output("z", reduce(g, Op::ReduceMax, a, {1}));
  g.add_output("w", map(g, Op::Exp, {a}));
  for (const ScheduledKernel& k : compiled(g).plan.programs) {
    TextFault fault;
    const auto read = parse_schedule(print(static_cast<const KernelSchedule&>(k)), fault);
    CAPTURE(fault.why, print(static_cast<const KernelSchedule&>(k)));
    REQUIRE(read);
    CHECK(print(read->loops) == print(k.loops)); // without lists that are empty
    CHECK(read->levels == k.levels);
    CHECK(gpu_misfit(k, *read->levels[0].gpu) == "");
  }
}

TEST_CASE("gpu: the executor finds a read outside of a buffer") {
  Random random(1);
  Graph g;
  g.add_output("y", map(g, Op::Exp, {g.add_input("x", DType::F32, {1000})}));
  const std::vector<std::string> faults =
      planted(g, {random_tensor(random, {1000})}, "i32 bad = 0;",
              "i32 bad = 0; if (thread_number() == 0) a1[0] = a0[1000];");
  REQUIRE(!faults.empty());
  CHECK(faults[0] == "thread 0 of block 0 reads byte 4000 of a0, which has 4000");
}

TEST_CASE("gpu: the executor finds two threads that write one element") {
  Random random(1);
  Graph g;
  g.add_output("y", map(g, Op::Exp, {g.add_input("x", DType::F32, {1000})}));
  const std::vector<std::string> faults = planted(
      g, {random_tensor(random, {1000})}, "i32 bad = 0;", "i32 bad = 0; a1[999] = 0;");
  REQUIRE(!faults.empty());
  CHECK(faults[0].find("of a1, which thread 0 of block 0 writes") != std::string::npos);
}

TEST_CASE("gpu: the executor finds a wait that is missing") {
  const Graph g = float_product(64, 64, 64);
  const std::vector<Tensor> inputs = random_inputs(g);
  CHECK(planted(g, inputs, "wait_for_block();", "wait_for_block();").empty());
  const std::vector<std::string> faults = planted(g, inputs, "wait_for_block();", "");
  REQUIRE(!faults.empty());
  CHECK(faults[0].find("of shared memory") != std::string::npos);
}

TEST_CASE("gpu: the executor finds a copy that is not waited for") {
  const Graph g = narrow_product(DType::F16, DType::F16, DType::F32, 64, 128, 64);
  const std::vector<Tensor> inputs = random_inputs(g);
  REQUIRE(chosen(g).product.ahead > 0);
  CHECK(planted(g, inputs, "wait_for_block();", "wait_for_block();").empty());
  // What is on its way for others is not what they see.
  CHECK(!planted(g, inputs, "wait_for_block();", "").empty());
}

TEST_CASE("gpu: the executor finds threads that do not wait") {
  const Graph g = float_product(64, 64, 64);
  const std::vector<std::string> faults =
      planted(g, random_inputs(g), "i32 bad = 0;",
              "i32 bad = 0; if (thread_number() == 3) return;");
  REQUIRE(!faults.empty());
  CHECK(faults[0].find("waits for threads that have ended") != std::string::npos);
}

TEST_CASE("gpu: the executor finds a thread that takes no part in a shuffle") {
  Random random(1);
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {7, 1000});
  g.add_output("y", reduce(g, Op::ReduceSum, x, {1}));
  const std::vector<Tensor> inputs{random_tensor(random, {7, 1000})};
  for (const char* leaves : {"return;", "wait_for_block();"}) {
    CAPTURE(leaves);
    const std::vector<std::string> faults =
        planted(g, inputs, "i32 bad = 0;",
                std::string("i32 bad = 0; if (thread_number() == 35) ") + leaves);
    REQUIRE(!faults.empty());
    CHECK(faults[0] == "thread 35 of block 0 does not take part where its warp shuffles");
  }
}

TEST_CASE("gpu: the executor finds a shuffle that asks for no thread") {
  Random random(1);
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {7, 1000});
  g.add_output("y", reduce(g, Op::ReduceSum, x, {1}));
  const std::vector<std::string> faults =
      planted(g, {random_tensor(random, {7, 1000})}, "i32 bad = 0;",
              "i32 bad = 0; of_lane<32>(bad, thread_number() + 1);");
  REQUIRE(!faults.empty());
  CHECK(faults[0] == "thread 31 of block 0 asks for lane 32 of a warp of 32");
}
