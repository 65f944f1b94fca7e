// Results in the very place of what their kernels read: where indices allow it, and that
// a run still computes what the evaluator does.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "compiler/plan/in_place.h"
#include "compiler/plan/plan_memory.h"
#include "tests/support/check_kernels.h"
#include "tests/support/model_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

// y = f(x) over rows of eight: an argument that is read, one that is written, and what
// stages do with them.
class RowKernel {
public:
  RowKernel() {
    k_.arguments = {{Argument::Kind::Buffer, 0, DType::F32, false, true},
                    {Argument::Kind::Buffer, 1, DType::F32, true, false}};
    k_.outer = {k_.indices.add_axis(4)};
  }
  AxisId inner() { return k_.indices.add_axis(8); }
  // Of the row's element at an inner axis, `apart` from each other, moved on by `by`.
  Index at(AxisId axis, int64_t apart = 1, int64_t by = 0) {
    Index out = IndexPool::add(IndexPool::scale(k_.indices.axis(k_.outer[0]), 8),
                               IndexPool::scale(k_.indices.axis(axis), apart));
    out.constant += by;
    return out;
  }
  ExprId load(Index index) {
    Expr load{Expr::Kind::Load, DType::F32};
    load.index = std::move(index);
    return k_.add(load);
  }
  Stage& stage(StageKind kind, AxisId axis, ExprId value) {
    Stage s;
    s.kind = kind;
    s.inner = {axis};
    s.value = value;
    s.argument = 1;
    s.index = kind == StageKind::Reduce ? Index() : at(axis);
    k_.stages.push_back(s);
    return k_.stages.back();
  }
  bool may() {
    k_.loops = plain_loops(k_);
    return plan::may_take_place(k_, 0, 1);
  }
  ScheduledKernel& kernel() { return k_; }

private:
  ScheduledKernel k_;
};

} // namespace

TEST_CASE("an element takes the place of the one it is made of", "[plan][place]") {
  for (const StageKind kind : {StageKind::Store, StageKind::Scan}) {
    RowKernel same;
    const AxisId i = same.inner();
    same.stage(kind, i, same.load(same.at(i)));
    CHECK(same.may());
    same.kernel().arguments[1].read = true;
    CHECK_FALSE(same.may());
  }
  RowKernel moved;
  const AxisId i = moved.inner();
  moved.stage(StageKind::Store, i, moved.load(moved.at(i, 1, 1)));
  CHECK_FALSE(moved.may());
  RowKernel wide;
  const AxisId j = wide.inner();
  wide.stage(StageKind::Store, j, wide.load(wide.at(j)));
  wide.kernel().arguments[1].dtype = DType::F64;
  CHECK_FALSE(wide.may());
}

TEST_CASE("a row takes the place of the one that was summed", "[plan][place]") {
  const auto sum_and_store = [](int64_t apart, int64_t by) {
    RowKernel k;
    const AxisId j = k.inner(), i = k.inner();
    k.stage(StageKind::Reduce, j, k.load(k.at(j, apart, by)));
    k.stage(StageKind::Store, i, k.load(k.at(i)));
    return k;
  };
  CHECK(sum_and_store(1, 0).may());
  CHECK_FALSE(sum_and_store(2, 0).may()); // elements of the next row
  CHECK_FALSE(sum_and_store(1, 8).may());
  RowKernel nested = sum_and_store(1, 0); // a row is read again for each element
  nested.kernel().stages[0].nested = true;
  CHECK_FALSE(nested.may());
  RowKernel late = sum_and_store(1, 0); // nor may it be read when it is written
  std::swap(late.kernel().stages[0], late.kernel().stages[1]);
  CHECK_FALSE(late.may());
  // A softmax keeps its powers where it divides them.
  RowKernel twice = sum_and_store(1, 0);
  Stage& powers = twice.kernel().stages[0];
  powers.keeps = true;
  powers.index = twice.at(powers.inner[0]);
  twice.kernel().exprs[twice.kernel().stages[1].value].argument = 1;
  CHECK(twice.may());
  powers.index.constant = 8;
  CHECK_FALSE(twice.may());
}

TEST_CASE("what a value of the data decides is read at any time", "[plan][place]") {
  RowKernel k;
  const AxisId i = k.inner();
  const ExprId where = k.load(k.at(i));
  const ExprId value = k.load(k.at(i));
  k.stage(StageKind::Store, i, value).index = k.kernel().indices.dynamic(where, 32);
  CHECK_FALSE(k.may());
  RowKernel read;
  const AxisId j = read.inner();
  const ExprId from = read.load(read.at(j));
  read.kernel().exprs[from].index = read.kernel().indices.dynamic(
      read.kernel().add({Expr::Kind::Constant, DType::I64}), 32);
  read.stage(StageKind::Store, j, from);
  CHECK_FALSE(read.may());
}

