// What current exporters write, and how it lies in memory: heads of known queries,
// several pictures, parts of joins that begin within a block, elements picked through
// views.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/optimize/choose.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/sweep.h"

#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/import_model.h"
#include "tests/support/random_tensor.h"
#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

NodeId known(Graph& g, const Shape& shape) {
  Random draw(5);
  const Tensor t = random_tensor(draw, shape);
  return weight(g, DType::F32, shape, g.add_blob(t.bytes));
}

FusedGraph fused(Graph& g, NodeId result, bool direct_only = false) {
  g.add_output("y", result);
  FusedGraph f = fuse(rewrite::simplify(g), *find_target("native"), direct_only);
  UNSCOPED_INFO(print(f));
  return f;
}

// What the kernels compute is what the evaluator does.
void check(Graph& g, NodeId result, const std::vector<Shape>& inputs) {
  RandomGraph random;
  random.graph = g;
  random.graph.add_output("y", result);
  Random draw(3);
  for (const Shape& shape : inputs) random.inputs.push_back(random_tensor(draw, shape));
  random.tolerance.assign(random.graph.size(), 1e-4);
  CHECK(check_kernels(random, *find_target("native")) == "");
}

// Windows of 3 x 3 over the last two axes of [1,C,H,W].
NodeId windows(Graph& g, NodeId x) {
  return window(g, window(g, x, 2, 3, 1, 1), 3, 3, 1, 1);
}

// [1,C,H,W] -> [1,M,H-2,W-2]
NodeId convolution(Graph& g, NodeId x, int64_t results) {
  NodeId seen = unsqueeze(g, permute(g, windows(g, x), {0, 2, 3, 1, 4, 5}), 1);
  NodeId weights = known(g, {1, results, 1, 1, g[seen].shape[4], 3, 3});
  NodeId product = broadcast_map(g, Op::Mul, {seen, weights});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5, 6}), {4, 5, 6});
}

// Two results, the second of which has another reader and so is copied into their join.
NodeId joined(Graph& g, int64_t first, int64_t second) {
  NodeId x = g.add_input("x", DType::F32, {1, 16, 11, 12});
  NodeId a = convolution(g, x, first), kept = convolution(g, x, second);
  g.add_output("kept", convolution(g, kept, 16));
  NodeId weights = known(g, {1, first + second, 1, 1, 3, 3});
  NodeId product =
      broadcast_map(g, Op::Mul, {windows(g, concat(g, {a, kept}, 1)), weights});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
}

} // namespace

TEST_CASE("heads of known queries are no channels", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 40, 96});
  NodeId keys = permute(g, reshape(g, matmul(g, x, known(g, {96, 96})), {1, 40, 8, 12}),
                        {0, 2, 3, 1});
  NodeId scores = matmul(g, known(g, {1, 8, 24, 12}), keys);
  const FusedGraph f = fused(g, map(g, Op::Exp, {scores}));
  for (const Buffer& b : f.buffers)
    CHECK((b.shape.size() < 2 || b.shape[1] != 8 || b.layout.block_axis != 1));
}

TEST_CASE("a fast form of several pictures keeps its channels in lanes", "[fuse]") {
  for (const Shape& shape : {Shape{2, 128, 512}, Shape{2, 128, 24, 20}}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, shape);
    Shape rest = shape, ones(shape.size() + 1, 1);
    rest.insert(rest.begin() + 1, 1);
    ones[1] = 512, ones[2] = 128;
    NodeId product = broadcast_map(
        g, Op::Mul, {reshape(g, map(g, Op::Exp, {x}), rest), known(g, ones)});
    NodeId y = squeeze_axes(g, reduce(g, Op::ReduceSum, product, {2}), {2});
    Shape result = shape;
    result[1] = 512;
    std::vector<int64_t> positions;
    for (size_t axis = 2; axis < shape.size(); ++axis)
      positions.push_back(static_cast<int64_t>(axis));
    const FusedGraph f = fused(g, reduce(g, Op::ReduceMax, y, positions));
    for (const ScheduledKernel& k : f.kernels) {
      if (k.stages.size() != 4) continue; // the quarters of the result
      int64_t step = 0;
      REQUIRE(k.has_lane_axis());
      for (const Stage& s : k.stages) {
        CHECK(k.indices.affine_in(s.index, *k.loops.lane, step));
        CHECK(step == 1);
      }
    }
  }
}

