// Quantised networks through the whole compiler. All scales are powers of two and all
// sums stay below 2^24, so every way of computing gives the same bits: the float form
// that the evaluator runs and the integer form that kernels run must agree exactly.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/kernel/byte_table.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/quantised_graph.h"
#include "tests/support/random_tensor.h"
#include "tests/support/seeds.h"
#include "tests/support/sweep.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace svod;
using namespace svod::importer;
using namespace svod::test;

namespace {

int byte_sums(const Graph& g) {
  int count = 0;
  for (NodeId n : g.live_nodes()) {
    if (g[n].op != Op::ReduceSum || g[n].dtype != DType::I32) continue;
    if (g[g[n].inputs[0]].op != Op::Mul) continue;
    count += g.depends_on_input(n);
  }
  return count;
}

int failures(uint64_t first, uint64_t last, const Target& target) {
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string what = check_kernels(Quantised(seed).run(), target);
    if (what.empty()) continue;
    UNSCOPED_INFO("seed " << seed << " at " << target.levels[0].name << ", "
                          << target.levels[0].lanes << " lanes: " << what);
    ++count;
  }
  return count;
}

constexpr LevelChoice kLevels[] = {{"native"},    {"x86-64-v2"},   {"x86-64-v3"},
                                   {"x86-64-v4"}, {"cascadelake"}, {"x86-64-v3", 4}};

// Those of `seeds` at the first level; the next level's begin `step` later.
int failures_by_level(Seeds seeds, uint64_t step) {
  int count = 0;
  for (const LevelChoice& level : kLevels) {
    if (auto target = target_for(level))
      count += failures(seeds.first, seeds.last, *target);
    seeds = {seeds.first + step, seeds.last + step};
  }
  return count;
}

// Whatever a float may be, quantised and as a float again.
RandomGraph corners(DType dtype, int64_t zero, int64_t beside) {
  std::vector<double> values{NAN,          -NAN,          INFINITY, -INFINITY, 0.0,
                             -0.0,         1e30,          -1e30,    3e9,       -3e9,
                             2147483648.0, -2147483648.0, 1e-40};
  for (int i = -12; i < 520; ++i) values.push_back(i / 2.0);
  for (int i = 0; i < 16; ++i) values.push_back(254.5 + std::ldexp(1.0, -2 - i));
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{static_cast<int64_t>(values.size())};
  const NodeId x = g.add_input("x", DType::F32, shape);
  out.inputs.push_back(make_tensor(DType::F32, shape, values));
  NodeId near = map(g, Op::Round, {x});
  if (zero != 0)
    near = map(g, Op::Add,
               {near, constant(g, DType::F32, shape, static_cast<double>(zero))});
  const NodeId byte = cast(g, near, dtype);
  NodeId wide = cast(g, byte, DType::I32);
  if (beside != 0)
    wide = map(g, Op::Add, {wide, constant_int(g, DType::I32, shape, beside)});
  // The sign of a zero shows in what divides by it.
  const NodeId again = cast(g, wide, DType::F32);
  g.add_output("byte", byte);
  // As products of bytes read signed ones.
  if (dtype == DType::I8)
    g.add_output("flipped", map(g, Op::Xor,
                                {bitcast(g, byte, DType::U8),
                                 constant_int(g, DType::U8, shape, 128)}));
  g.add_output("again", again);
  g.add_output("inverse", map(g, Op::Reciprocal, {again}));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

// An input that is every byte.
NodeId every_byte(RandomGraph& out, DType dtype) {
  const Shape shape{256};
  Tensor all{dtype, shape, {}};
  for (int i = 0; i < 256; ++i) all.bytes.push_back(static_cast<std::byte>(i));
  out.inputs.push_back(std::move(all));
  return out.graph.add_input("x", dtype, shape);
}

// x sigmoid(x) of every byte, and what another byte becomes of it.
RandomGraph table_of(DType dtype) {
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = every_byte(out, dtype);
  const Shape shape = g[x].shape;
  const NodeId value =
      map(g, Op::Mul, {cast(g, x, DType::F32), constant(g, DType::F32, shape, 0x1p-5)});
  const NodeId smooth = map(g, Op::Mul, {value, map(g, Op::Sigmoid, {value})});
  const NodeId steps =
      map(g, Op::Round, {map(g, Op::Mul, {smooth, constant(g, DType::F32, shape, 24)})});
  g.add_output("y", cast(g, steps, dtype));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

// The same of a network that rounds to bytes after each operation: the gate is a byte of
// its own, made of the one that it is multiplied by.
RandomGraph table_of_parts(DType dtype) {
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = every_byte(out, dtype);
  const Shape shape = g[x].shape;
  const auto times = [&](NodeId n, double factor) {
    return map(g, Op::Mul, {n, constant(g, DType::F32, shape, factor)});
  };
  const auto rounded = [&](NodeId n) { return cast(g, map(g, Op::Round, {n}), dtype); };
  const NodeId value = times(cast(g, x, DType::F32), 0x1p-5);
  const NodeId gate = rounded(times(map(g, Op::Sigmoid, {value}), 64));
  const NodeId smooth = map(g, Op::Mul, {value, cast(g, gate, DType::F32)});
  g.add_output("y", rounded(times(smooth, 0x1p-1)));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

// A softmax over rows of scores, quantised by 1 / 256.
RandomGraph quantised_softmax() {
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{6, 70};
  std::vector<double> scores;
  for (int i = 0; i < 6 * 70; ++i) scores.push_back(std::ldexp(i * 2659 % 997 - 498, -6));
  const NodeId x = g.add_input("x", DType::F32, shape);
  out.inputs.push_back(make_tensor(DType::F32, shape, scores));
  auto over_rows = [&](Op op, NodeId of) {
    return expand(g, reduce(g, op, of, {1}), shape);
  };
  const NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, over_rows(Op::ReduceMax, x)})});
  const NodeId soft = map(g, Op::Div, {e, over_rows(Op::ReduceSum, e)});
  const NodeId scaled = map(g, Op::Div, {soft, constant(g, DType::F32, shape, 0x1p-8)});
  g.add_output("y", cast(g, map(g, Op::Round, {scaled}), DType::U8));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

} // namespace

