// Where loops end that go over what a run may not need.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/kernel/text.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

using namespace svod;
using namespace svod::test;

namespace {

constexpr int64_t kRows = 64, kColumns = 48;

// Rows of which a run has as many as its sizes say, as the importer makes them of --dim.
struct Rows {
  Graph g;
  NodeId x, count, mask;

  // `made`: the size is computed where the extents of the output are.
  explicit Rows(bool made = false) {
    x = g.add_input("x", DType::F32, {kRows, kColumns});
    const NodeId sizes = g.add_input("x.shape", DType::I64, {2});
    g.set_input_extents(0, 1);
    count = slice_axis(g, sizes, 0, 0, 1);
    if (made) count = map(g, Op::Min, {count, constant_int(g, DType::I64, {1}, kRows)});
    mask = map(g, Op::Less,
               {iota(g, DType::I64, {kRows}, 0), broadcast_to(g, count, {kRows})});
  }

  NodeId times_weights(NodeId of, int64_t columns, uint64_t seed) {
    Random random(seed);
    const Tensor w = random_tensor(random, {g[of].shape.back(), columns}, DType::F32);
    return matmul(g, of, weight(g, DType::F32, w.shape, g.add_blob(w.bytes)));
  }

  // `of` where a row is meant, else `otherwise`; rows lie along the axis.
  NodeId meant(NodeId of, int64_t axis, double otherwise) {
    const Shape shape = g[of].shape;
    Shape rows(shape.size(), 1);
    rows[size_t(axis)] = kRows;
    const NodeId where = expand(g, reshape(g, mask, rows), shape);
    return map(g, Op::Select, {where, of, constant(g, DType::F32, shape, otherwise)});
  }

  // An output of as many rows as the run has.
  void give(NodeId y) {
    const size_t output = g.outputs().size();
    g.add_output("y", y);
    const NodeId columns = constant_int(g, DType::I64, {1}, g[y].shape[1]);
    g.set_output_extents(output, g.outputs().size());
    g.add_output("y.shape", concat(g, {count, columns}, 0));
  }
};

// The kernels that multiply and add, in order.
std::vector<ScheduledKernel> products(Rows rows, const char* target = "x86-64-v4") {
  FusedGraph f = fuse(rewrite::simplify(std::move(rows.g)), *find_target(target));
  std::erase_if(f.kernels, [](const ScheduledKernel& k) {
    return k.stages.empty() || k.stages[0].op != Op::ReduceSum ||
           k.stages[0].kind != StageKind::Reduce;
  });
  return std::move(f.kernels);
}

bool ends_outside(const ScheduledKernel& k) {
  return std::ranges::any_of(
      k.ends, [&](const RunEnd& e) { return std::ranges::count(k.outer, e.axis) != 0; });
}

bool ends_inside(const ScheduledKernel& k) {
  return std::ranges::any_of(k.ends, [&](const RunEnd& e) {
    return std::ranges::count(k.stages[0].inner, e.axis) != 0;
  });
}

} // namespace

TEST_CASE("rows that no output has are not computed", "[fuse][bounded]") {
  for (const char* target : {"x86-64-v4", "x86-64", "aarch64", "riscv64"}) {
    Rows rows;
    rows.give(rows.times_weights(rows.times_weights(rows.x, 32, 1), 16, 2));
    const std::vector<ScheduledKernel> kernels = products(std::move(rows), target);
    REQUIRE(kernels.size() == 2);
    for (const ScheduledKernel& k : kernels) {
      INFO(target << "\n" << print(k));
      CHECK(ends_outside(k));
      CHECK(!ends_inside(k));
    }
  }
}

TEST_CASE("a size that only the extents of an output are is made first",
          "[fuse][bounded]") {
  Rows rows(true);
  rows.give(rows.times_weights(rows.x, 32, 1));
  const std::vector<ScheduledKernel> kernels = products(std::move(rows));
  REQUIRE(kernels.size() == 1);
  INFO(print(kernels[0]));
  CHECK(ends_outside(kernels[0]));
}

TEST_CASE("an output of known size has all of its rows", "[fuse][bounded]") {
  Rows rows;
  rows.g.add_output("y", rows.times_weights(rows.x, 32, 1));
  for (const ScheduledKernel& k : products(std::move(rows))) CHECK(k.ends.empty());
}

TEST_CASE("rows that some reader needs whole are all computed", "[fuse][bounded]") {
  for (const bool masked : {true, false}) {
    Rows rows;
    const NodeId y = rows.times_weights(rows.x, 32, 1);
    rows.give(y);
    const NodeId summed = masked ? rows.meant(y, 0, 0) : y;
    rows.g.add_output("sums", reduce(rows.g, Op::ReduceMax, summed, {0}));
    const std::vector<ScheduledKernel> kernels = products(std::move(rows));
    REQUIRE(kernels.size() == 1);
    INFO(print(kernels[0]));
    CHECK(ends_outside(kernels[0]) == masked);
  }
}