TEST_CASE("a gate of halves of a convolution's channels is blocked as they are",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 20, 20});
  NodeId both = convolution(g, x, 64);
  auto half = [&](int64_t first) {
    return slice(g, both, {0, first, 0, 0}, {1, 1, 1, 1}, {1, 32, 18, 18});
  };
  NodeId gate =
      map(g, Op::Mul, {map(g, Op::Tanh, {half(0)}), map(g, Op::Sigmoid, {half(32)})});
  // Two readers, neither of which takes it in.
  NodeId y = map(g, Op::Add, {convolution(g, gate, 32), convolution(g, gate, 32)});
  check(g, y, {{1, 32, 20, 20}});
  const FusedGraph f = fused(g, y, true);
  CHECK(std::ranges::any_of(f.buffers, [](const Buffer& b) {
    return b.shape == Shape{1, 32, 18, 18} && b.layout.block_axis == 1;
  }));
}

TEST_CASE("channels of a transposed convolution's phase are written as vectors",
          "[fuse]") {
  using namespace onnx_bytes;
  const std::string bytes = model(
      {{node("ConvTranspose", {"x", "w"}, {"t"},
             {ints_attribute("strides", {2, 2}), ints_attribute("pads", {1, 1, 1, 1})}),
        node("Relu", {"t"}, {"r"}),
        node("MaxPool", {"r"}, {"y"}, {ints_attribute("kernel_shape", {3, 3})})},
       {value("x", {1, 32, 8, 8})},
       {value("y", {1, 32, 14, 14})},
       {floats("w", {32, 32, 4, 4}, std::vector<float>(32 * 32 * 16, 0.5F))}});
  const import_test::Imported read = import_test::imported(bytes);
  const FusedGraph f =
      fuse(rewrite::simplify(*read.graph), *find_target("native"), false);
  INFO(print(f));
  for (const ScheduledKernel& k : f.kernels) CHECK(k.has_lane_axis());
}

TEST_CASE("a part that begins within a block is copied by vectors of what fits both",
          "[fuse][sweep]") {
  for (const auto& [first, second, lanes] :
       swept({std::tuple(40, 12, 8), std::tuple(12, 12, 4), std::tuple(24, 24, 8)}, 1)) {
    Graph g;
    const NodeId y = joined(g, first, second);
    check(g, y, {{1, 16, 11, 12}});
    const FusedGraph f = fused(g, y, true);
    CHECK(std::ranges::any_of(f.kernels, [&](const ScheduledKernel& k) {
      return k.has_lane_axis() && k.loops.lanes == lanes && k.stages.size() == 1 &&
             k.stages[0].kind == StageKind::Store;
    }));
  }
}

// Slices of one picture's channels, each padded for a depthwise convolution.
TEST_CASE("a slice that begins within a block gets its border by vectors", "[fuse]") {
  for (const auto& [channels, lanes] : {std::pair<int64_t, int>{28, 4}, {24, 8}}) {
    Graph g;
    const NodeId x = g.add_input("x", DType::F32, {1, 16, 13, 12});
    const NodeId all = convolution(g, x, 3 * channels);
    std::vector<NodeId> parts;
    for (int64_t i = 0; i < 3; ++i) {
      const NodeId part = slice_axis(g, all, 1, i * channels, channels);
      const NodeId padded = pad(g, part, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
      const NodeId products = broadcast_map(
          g, Op::Mul, {windows(g, padded), known(g, {1, channels, 1, 1, 3, 3})});
      parts.push_back(
          squeeze_axes(g, reduce(g, Op::ReduceSum, products, {4, 5}), {4, 5}));
    }
    const NodeId y = concat(g, parts, 1);
    check(g, y, {{1, 16, 13, 12}});
    const FusedGraph f = fused(g, y, true);
    const auto copies = std::ranges::count_if(f.kernels, [&](const ScheduledKernel& k) {
      return k.has_lane_axis() && k.loops.lanes == lanes && k.stages.size() == 1 &&
             k.stages[0].kind == StageKind::Store;
    });
    CHECK(copies >= 1);
  }
}

TEST_CASE("a fast form's result is stored before its channels are taken apart",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, 26, 26});
  NodeId y = reshape(g, convolution(g, x, 128), {1, 32, 2, 2, 24, 24});
  y = reshape(g, permute(g, y, {0, 1, 4, 2, 5, 3}), {1, 32, 48, 48});
  y = convolution(g, map(g, Op::Tanh, {y}), 32);
  check(g, y, {{1, 32, 26, 26}});
  // A tile of results that is written out has a stage for each.
  for (const ScheduledKernel& k : fused(g, y).kernels)
    CHECK((k.stages.size() < 9 || k.has_lane_axis()));
}

