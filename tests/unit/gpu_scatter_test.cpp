// Scatters on a GPU against the evaluator, on the executor of simt.h, which finds two
// threads that write one element: many updates of each element, in their order.
#include "compiler/ir/build.h"
#include "compiler/kernel/gpu_scatter.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

struct Case {
  Shape data;
  int64_t axis = 0, updates = 1; // along the axis
  Combiner how = Combiner::Set;
  bool rows = false; // one index for all that lies behind the axis
  DType type = DType::F32;
};

Shape updated(const Case& c) {
  Shape out = c.data;
  out[static_cast<size_t>(c.axis)] = c.updates;
  return out;
}

// The shape of the indices.
Shape indexed(const Case& c) {
  Shape out = updated(c);
  if (c.rows) std::fill(out.begin() + c.axis + 1, out.end(), 1);
  return out;
}

Graph graph_of(const Case& c) {
  Graph g;
  g.keep_halves();
  const NodeId x = g.add_input("x", c.type, c.data),
               index = g.add_input("index", DType::I64, indexed(c)),
               update = g.add_input("update", c.type, updated(c));
  g.add_output("y", scatter(g, x, expand(g, index, updated(c)), update, c.axis, c.how));
  return g;
}

// Indices of which most are there several times.
std::vector<Tensor> inputs_of(const Case& c, Random& random) {
  const int64_t extent = c.data[static_cast<size_t>(c.axis)];
  std::vector<double> indices;
  for (int64_t i = 0; i < element_count(indexed(c)); ++i)
    indices.push_back(double(random.below(std::max<int64_t>(extent / 2, 1))));
  return {random_tensor(random, c.data, c.type),
          make_tensor(DType::I64, indexed(c), indices),
          random_tensor(random, updated(c), c.type)};
}

codegen::Kernels compiled(const Graph& g) {
  CompileOptions options;
  options.target = *find_device("sm_80");
  return compile(g, options);
}

// The kernel that scatters; the other one copies the data to the target.
ScheduledKernel& scatter_of(codegen::Kernels& kernels) {
  const auto found = std::ranges::find_if(
      kernels.plan.programs, [](const auto& k) { return whole_scatter(k) != nullptr; });
  REQUIRE(found != kernels.plan.programs.end());
  return *found;
}

GpuSchedule chosen(const Case& c) {
  codegen::Kernels kernels = compiled(graph_of(c));
  return *scatter_of(kernels).levels.back().gpu;
}

// What goes wrong, bit by bit; with a schedule of its own, if one is given.
std::string wrong(const Case& c, const std::vector<Tensor>& inputs,
                  const std::optional<GpuSchedule>& schedule = {}) {
  const Target target = *find_device("sm_80");
  const Graph g = graph_of(c);
  codegen::Kernels kernels = compiled(g);
  if (schedule) {
    ScheduledKernel& k = scatter_of(kernels);
    if (std::string why = gpu_misfit(k, *schedule); !why.empty()) return why;
    k.levels.back().gpu = schedule;
    kernels = codegen::emit(std::move(kernels.plan), target);
  }
  const KernelRun run = run_kernels(kernels, target, inputs);
  if (!run.error.empty()) return run.error;
  if (!run.faults.empty()) return run.faults.front();
  return compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], 0, 0);
}

constexpr Combiner kCombiners[] = {Combiner::Set, Combiner::Add, Combiner::Mul,
                                   Combiner::Min, Combiner::Max};

// Positions alone, none, and owners of several numbers, slices or none.
std::vector<GpuSchedule> schedules_of(const Case& c) {
  codegen::Kernels kernels = compiled(graph_of(c));
  const ScheduledKernel& k = scatter_of(kernels);
  std::vector<AxisId> depend, slices;
  for (AxisId a : axes_apart(k)) (place_depends_on(k, a) ? depend : slices).push_back(a);
  GpuSchedule s{
      .mapping = GpuMapping::Scatter, .positions = axes_apart(k), .threads = 32};
  std::vector<GpuSchedule> out{s};
  s.positions.clear(), s.threads = 1;
  out.push_back(s);
  s.positions = depend;
  for (const int owners : {1, 4})
    for (const int beside : {1, 8}) {
      if (beside > 1 && positions_along(k, slices) == 1) continue;
      s.threads = 64, s.scatter = {owners, beside, slices};
      out.push_back(s);
    }
  return out;
}

} // namespace

TEST_CASE("gpu: threads share a scatter along axes that are apart") {
  Random random(1);
  for (const Combiner how : kCombiners)
    for (const Case& c : {Case{{5, 7, 40}, 1, 9, how}, Case{{30, 33}, 0, 50, how, true},
                          Case{{3, 6, 4, 5}, 2, 11, how, true}}) {
      CAPTURE(static_cast<int>(how), c.data, c.axis, c.updates);
      CHECK(chosen(c).mapping == GpuMapping::Scatter);
      CHECK(wrong(c, inputs_of(c, random)) == "");
    }
}