TEST_CASE("a pair with one place has it or shares nothing", "[plan][place][property]") {
  const std::vector<plan::Lifetime> lives = {{640, 0, 1}, {640, 1, 2}, {64, 0, 2}};
  const plan::MemoryPlan one = plan::plan_memory(lives, 64, {{0, 1, 640, 640, true}});
  CHECK(one.bytes == 704);
  CHECK(one.lower_bound == 704);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<plan::Lifetime> many;
    std::vector<plan::MemoryPair> pairs;
    for (uint32_t s = 0; s < 14; ++s) {
      const auto more = static_cast<uint32_t>(random.between(1, 2));
      many.push_back({static_cast<uint64_t>(random.between(1, 900)), s, s + more});
      for (uint32_t before = 0; before < s; ++before)
        if (many[before].last == s && random.between(0, 1) == 0) {
          pairs.push_back({before, s, many[s].bytes, many[before].bytes, true});
          break;
        }
    }
    const plan::MemoryPlan memory = plan::plan_memory(many, 8, pairs);
    for (uint32_t a = 0; a < many.size(); ++a)
      for (uint32_t b = a + 1; b < many.size(); ++b) {
        if (many[a].last < many[b].first) continue;
        const uint64_t from = memory.offsets[a], to = memory.offsets[b];
        const bool apart = from + many[a].bytes <= to || to + many[b].bytes <= from;
        const bool pair = std::ranges::any_of(
            pairs, [&](const auto& p) { return p.first == a && p.second == b; });
        REQUIRE((apart || (pair && from == to)));
      }
    REQUIRE(memory.bytes >= memory.lower_bound);
    REQUIRE(memory.bytes <= plan::plan_memory(many, 8).bytes);
  }
}

namespace {

// Layers that add what went into them, rows that are normalised, running sums.
RandomGraph residual(uint64_t seed) {
  Random random(seed);
  RandomGraph out;
  Graph& g = out.graph;
  // Some are large enough for several threads.
  const int64_t rows = random.between(3, 70) * (seed % 8 == 7 ? 24 : 1);
  const int64_t width = random.between(5, 90);
  NodeId x = g.add_input("x", DType::F32, {rows, width});
  out.inputs.push_back(random_tensor(random, {rows, width}));
  // Small, so that no layer makes much of what another one has rounded.
  const auto known = [&](Shape shape) {
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& v : values) v = float(random.between(-1000, 1000)) / 8000;
    return tensor_f32(g, shape, values);
  };
  for (int64_t layer = random.between(3, 6); layer > 0; --layer) {
    const NodeId product = matmul(g, x, known({width, width}));
    switch (random.below(4)) {
    case 0:
      x = map(g, Op::Add,
              {matmul(g, map(g, Op::Tanh, {product}), known({width, width})), x});
      break;
    case 1: {
      const NodeId top = expand(g, reduce(g, Op::ReduceMax, product, {1}), {rows, width});
      const NodeId powers = map(g, Op::Exp, {map(g, Op::Sub, {product, top})});
      const NodeId sum = expand(g, reduce(g, Op::ReduceSum, powers, {1}), {rows, width});
      x = map(g, Op::Div, {powers, sum});
      break;
    }
    case 2: {
      const NodeId both = map(g, Op::Add, {map(g, Op::Sin, {product}), x});
      const NodeId mean = map(g, Op::Mul,
                              {reduce(g, Op::ReduceSum, both, {1}),
                               constant(g, DType::F32, {rows, 1}, 1.0 / double(width))});
      x = map(g, Op::Sub, {both, expand(g, mean, {rows, width})});
      break;
    }
    default:
      x = map(g, Op::Tanh, {scan(g, Op::ScanSum, product, random.below(2))});
      break;
    }
  }
  g.add_output("y", x);
  out.tolerance.assign(g.size(), 1e-3);
  return out;
}

} // namespace

// Where a launch costs nothing no kernel becomes part of a sequence, which would have a
// place of its own for each result.
TEST_CASE("results in the place of what is read are what the evaluator computes",
          "[plan][place][property][sweep]") {
  CompileOptions options;
  options.target = *find_target("native");
  options.as_written = true;
  for (Level& level : options.target.levels) level.machine.launch_ns = 0;
  size_t places = 0, chunked = 0;
  for (uint64_t seed : swept<uint64_t>({7, 4, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12}, 2)) {
    INFO("seed " << seed);
    const RandomGraph random = seed % 4 == 0   ? model_graph(seed)
                               : seed % 4 == 1 ? large_graph(seed)
                                               : residual(seed);
    const codegen::Kernels kernels = compile(random.graph, options);
    const plan::Plan& plan = kernels.plan;
    places += plan.overlaps.size();
    for (const plan::Overlap& o : plan.overlaps)
      CHECK(plan.slots[o.read].offset == plan.slots[o.written].offset);
    for (const plan::Step& step : plan.steps)
      chunked += step.chunks > 1 && !plan::shared_arguments(plan, step).empty();
    CHECK(check_answers(random, kernels, options.target) == "");
  }
  CHECK(places > swept(10, 2));
  CHECK(chunked > 0);
}
