// How stored values lie in memory, and what a kernel computes once.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/optimize/choose.h"
#include "compiler/rewrite/simplify.h"

#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/random_tensor.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace svod;
using namespace svod::test;

static NodeId known(Graph& g, Shape shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) / 64;
  Tensor t = make_tensor(DType::F32, shape, values);
  return weight(g, DType::F32, shape, g.add_blob(std::move(t.bytes)));
}

static FusedGraph fused(Graph& g, NodeId result, bool direct_only = false) {
  g.add_output("y", result);
  // As a pack of a network without bytes is made.
  const Target target = without_dot_levels(*find_target("native"));
  FusedGraph f = fuse(rewrite::simplify(g), target, direct_only);
  UNSCOPED_INFO(print(f));
  return f;
}

// What the kernel's value reads lies side by side along the lanes, or is one number.
static void check_loads_are_vectors(const ScheduledKernel& k) {
  REQUIRE(k.has_lane_axis());
  for (ExprId load : loads_below(k, k.stages[0].value)) {
    int64_t stride = 0;
    CHECK(k.indices.affine_in(k.exprs[load].index, *k.loops.lane, stride));
    CHECK(stride <= 1);
  }
}

// The only buffer of this shape.
static Layout layout_of(const FusedGraph& f, const Shape& shape) {
  std::vector<Layout> found;
  for (const Buffer& b : f.buffers)
    if (b.shape == shape) found.push_back(b.layout);
  REQUIRE(found.size() == 1);
  return found[0];
}

// Windows of 3 x 3 over the last two axes of [1,C,H,W].
static NodeId windows(Graph& g, NodeId x) {
  return window(g, window(g, x, 2, 3, 1, 1), 3, 3, 1, 1);
}

// [1,C,H,W] -> [1,M,H-2,W-2]
static NodeId convolution(Graph& g, NodeId x, int64_t results) {
  NodeId seen = unsqueeze(g, permute(g, windows(g, x), {0, 2, 3, 1, 4, 5}), 1);
  const Shape shape = g[seen].shape;
  NodeId weights = known(g, {1, results, 1, 1, shape[4], 3, 3});
  NodeId product = broadcast_map(g, Op::Mul, {seen, weights});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5, 6}), {4, 5, 6});
}

TEST_CASE("what a depthwise convolution reads has its channels in lanes", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 12, 13, 64});
  NodeId other = g.add_input("other", DType::F32, {1, 64, 12, 13});
  NodeId mixed = permute(g, matmul(g, x, known(g, {64, 64})), {0, 3, 1, 2});
  NodeId sum = map(g, Op::Add, {mixed, other});
  NodeId product =
      broadcast_map(g, Op::Mul, {windows(g, sum), known(g, {1, 64, 1, 1, 3, 3})});
  NodeId y = squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
  const FusedGraph f = fused(g, y);
  check_loads_are_vectors(f.kernels.back());
}

TEST_CASE("what a pooling reads has its channels in lanes", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 1, 12, 13});
  NodeId y = broadcast_map(g, Op::Exp,
                           {broadcast_map(g, Op::Add, {x, known(g, {1, 64, 1, 1})})});
  NodeId most = reduce(g, Op::ReduceMax, windows(g, y), {4, 5});
  CHECK(layout_of(fused(g, most), {1, 64, 12, 13}).block_axis == 1);
}

TEST_CASE("axis 1 of a transposed convolution result is no channel", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 20, 21});
  NodeId rows = reshape(g, permute(g, convolution(g, x, 48), {0, 2, 3, 1}), {1, 342, 48});
  NodeId moved = broadcast_map(g, Op::Add, {rows, known(g, {342, 48})});
  NodeId y = matmul(g, moved, known(g, {48, 48}));
  const FusedGraph f = fused(g, y, true);
  INFO(print(f));
  for (const Buffer& b : f.buffers) CHECK(b.layout.block_axis == -1);
}

TEST_CASE("a convolution's result is blocked by its channels", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 20, 21});
  NodeId y = convolution(g, convolution(g, x, 48), 16);
  const FusedGraph f = fused(g, y);
  CHECK(std::ranges::any_of(f.buffers, [](const Buffer& b) {
    return b.layout.block_axis == 1 && b.shape[1] == 48;
  }));
}