TEST_CASE("a costly function of bytes is a table", "[kernels][quantised]") {
  for (const LevelChoice& level : kLevels)
    for (DType dtype : {DType::U8, DType::I8}) {
      const std::optional<Target> target = target_for(level);
      if (!target) continue;
      INFO(level.name << ' ' << level.lanes);
      const RandomGraph random = table_of(dtype);
      CHECK(check_kernels(random, *target).empty());
      const FusedGraph fused = fuse(random.graph, *target);
      REQUIRE(fused.kernels.size() == 1);
      // All of what is stored comes from it.
      const ScheduledKernel& k = fused.kernels[0];
      CHECK(optimize::schedule_kernel(k, target->levels[0]).tables ==
            std::vector<ExprId>{k.stages.back().value});
    }
}

TEST_CASE("of several bytes a table is made of the first one", "[kernels][quantised]") {
  for (DType dtype : {DType::U8, DType::I8}) {
    const std::optional<Target> target = find_target("native");
    const RandomGraph random = table_of_parts(dtype);
    CHECK(check_kernels(random, *target) == "");
    const FusedGraph fused = fuse(random.graph, *target);
    REQUIRE(fused.kernels.size() == 1);
    const ScheduledKernel& k = fused.kernels[0];
    const ExprId stored = k.stages.back().value;
    const std::optional<ByteTable> table = byte_table(k, stored);
    REQUIRE(table);
    CHECK(k.exprs[table->source].kind == Expr::Kind::Load);
    const std::vector<ExprId> costly = costly_byte_tables(k);
    CHECK(std::ranges::count(costly, stored) == 1);
  }
}

TEST_CASE("floats become bytes as the evaluator says, whatever they are",
          "[kernels][quantised][sweep]") {
  for (const LevelChoice& level : swept(kLevels, 2))
    for (auto [dtype, zero, beside] : {std::tuple{DType::U8, 0, 0},
                                       {DType::U8, 128, -128},
                                       {DType::U8, 255, -255},
                                       {DType::U8, 7, 3},
                                       {DType::I8, 0, 0},
                                       {DType::I8, -128, 128},
                                       {DType::I8, 127, -127},
                                       {DType::I8, -5, 3}})
      if (auto target = target_for(level)) {
        INFO(level.name << ' ' << level.lanes << " zero " << zero);
        CHECK(check_kernels(corners(dtype, zero, beside), *target) == "");
      }
}