TEST_CASE("gpu: blocks share the elements of a scatter that has few positions") {
  Random random(1);
  for (const Combiner how : kCombiners) {
    const Case c{{300}, 0, 2500, how};
    CAPTURE(static_cast<int>(how));
    CHECK(chosen(c).scatter.owners > 1);
    CHECK(wrong(c, inputs_of(c, random)) == "");
  }
  // Fewer places than owners.
  const Case few{{7}, 0, 2500, Combiner::Add};
  CHECK(wrong(few, inputs_of(few, random)) == "");
  // Rows of a table, as the gradient of an embedding adds them up.
  const Case rows{{64, 48}, 0, 1500, Combiner::Add, true};
  CHECK(chosen(rows).scatter.owners > 1);
  CHECK(chosen(rows).scatter.beside == 32);
  CHECK(wrong(rows, inputs_of(rows, random)) == "");
}

TEST_CASE("gpu: scatters of random shapes by every schedule", "[sweep]") {
  Random random(2);
  for (uint64_t round = 0; round < swept(30, 8); ++round) {
    Case c;
    const int64_t rank = random.between(1, 4);
    for (int64_t i = 0; i < rank; ++i) c.data.push_back(random.between(1, 9));
    c.axis = random.below(rank);
    c.updates = random.chance(20) ? random.between(1000, 1100) / element_count(c.data) + 1
                                  : random.between(1, 40);
    c.how = kCombiners[random.below(5)];
    c.rows = random.chance(50);
    const DType types[] = {DType::F32, DType::I32, DType::U8, DType::F16, DType::I64};
    c.type = types[random.below(5)];
    const std::vector<Tensor> inputs = inputs_of(c, random);
    for (const GpuSchedule& s : schedules_of(c)) {
      CAPTURE(c.data, c.axis, c.updates, static_cast<int>(c.how), c.rows,
              info(c.type).text, s.scatter.owners, s.scatter.beside);
      CHECK(wrong(c, inputs, s) == "");
    }
  }
}

// Along the axis itself updates meet; what lies behind it never does, and whole rows of
// it go to one place.
TEST_CASE("gpu: a schedule that breaks a scatter's order does not fit") {
  codegen::Kernels kernels = compiled(graph_of({{5, 7, 40}, 1, 9, Combiner::Add}));
  const ScheduledKernel& k = scatter_of(kernels);
  const std::vector<AxisId> apart = axes_apart(k), all = k.stages[0].inner;
  CHECK(apart.size() == 2);
  GpuSchedule s{.mapping = GpuMapping::Scatter, .positions = all, .threads = 32};
  CHECK(gpu_misfit(k, s) != "");
  s.positions = apart;
  CHECK(gpu_misfit(k, s) == "");
  s.positions.push_back(apart[0]);
  CHECK(gpu_misfit(k, s) != "");
  s.positions = {};
  s.scatter = {4, 8, apart}; // each of their positions has an index of its own
  CHECK(gpu_misfit(k, s) != "");
  s.scatter = {4, 8, {}}; // eight threads for each element
  CHECK(gpu_misfit(k, s) != "");
  s.scatter = {3, 1, {}};
  CHECK(gpu_misfit(k, s) != "");
  s = {.mapping = GpuMapping::Positions, .positions = k.outer, .threads = 32};
  CHECK(gpu_misfit(k, s) != "");
}

TEST_CASE("gpu: an index out of range is told by a scatter") {
  Random random(1);
  for (const int64_t updates : {9, 2500}) {
    const Case c{{300}, 0, updates, Combiner::Add};
    std::vector<Tensor> inputs = inputs_of(c, random);
    std::vector<double> indices(static_cast<size_t>(updates), 7);
    indices.back() = 300;
    inputs[1] = make_tensor(DType::I64, {updates}, indices);
    const KernelRun run =
        run_kernels(compiled(graph_of(c)), *find_device("sm_80"), inputs);
    CHECK(run.status != 0);
    CHECK(run.faults.empty());
  }
}

TEST_CASE("gpu: a scatter's schedule is read back as it is printed") {
  for (const Case& c :
       {Case{{5, 7, 40}, 1, 9}, Case{{64, 48}, 0, 1500, Combiner::Add, true}}) {
    codegen::Kernels kernels = compiled(graph_of(c));
    const ScheduledKernel& k = scatter_of(kernels);
    TextFault fault;
    const auto read = parse_schedule(print(static_cast<const KernelSchedule&>(k)), fault);
    CAPTURE(fault.why, print(static_cast<const KernelSchedule&>(k)));
    REQUIRE(read);
    CHECK(read->levels == k.levels);
  }
}

// The executor would tell if two threads wrote an element.
TEST_CASE("gpu: the executor finds a scatter whose owners meet") {
  Random random(1);
  const Case c{{300}, 0, 2500, Combiner::Add};
  codegen::Kernels kernels = compiled(graph_of(c));
  bool planted = false;
  for (codegen::KernelSource& source : kernels.sources) {
    const std::string count = "(places + group, count - group, owner)";
    const size_t at = source.text.rfind(count);
    if (at == std::string::npos) continue;
    source.text.replace(at, count.size(), "(places + group, count - group, owner & ~1u)");
    planted = true;
  }
  REQUIRE(planted);
  const KernelRun run = run_kernels(kernels, *find_device("sm_80"), inputs_of(c, random));
  REQUIRE(run.error.empty());
  CHECK(!run.faults.empty());
}