TEST_CASE("windows of a depthwise convolution whose result is tokens are not stored",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 96, 40, 40});
  NodeId padded = pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  NodeId product =
      broadcast_map(g, Op::Mul, {windows(g, padded), known(g, {1, 96, 1, 1, 3, 3})});
  NodeId sum = squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
  NodeId tokens = permute(g, reshape(g, sum, {1, 96, 1600}), {0, 2, 1});
  const FusedGraph f = fused(g, map(g, Op::Gelu, {tokens}));
  for (const Buffer& b : f.buffers) CHECK(element_count(b.shape) <= 96 * 42 * 42);
  CHECK(layout_of(f, {1, 96, 42, 42}).block_axis == 1);
  check_loads_are_vectors(f.kernels.back());
}

TEST_CASE("what Winograd's transform reads has its channels in lanes", "[fuse]") {
  // Of the model's own input a copy has; the channels need be no whole vectors.
  for (int64_t channels : {40, 64}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, channels, 28, 28});
    NodeId padded = pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
    const FusedGraph f = fused(g, convolution(g, padded, 64));
    REQUIRE(f.chosen[0].algorithm.starts_with("winograd"));
    CHECK(layout_of(f, {1, channels, 30, 30}).block_axis == 1);
  }
}

TEST_CASE("windows of shuffled channels are cut from a copy", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 24, 28, 28});
  NodeId mixed = convolution(g, x, 40);
  NodeId parts = permute(g, reshape(g, mixed, {1, 4, 10, 26, 26}), {0, 2, 1, 3, 4});
  NodeId shuffled = reshape(g, parts, {1, 40, 26, 26});
  NodeId padded = pad(g, shuffled, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  const FusedGraph f = fused(g, convolution(g, padded, 48));
  // Rows and columns are whole tiles of four, and what their windows reach beyond.
  CHECK(layout_of(f, {1, 40, 30, 30}).block_axis == 1);
}

TEST_CASE("a padded copy of many channels is blocked by them", "[fuse]") {
  for (int64_t channels : {3, 80}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, channels, 20, 21});
    NodeId y = convolution(g, pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0), 48);
    const Layout copy = layout_of(fused(g, y, true), {1, channels, 22, 23});
    CHECK(copy.block_axis == (channels == 80 ? 1 : -1));
  }
}

TEST_CASE("a picture is read past its edges where only the ends of rows do", "[fuse]") {
  // Channels, rows, low pad: a plain picture, short rows, a wide pad, many channels.
  for (const Shape& c :
       {Shape{3, 90, 1}, Shape{3, 40, 1}, Shape{3, 90, 2}, Shape{8, 90, 1}}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, c[0], c[1], 91});
    NodeId y = convolution(g, pad(g, x, {0, 0, c[2], 1}, {0, 0, 1, 1}, 0), 48);
    const FusedGraph f = fused(g, y, true);
    const bool copied = std::ranges::any_of(f.buffers, [&](const Buffer& b) {
      return b.shape == Shape{1, c[0], c[1] + c[2] + 1, 93};
    });
    CAPTURE(c);
    CHECK(copied != (c == Shape{3, 90, 1}));
  }
}

// x w, its softmax, and that times w2: rows of 200 are no whole vectors.
static NodeId scores(Graph& g, NodeId x, bool flattened) {
  NodeId s = matmul(g, x, known(g, {2, 64, 200}));
  const Shape shape = g[s].shape;
  NodeId e = map(g, Op::Exp, {s});
  NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {2}), shape);
  NodeId y = map(g, Op::Div, {e, sum});
  if (flattened) return matmul(g, reshape(g, y, {2, 50, 800}), known(g, {2, 800, 48}));
  return matmul(g, y, known(g, {2, 200, 48}));
}

TEST_CASE("rows have room for whole vectors where all read them as rows", "[fuse]") {
  for (bool flattened : {false, true}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {2, 200, 64});
    const FusedGraph f = fused(g, scores(g, x, flattened));
    int64_t whole = 0, rows = 0;
    for (const Buffer& b : f.buffers) {
      if (element_count(b.shape) != 2 * 200 * 200) continue;
      ++rows;
      whole += b.layout.block > 1;
    }
    CHECK(rows == 2);
    CHECK(whole == (flattened ? 1 : 2)); // the scores themselves are read as rows
  }
}