TEST_CASE("contractions of bytes are taken on integers", "[rewrite][quantised]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Quantised quantised(seed);
    RandomGraph random = quantised.run();
    INFO("seed " << seed);
    Graph better = rewrite::integer_contractions(random.graph);
    CHECK(byte_sums(better) == quantised.contractions());
    CHECK(compare_outputs(random, better).empty());
  }
}

TEST_CASE("a softmax that is quantised divides once per row", "[rewrite][quantised]") {
  const RandomGraph random = quantised_softmax();
  const Graph better = rewrite::simplify(rewrite::integer_contractions(random.graph));
  std::vector<Shape> inverses;
  for (NodeId n : better.live_nodes()) {
    CHECK(better[n].op != Op::Div);
    if (better[n].op == Op::Reciprocal) inverses.push_back(better[n].shape);
  }
  CHECK(inverses == std::vector<Shape>{{6, 1}});
  CHECK(compare_outputs(random, better) == "");
  const Graph exact =
      rewrite::integer_contractions(random.graph, {.merge_scales = false});
  CHECK(compare_outputs(random, exact) == "");
}

TEST_CASE("neighbouring windows share a vector of interleaved bytes",
          "[kernels][quantised][sweep]") {
  uint64_t seed = 0;
  for (int64_t kernel : {3, 4})
    for (int64_t stride : {1, 2})
      for (const LevelChoice& level : swept(kLevels, 1)) {
        const std::optional<Target> target = target_for(level);
        if (!target) continue;
        const RandomGraph random = Quantised(++seed).depthwise(kernel, stride);
        INFO(level.name << ' ' << level.lanes << " kernel " << kernel << " stride "
                        << stride);
        CHECK(check_kernels(random, *target) == "");
        if (!target->levels[0].has_dots()) continue;
        const FusedGraph fused =
            fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), *target);
        std::string text;
        bool begins = false;
        for (const ScheduledKernel& k : fused.kernels) {
          if (!k.has_dot_axis()) continue;
          text += text_for(k, target->levels[0]);
          for (const StageSchedule& s :
               optimize::schedule_kernel(k, target->levels[0]).stages)
            begins |= s.begins_with.has_value();
        }
        REQUIRE(text.find("interleave_dots(") != std::string::npos);
        // What the zero point of x makes of the weights is where sums begin.
        CHECK(begins);
        // Four taps leave no byte for the next window; few registers make short tiles.
        if (stride == 1 && target->levels[0].registers < 32) continue;
        const bool together = stride == 1 && kernel == 3;
        CHECK((text.find(" << 8;") != std::string::npos) == together);
      }
}

TEST_CASE("only what may leave 32 bits is looked at before it becomes a byte",
          "[kernels][quantised][sweep]") {
  uint64_t seed = 0;
  for (int64_t exponent : {-6, 4, 24})
    for (const LevelChoice& level : swept(kLevels, 1)) {
      const std::optional<Target> target = target_for(level);
      if (!target) continue;
      const RandomGraph random = Quantised(++seed).depthwise(3, 1, exponent);
      INFO(level.name << ' ' << level.lanes << " exponent " << exponent);
      CHECK(check_kernels(random, *target) == "");
      const FusedGraph fused =
          fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), *target);
      const auto near = [](const Expr& e) { return e.near; };
      int count = 0;
      for (const ScheduledKernel& k : fused.kernels)
        count += k.has_dot_axis() && std::ranges::any_of(k.exprs, near);
      CHECK(count == (target->levels[0].has_dots() && exponent < 0));
    }
}