TEST_CASE("a sum ends where a factor is zero behind", "[fuse][bounded]") {
  for (const bool masked : {true, false}) {
    Rows rows;
    Graph& g = rows.g;
    const NodeId keys = rows.times_weights(rows.x, 16, 1);
    NodeId values = rows.times_weights(rows.x, 16, 2);
    if (masked) values = rows.meant(values, 0, 0);
    const NodeId scores =
        matmul(g, rows.times_weights(rows.x, 16, 3), permute_last_two(g, keys));
    rows.give(matmul(g, map(g, Op::Tanh, {scores}), values));
    const std::vector<ScheduledKernel> kernels = products(std::move(rows));
    REQUIRE(kernels.size() == 5);
    INFO(print(kernels.back()));
    CHECK(ends_outside(kernels.back()));
    CHECK(ends_inside(kernels.back()) == masked);
  }
}

// Scores are products that end along both axes, in tiles of both: the rows of queries and
// the vectors of keys are as long. A softmax that keeps its exponentials ends as well.
TEST_CASE("attention goes to the rows of a run and no further", "[fuse][bounded]") {
  Rows rows;
  Graph& g = rows.g;
  const NodeId keys = rows.times_weights(rows.x, 16, 1),
               values = rows.times_weights(rows.x, 16, 2);
  const NodeId scores =
      matmul(g, rows.times_weights(rows.x, 16, 3), permute_last_two(g, keys));
  const NodeId shown = rows.meant(scores, 1, -3.4e38);
  const Shape shape = g[shown].shape;
  const NodeId greatest = expand(g, reduce(g, Op::ReduceMax, shown, {1}), shape);
  const NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {shown, greatest})});
  const NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {1}), shape);
  rows.give(matmul(g, rows.meant(map(g, Op::Div, {e, sum}), 1, 0), values));

  const FusedGraph f = fuse(rewrite::simplify(std::move(g)), *find_target("x86-64-v4"));
  size_t kept = 0, tiled = 0;
  for (const ScheduledKernel& k : f.kernels) {
    if (k.stages[0].kind != StageKind::Reduce) continue;
    INFO(print(k));
    CHECK(ends_outside(k));
    const bool keeps = std::ranges::any_of(k.stages, &Stage::keeps);
    kept += keeps && ends_inside(k);
    tiled += k.ends.size() == 2 && !ends_inside(k);
  }
  CHECK(kept == 1);
  CHECK(tiled == 1);
}

// Rows that are picked one by one, and read as several batches of them.
TEST_CASE("a flat dimension is looped over as its readers see it", "[fuse][bounded]") {
  for (const bool open : {true, false}) {
    Graph g;
    if (open) g = Rows().g;
    const NodeId x =
        open ? g.inputs()[0].node : g.add_input("x", DType::F32, {kRows, kColumns});
    const Shape flat = {1, kRows, kColumns};
    const NodeId at = expand(g, g.add_input("at", DType::I64, {1, kRows, 1}), flat);
    const NodeId picked = gather(g, reshape(g, x, flat), at, 1);
    const NodeId batches = reshape(g, picked, {4, kRows / 4, kColumns});
    const NodeId queries = slice_axis(g, batches, 2, 0, 32),
                 keys = slice_axis(g, batches, 2, 16, 32);
    g.add_output("scores", matmul(g, queries, permute_last_two(g, keys)));
    const FusedGraph f = fuse(rewrite::simplify(std::move(g)), *find_target("x86-64-v4"));
    const auto picks = std::ranges::find_if(f.kernels, [](const ScheduledKernel& k) {
      return std::ranges::any_of(
          k.exprs, [](const Expr& e) { return e.kind == Expr::Kind::Checked; });
    });
    REQUIRE(picks != f.kernels.end());
    INFO(print(*picks));
    const bool in_batches = std::ranges::any_of(
        picks->outer, [&](AxisId a) { return picks->indices.extent(a) == 4; });
    CHECK(in_batches == open);
  }
}

TEST_CASE("ends of runs are read back as they are printed", "[fuse][bounded]") {
  Rows rows;
  rows.give(rows.times_weights(rows.x, 32, 1));
  const std::vector<ScheduledKernel> kernels = products(std::move(rows));
  REQUIRE(kernels.size() == 1);
  const std::string text = print(static_cast<const Kernel&>(kernels[0]));
  CHECK(text.find("  ends i0 ") != std::string::npos);
  TextFault fault;
  const std::optional<Kernel> read = parse_kernel(text, fault);
  REQUIRE(read);
  CHECK(print(*read) == text);
}