TEST_CASE("softmax takes each exponential once", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {8, 50});
  NodeId most = expand(g, reduce(g, Op::ReduceMax, x, {1}), {8, 50});
  NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, most})});
  NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {1}), {8, 50});
  const FusedGraph f = fused(g, map(g, Op::Div, {e, sum}));
  REQUIRE(f.kernels.size() == 1);
  CHECK(std::ranges::count_if(f.kernels[0].stages, &Stage::keeps) == 1);
}

TEST_CASE("a sum of what repeats is taken once", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 6, 40});
  NodeId y = reduce(g, Op::ReduceSum, expand(g, x, {32, 6, 40}), {2});
  g.add_output("y", y);
  const Graph simple = rewrite::simplify(g);
  for (NodeId n : simple.live_nodes())
    if (simple[n].op == Op::ReduceSum) CHECK(simple[n].shape == Shape{1, 6, 1});
}

// A padded 3 x 3 convolution over every channel alone.
static NodeId depthwise(Graph& g, NodeId x) {
  NodeId product = broadcast_map(g, Op::Mul,
                                 {windows(g, pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0)),
                                  known(g, {1, g[x].shape[1], 1, 1, 3, 3})});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
}

TEST_CASE("a border is written in whole vectors, block by block", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 12, 13});
  const FusedGraph f =
      fused(g, depthwise(g, map(g, Op::Abs, {convolution(g, x, 64)})), true);
  auto border = std::ranges::find_if(f.kernels, [](const ScheduledKernel& k) {
    return k.stages.size() == 4 && k.exprs.size() == 1;
  });
  REQUIRE(border != f.kernels.end());
  REQUIRE(border->has_lane_axis());
  int64_t blocks = 1;
  for (AxisId a : border->outer)
    if (a != border->loops.lane) blocks *= border->indices.extent(a);
  CHECK(blocks * border->loops.lanes == 64);
}

TEST_CASE("what makes rows whole vectors is one store for each row", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {6, 49, 64});
  NodeId q = matmul(g, x, known(g, {6, 64, 32}));
  NodeId k = map(g, Op::Abs, {matmul(g, x, known(g, {6, 64, 32}))});
  const FusedGraph f = fused(g, matmul(g, q, permute(g, k, {0, 2, 1})), true);
  auto border = std::ranges::find_if(f.kernels, [](const ScheduledKernel& kernel) {
    return kernel.stages.size() == 1 && kernel.exprs.size() == 1;
  });
  REQUIRE(border != f.kernels.end());
  REQUIRE(border->has_lane_axis());
  int64_t stores = 1;
  for (AxisId a : border->outer)
    if (a != border->loops.lane) stores *= border->indices.extent(a);
  CHECK(stores == 6 * 32);
  REQUIRE(border->stages[0].domain.size() == 1);
  CHECK(border->stages[0].domain[0].high == (-49 & (border->loops.lanes - 1)));
}

TEST_CASE("x sigmoid(x) with two readers is stored where x is made", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 12, 13});
  NodeId made = convolution(g, x, 64);
  NodeId gated = map(g, Op::Mul, {made, map(g, Op::Sigmoid, {made})});
  NodeId mean = expand(g, reduce(g, Op::ReduceSum, gated, {2, 3}), g[gated].shape);
  const FusedGraph f = fused(g, map(g, Op::Mul, {gated, mean}), true);
  int powers = 0;
  for (const ScheduledKernel& k : f.kernels)
    for (const Expr& e : k.exprs)
      if (e.kind == Expr::Kind::Map && e.op == Op::Exp) {
        ++powers;
        CHECK(k.stages[0].kind == StageKind::Reduce); // the convolution
      }
  CHECK(powers == 1);
}

TEST_CASE("what a pooling reads past the edge is a border with its own value", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 12, 13});
  NodeId made = map(g, Op::Abs, {convolution(g, x, 64)});
  NodeId wide = pad(g, made, {0, 0, 1, 1}, {0, 0, 1, 1}, -INFINITY);
  const FusedGraph f = fused(g, reduce(g, Op::ReduceMax, windows(g, wide), {4, 5}), true);
  const Layout layout = layout_of(f, {1, 64, 10, 11});
  CHECK(layout.low == Shape{0, 0, 1, 1});
  CHECK(layout.fill == 0xff800000);
  for (const ScheduledKernel& k : f.kernels)
    for (ExprId load : loads_below(k, k.stages[0].value))
      CHECK(k.exprs[load].bounds.empty());
}