// A graph whose parameters are inputs, as an exporter of functions writes it.
TEST_CASE("a flattened picture is stored in the order of a matrix that is an input",
          "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 16, 20, 20});
  NodeId w = g.add_input("w", DType::F32, {64, 32 * 18 * 18});
  NodeId row = reshape(g, convolution(g, x, 32), {1, 32 * 18 * 18});
  NodeId y = matmul(g, row, permute(g, w, {1, 0}));
  check(g, y, {{1, 16, 20, 20}, {64, 32 * 18 * 18}});
  const FusedGraph f = fused(g, y);
  const ScheduledKernel& k = f.kernels.back();
  REQUIRE(k.has_lane_axis());
  for (ExprId load : loads_below(k, k.stages[0].value))
    CHECK(k.indices.coefficient(k.exprs[load].index, *k.loops.lane) == 1);
}

// YOLOX and older forms of YOLOv5 begin with it.
TEST_CASE("quarters of a picture are joined row by row and blocked as a whole",
          "[fuse]") {
  for (int64_t size : {48, 96}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, 3, 2 * size, 2 * size});
    std::vector<NodeId> quarters;
    for (int64_t column : {0, 1})
      for (int64_t row : {0, 1})
        quarters.push_back(
            slice(g, x, {0, 0, row, column}, {1, 1, 2, 2}, {1, 3, size, size}));
    NodeId padded = pad(g, concat(g, quarters, 1), {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
    NodeId y = convolution(g, padded, 16);
    check(g, y, {{1, 3, 2 * size, 2 * size}});
    const FusedGraph f = fused(g, y);
    INFO(print(f));
    int joins = 0, copies = 0;
    for (const Buffer& b : f.buffers) {
      if (b.shape.size() != 4 || b.shape[1] != 12) continue;
      const bool whole = b.shape[2] == size;
      CHECK(b.layout.block_axis == (whole ? -1 : 1));
      ++(whole ? joins : copies);
    }
    CHECK(joins == 1);
    CHECK(copies == 1);
  }
}

// The curves of Zero-DCE: each slice of three channels bends what the ones before made.
TEST_CASE("slices of a fast form's channels are cut from what is stored", "[fuse]") {
  constexpr int64_t kSlices = 8, kColours = 3, kSize = 24;
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 32, kSize + 2, kSize + 2});
  NodeId curves = map(g, Op::Tanh, {convolution(g, x, kSlices * kColours)});
  const Shape picture = {1, kColours, kSize, kSize};
  NodeId y = map(g, Op::Sigmoid, {slice(g, x, {0, 0, 1, 1}, {1, 1, 1, 1}, picture)});
  for (int64_t i = 0; i < kSlices; ++i) {
    NodeId curve = slice(g, curves, {0, kColours * i, 0, 0}, {1, 1, 1, 1}, picture);
    NodeId bent = map(g, Op::Sub, {map(g, Op::Mul, {y, y}), y});
    y = map(g, Op::Add, {y, map(g, Op::Mul, {curve, bent})});
  }
  check(g, y, {{1, 32, kSize + 2, kSize + 2}});
  // The tile of a form has 36 products, and those of all slices were read apart.
  for (const ScheduledKernel& k : fused(g, y).kernels)
    CHECK(std::ranges::count(k.exprs, Expr::Kind::Load, &Expr::kind) <= 2 * 36);
}