TEST_CASE("a few weights of nine bits are products apart",
          "[kernels][quantised][sweep]") {
  struct Case {
    Shape weights;
    size_t far, apart;
    int64_t parts;
  };
  // Too many of them are two bytes each; sums too short for that stay 32 bits wide.
  const Case cases[] = {{{16, 8, 3, 3}, 1, 1, 1},
                        {{16, 8, 3, 3}, 4, 4, 1},
                        {{16, 8, 3, 3}, 24, 0, 2},
                        {{5, 2, 3, 3}, 1, 1, 1},
                        {{5, 2, 3, 3}, 5, 0, 0}};
  uint64_t seed = 0;
  for (const Case& c : cases)
    for (const LevelChoice& level : swept(kLevels, 1)) {
      const RandomGraph random = Quantised(++seed).outliers(c.weights, c.far);
      const Graph better = rewrite::simplify(rewrite::integer_contractions(random.graph));
      INFO(level.name << " seed " << seed);
      CHECK(compare_outputs(random, better).empty());
      CHECK(byte_sums(better) == (c.parts != 0));
      size_t apart = 0;
      int64_t parts = 0;
      for (NodeId n : better.live_nodes()) {
        apart += better[n].op == Op::Slice;
        if (better[n].dtype == DType::I8 && !better.depends_on_input(n))
          parts = better[n].shape.size() > 7 ? better[n].shape.back() : 1;
      }
      CHECK(apart == c.apart);
      CHECK(parts == c.parts);
      if (auto target = target_for(level)) CHECK(check_kernels(random, *target) == "");
    }
}

// Half of the channels, as cross stage networks have it: nothing else asks for blocks.
TEST_CASE("bytes that are summed over channels have these in lanes",
          "[kernels][quantised]") {
  RandomGraph random;
  Graph& g = random.graph;
  const NodeId x = g.add_input("x", DType::F32, {1, 128, 12, 13});
  Random draw(7);
  random.inputs.push_back(random_tensor(draw, {1, 128, 12, 13}));
  const NodeId half = slice_axis(g, x, 1, 64, 64);
  const NodeId scaled =
      map(g, Op::Mul, {half, constant(g, DType::F32, g[half].shape, 256)});
  const NodeId bytes = cast(g, map(g, Op::Round, {scaled}), DType::U8);
  const Shape full = {1, 48, 12, 13, 64};
  const Tensor w = random_tensor(draw, {1, 48, 1, 1, 64}, DType::I8);
  const NodeId weights = weight(g, DType::I8, {1, 48, 1, 1, 64}, g.add_blob(w.bytes));
  const NodeId seen = reshape(g, permute(g, bytes, {0, 2, 3, 1}), {1, 1, 12, 13, 64});
  const auto factor = [&](NodeId n) { return expand(g, cast(g, n, DType::I32), full); };
  const NodeId sum =
      reduce(g, Op::ReduceSum, map(g, Op::Mul, {factor(seen), factor(weights)}), {4});
  g.add_output("y", reshape(g, sum, {1, 48, 12, 13}));
  random.tolerance.assign(g.size(), 0.0);
  for (const LevelChoice& level : kLevels)
    if (const auto target = target_for(level)) {
      INFO(level.name << ' ' << level.lanes);
      CHECK(check_kernels(random, *target) == "");
      const FusedGraph fused = fuse(rewrite::simplify(g), *target);
      CHECK(fused.kernels.back().has_dot_axis());
    }
}

TEST_CASE("products of bytes that both vary are dot products",
          "[kernels][quantised][long]") {
  uint64_t seed = 1;
  for (const LevelChoice& level : kLevels)
    for (bool transposed : {false, true})
      for (auto [a, b] : {std::pair{0, 128}, {128, 0}, {131, 117}}) {
        const std::optional<Target> target = target_for(level);
        if (!target) continue;
        RandomGraph random = Quantised(++seed).attention(transposed, a, b);
        INFO(level.name << ' ' << level.lanes << " seed " << seed);
        CHECK(check_kernels(random, *target) == "");
        const Graph better = rewrite::integer_contractions(random.graph);
        CHECK(byte_sums(better) == 1);
        CHECK(compare_outputs(random, better).empty());
        const FusedGraph fused = fuse(rewrite::simplify(better), *target);
        INFO(print(fused));
        CHECK(std::ranges::count_if(fused.kernels, &ScheduledKernel::has_dot_axis) == 1);
      }
}

TEST_CASE("quantised kernels give the bits of the float form",
          "[kernels][property][quantised][long]") {
  CHECK(failures_by_level({1, 8}, 8) == 0);
}

TEST_CASE("many quantised kernels give the bits of the float form",
          "[kernels][property][quantised][long]") {
  CHECK(failures_by_level(part_of({100, 180}), 100) == 0);
}