TEST_CASE("rows picked from a blocked value keep its channels in lanes", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 12, 13});
  NodeId made = map(g, Op::Abs, {convolution(g, x, 64)});
  std::vector<double> where;
  for (int i = 0; i < 64; ++i) where.push_back(i * 11 / 64 * (i % 3 != 0));
  Tensor t = make_tensor(DType::I64, {64}, where);
  NodeId index =
      expand(g,
             reshape(g, weight(g, DType::I64, {64}, g.add_blob(std::move(t.bytes))),
                     {1, 1, 1, 64}),
             {1, 64, 10, 64});
  const FusedGraph f = fused(g, gather(g, made, index, 3), true);
  check_loads_are_vectors(f.kernels.back());
}

TEST_CASE("shuffled channels are written a block at a time", "[fuse]") {
  for (int64_t parts : {2, 4}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, parts * 29, 12, 21});
    NodeId apart = reshape(g, x, {1, parts, 29, 12, 21});
    NodeId shuffled =
        reshape(g, permute(g, apart, {0, 2, 1, 3, 4}), {1, parts * 29, 12, 21});
    const FusedGraph f = fused(g, depthwise(g, shuffled), true);
    const auto copy = std::ranges::find_if(f.kernels, [](const ScheduledKernel& k) {
      return k.stages.size() == 1 && k.stages[0].kind == StageKind::Store &&
             !loads_below(k, k.stages[0].value).empty();
    });
    REQUIRE(copy != f.kernels.end());
    const Target target = *find_target("x86-64-v4");
    CHECK(optimize::choose_tile(*copy, target.levels[0]).points() == copy->loops.lanes);
  }
}

// Parts of which a depthwise convolution reads all, both of them transposed tokens.
static NodeId depthwise_of_join(Graph& g, int64_t first, int64_t second) {
  NodeId x = g.add_input("x", DType::F32, {1, 12, 13, 64});
  NodeId a = permute(g, matmul(g, x, known(g, {64, first})), {0, 3, 1, 2});
  NodeId b = permute(g, matmul(g, x, known(g, {64, second})), {0, 3, 1, 2});
  NodeId joined = concat(g, {a, b}, 1);
  NodeId weights = known(g, {1, first + second, 1, 1, 3, 3});
  NodeId product = broadcast_map(g, Op::Mul, {windows(g, joined), weights});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
}

TEST_CASE("what is joined for a depthwise convolution has its channels in lanes",
          "[fuse]") {
  for (int64_t first : {32, 36}) {
    Graph g;
    const NodeId y = depthwise_of_join(g, first, 60);
    CHECK(layout_of(fused(g, y), {1, first + 60, 12, 13}).block_axis == 1);
  }
}

TEST_CASE("parts of a join that begin within a block are written there", "[fuse]") {
  RandomGraph random;
  Random draw(3);
  const NodeId y = depthwise_of_join(random.graph, 36, 21);
  random.graph.add_output("y", y);
  random.inputs.push_back(random_tensor(draw, {1, 12, 13, 64}));
  random.tolerance.assign(random.graph.size(), 1e-4);
  CHECK(check_kernels(random, *find_target("native")) == "");
}

TEST_CASE("what is joined for a convolution of all channels is blocked by them",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 20, 21});
  NodeId z = g.add_input("z", DType::F32, {1, 64, 20, 21});
  NodeId joined = concat(g, {map(g, Op::Exp, {x}), map(g, Op::Abs, {z})}, 1);
  const FusedGraph f = fused(g, convolution(g, joined, 48), true);
  CHECK(layout_of(f, {1, 96, 20, 21}).block_axis == 1);
}

// Groups of 12 channels, of which each has its group's mean: no kernel takes a quotient
// of the channel for it.
TEST_CASE("numbers of groups are repeated in memory for the channels", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 30, 30});
  NodeId c = convolution(g, x, 96);
  NodeId by_channel = reduce(g, Op::ReduceSum, c, {2, 3});
  NodeId groups = reduce(g, Op::ReduceSum, reshape(g, by_channel, {1, 8, 12}), {2});
  NodeId repeated = reshape(g, expand(g, groups, {1, 8, 12}), {1, 96, 1, 1});
  NodeId y = map(g, Op::Exp, {broadcast_map(g, Op::Sub, {c, repeated})});
  const FusedGraph f = fused(g, convolution(g, y, 32));
  for (const ScheduledKernel& k : f.kernels)
    for (const Expr& e : k.exprs) {
      const bool quotient = std::ranges::any_of(e.index.terms, [&](const auto& term) {
        return k.indices.term(term.first).kind == Term::Kind::Div;
      });
      if (quotient)
        CHECK(element_count(f.buffers[k.arguments[e.argument].id].shape) < 96);
    }
}