TEST_CASE("rows that are added where their number says have one number each", "[fuse]") {
  // A number that is a sum of the run, which no scatter takes in, and what is made of it.
  for (const bool mapped : {false, true}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {60, 24});
    NodeId scores = g.add_input("scores", DType::F32, {60, 7});
    NodeId number = arg_reduce(g, Op::ArgMax, scores, 1, false);
    if (mapped) number = map(g, Op::Min, {number, constant(g, DType::I64, {60, 1}, 5)});
    NodeId zeros = constant(g, DType::F32, {7, 24}, 0);
    NodeId rows = scatter(g, zeros, expand(g, number, {60, 24}), map(g, Op::Exp, {x}), 0,
                          Combiner::Add);
    NodeId y = map(g, Op::Tanh, {rows});
    check(g, y, {{60, 24}, {60, 7}});
    for (const Buffer& b : fused(g, y).buffers)
      CHECK((b.dtype != DType::I64 || element_count(b.shape) == 60));
  }
}

TEST_CASE("elements picked through views that divide are picked from a copy", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 24, 40});
  NodeId y = pad(g, permute(g, map(g, Op::Exp, {x}), {0, 2, 1}), {0, 0, 3}, {0, 0, 5}, 0);
  const int64_t count = 40 * 32;
  NodeId flat = reshape(g, y, {count});
  std::vector<double> where(600);
  for (size_t i = 0; i < where.size(); ++i) where[i] = static_cast<double>(i * 31 % 1280);
  const Tensor positions = make_tensor(DType::I64, {600}, where);
  NodeId index = weight(g, DType::I64, {600}, g.add_blob(positions.bytes));
  const NodeId picked = gather(g, flat, index, 0);
  check(g, picked, {{1, 24, 40}});
  const FusedGraph f = fused(g, picked);
  for (const ScheduledKernel& k : f.kernels)
    for (const Expr& e : k.exprs)
      for (const auto& [term, coefficient] : e.index.terms)
        CHECK((k.indices.term(term).kind != Term::Kind::Div ||
               !k.indices.has_dynamic(k.indices.term(term).of)));
}

TEST_CASE("channels of groups that are normalised into tokens lie in lanes", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 128, 48});
  NodeId grouped = reshape(g, x, {4, 1, 32, 48});
  NodeId product = broadcast_map(g, Op::Mul, {grouped, known(g, {4, 32, 32, 1})});
  NodeId y = reshape(g, reduce(g, Op::ReduceSum, product, {2}), {1, 128, 48});
  NodeId tokens = permute(g, y, {0, 2, 1});
  NodeId centred =
      broadcast_map(g, Op::Sub, {tokens, reduce(g, Op::ReduceSum, tokens, {2})});
  const FusedGraph f = fused(g, centred);
  for (const ScheduledKernel& k : f.kernels) {
    if (k.stages.size() < 2 || !k.has_lane_axis()) continue;
    int64_t step = 0;
    for (ExprId load : loads_below(k, k.stages[0].value))
      if (k.indices.affine_in(k.exprs[load].index, *k.loops.lane, step)) CHECK(step <= 1);
  }
}

// A layer between linear ones, as segmentation transformers have it.
TEST_CASE("tokens that a depthwise layer mixes keep their channels in lanes", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 256, 32});
  NodeId wide = matmul(g, x, known(g, {32, 128}));
  NodeId picture = reshape(g, permute(g, wide, {0, 2, 1}), {1, 128, 16, 16});
  NodeId padded = pad(g, picture, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  NodeId product =
      broadcast_map(g, Op::Mul, {windows(g, padded), known(g, {1, 128, 1, 1, 3, 3})});
  NodeId sum = squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5});
  NodeId tokens = permute(g, reshape(g, sum, {1, 128, 256}), {0, 2, 1});
  NodeId y = matmul(g, map(g, Op::Gelu, {tokens}), known(g, {128, 32}));
  check(g, y, {{1, 256, 32}});
  const FusedGraph f = fused(g, y);
  for (const ScheduledKernel& k : f.kernels) {
    const Stage& last = k.stages.back();
    int64_t step = 0;
    if (k.has_lane_axis() && k.indices.affine_in(last.index, *k.loops.lane, step))
      CHECK(step <= 1);
  }
}