// Row i of the scores moves by i, as a pad and two reshapes of Transformer-XL's say.
TEST_CASE("rows that a reshape shifts are read at affine places", "[fuse]") {
  constexpr int64_t kRows = 20;
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {3, kRows, 2 * kRows - 1});
  NodeId padded = pad(g, x, {0, 0, 1}, {0, 0, 0}, 0);
  NodeId rows = reshape(g, padded, {3, 2 * kRows, kRows});
  rows = slice(g, rows, {0, 1, 0}, {1, 1, 1}, {3, 2 * kRows - 1, kRows});
  rows = reshape(g, rows, {3, kRows, 2 * kRows - 1});
  NodeId shifted = slice(g, rows, {0, 0, 0}, {1, 1, 1}, {3, kRows, kRows});
  const FusedGraph f = fused(g, map(g, Op::Exp, {shifted}));
  REQUIRE(f.kernels.size() == 1);
  check_loads_are_vectors(f.kernels[0]);
}

// Scores of keys as Strassen's form leaves them: even and odd rows lie apart, and so do
// the first two and the last two of four heads.
TEST_CASE("keys that lie in pieces are joined, so that scores are written as rows",
          "[fuse]") {
  constexpr int64_t kRows = 75, kHeads = 4, kEach = 32, kAll = kHeads * kEach;
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 2, kRows, 3 * kAll / 2});
  NodeId whole = map(g, Op::Exp, {x});
  NodeId rows =
      reshape(g, permute(g, whole, {2, 1, 0, 3}), {2 * kRows, 3, kHeads, kEach});
  auto part = [&](int64_t which) {
    NodeId one =
        slice(g, rows, {0, which, 0, 0}, {1, 1, 1, 1}, {2 * kRows, 1, kHeads, kEach});
    return permute(g, reshape(g, one, {2 * kRows, kHeads, kEach}), {1, 0, 2});
  };
  NodeId queries = map(g, Op::Neg, {part(0)});
  NodeId scores = matmul(g, queries, permute(g, part(1), {0, 2, 1}));
  NodeId weights =
      broadcast_map(g, Op::Sub, {scores, reduce(g, Op::ReduceMax, scores, {2})});
  const FusedGraph f = fused(g, matmul(g, weights, part(2)));
  const auto product = std::ranges::find_if(f.kernels, [&](const ScheduledKernel& k) {
    return k.stages.size() == 2 && k.stages[0].op == Op::ReduceSum &&
           k.indices.extent(k.loops.inner[0].back()) == kEach;
  });
  REQUIRE(product != f.kernels.end());
  int64_t step = 0;
  REQUIRE(product->has_lane_axis());
  CHECK(product->indices.affine_in(product->stages[1].index, *product->loops.lane, step));
  CHECK(step == 1);
}

// The channels of a sum, less their mean, as tokens.
TEST_CASE("a picture that is normalised into tokens has its channels in lanes",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 64, 12, 13});
  NodeId y = g.add_input("y", DType::F32, {1, 64, 12, 13});
  NodeId picture = map(g, Op::Exp, {map(g, Op::Add, {x, y})});
  NodeId tokens = permute(g, reshape(g, picture, {1, 64, 156}), {0, 2, 1});
  NodeId centred =
      broadcast_map(g, Op::Sub, {tokens, reduce(g, Op::ReduceSum, tokens, {2})});
  g.add_output("picture", map(g, Op::Neg, {picture}));
  const FusedGraph f = fused(g, matmul(g, centred, known(g, {64, 64})));
  CHECK(std::ranges::any_of(f.buffers, [](const Buffer& b) {
    return b.shape == Shape{1, 64, 12, 13} && b.layout.block_axis == 1;
  }));
  for (const ScheduledKernel& k : f.kernels)
    if (k.stages.size() > 1 && k.stages[0].kind == StageKind::Reduce)
      check_loads_are_vectors(k);
}
