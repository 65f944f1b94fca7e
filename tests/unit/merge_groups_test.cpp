// Groups of few channels become sums of whole vectors, which compute the same.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/text.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/select/forms/algorithms.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

namespace {

struct Case {
  int64_t groups, inputs, outputs; // of each group
  Shape taps;                      // along one to three axes
  int64_t stride = 1, pictures = 2, size = 11;
  bool bytes = false; // as quantised networks have them, with a zero point around them
};

// As the importer writes it.
RandomGraph grouped(const Case& c) {
  Random random(11);
  RandomGraph out;
  Graph& g = out.graph;
  const size_t axes = c.taps.size();
  Shape of_x = {c.pictures, c.groups * c.inputs}, of_w = {c.groups * c.outputs, c.inputs};
  for (size_t i = 0; i < axes; ++i)
    of_x.push_back(c.size - int64_t(i)), of_w.push_back(c.taps[i]);
  const DType of_input = c.bytes ? DType::U8 : DType::F32,
              of_weight = c.bytes ? DType::I8 : DType::F32,
              of_sum = c.bytes ? DType::I32 : DType::F32;
  Tensor x = random_tensor(random, of_x, of_input),
         w = random_tensor(random, of_w, of_weight);
  NodeId y = g.add_input("x", of_input, of_x);
  Shape low(axes + 2, 1), split = {c.pictures, c.groups, c.inputs}, of_weights;
  low[0] = low[1] = 0;
  y = pad(g, y, low, low, c.bytes ? 3 : 0);
  for (size_t i = 0; i < axes; ++i)
    y = window(g, y, 2 + int64_t(i), c.taps[i], c.stride, 1);
  split.insert(split.end(), g[y].shape.begin() + 2, g[y].shape.end());
  // Groups, results, positions, inputs, taps.
  std::vector<int64_t> order = {0, 1}, summed = {int64_t(axes) + 3};
  for (size_t i = 0; i < axes; ++i) order.push_back(3 + int64_t(i));
  order.push_back(2);
  for (size_t i = axes; i < 2 * axes; ++i) {
    order.push_back(3 + int64_t(i));
    summed.push_back(4 + int64_t(i));
  }
  y = permute(g, reshape(g, y, split), order);
  Shape place = g[y].shape, full;
  place.insert(place.begin() + 2, 1);
  full = place;
  full[2] = c.outputs;
  of_weights = {1, c.groups, c.outputs};
  of_weights.resize(3 + axes, 1);
  of_weights.insert(of_weights.end(), of_w.begin() + 1, of_w.end());
  const NodeId known = weight(g, of_weight, of_weights, g.add_blob(w.bytes));
  const auto factor = [&](NodeId n) { return expand(g, cast(g, n, of_sum), full); };
  const NodeId products = map(g, Op::Mul, {factor(reshape(g, y, place)), factor(known)});
  Shape result = {c.pictures, c.groups * c.outputs};
  result.insert(result.end(), full.begin() + 3, full.begin() + 3 + int64_t(axes));
  g.add_output("y", reshape(g, reduce(g, Op::ReduceSum, products, summed), result));
  out.inputs.push_back(std::move(x));
  out.tolerance.assign(g.size(), 1e-4);
  return out;
}

// Groups of the sum, with how many results and inputs each, or its channels with how many
// inputs each; {} where there is none.
Shape groups_of(const Graph& g) {
  for (NodeId n : g.live_nodes()) {
    const Shape& p = g[n].shape;
    if (g[n].op == Op::Mul && p.size() == 8) return {p[1], p[2], p[5]};
    if (g[n].op == Op::Mul && p.size() == 7) return {p[1], p[4]};
  }
  return {};
}

Shape groups_chosen(const Case& c, const char* target = "x86-64-v4") {
  const Graph g = rewrite::simplify(grouped(c).graph);
  const Algorithms chosen = choose_algorithms(g, *find_target(target), false);
  REQUIRE(verify(chosen.graph).empty());
  return groups_of(chosen.graph);
}

} // namespace

TEST_CASE("lanes of groups that fill a vector share their group's channels", "[fuse]") {
  CHECK(groups_chosen({8, 4, 4, {3, 3}}) == Shape{32, 4});
  CHECK(groups_chosen({4, 8, 8, {3, 3}, 2}) == Shape{32, 8});
  CHECK(groups_chosen({8, 2, 2, {3, 3}}) == Shape{16, 2});
  // The last vector has room for another group.
  CHECK(groups_chosen({7, 8, 8, {3, 3}}) == Shape{56, 8});
  CHECK(groups_chosen({3, 4, 4, {3, 3}}) == Shape{12, 4});
  // Registers of four lanes have one group each, those of eight two or one. Elements of
  // registers are picked on x86 alone.
  CHECK(groups_chosen({8, 4, 4, {3, 3}}, "aarch64") == Shape{32, 4});
  CHECK(groups_chosen({8, 2, 2, {3, 3}}, "aarch64") == Shape{1, 16, 16});
  CHECK(groups_chosen({8, 4, 4, {3, 3}}, "aarch64-sve256") == Shape{2, 16, 16});
  CHECK(groups_chosen({8, 8, 8, {3, 3}}, "aarch64-sve256") == Shape{64, 8});
}

TEST_CASE("lanes of all levels are those of a block's groups", "[fuse][lanes]") {
  for (const char* name : {"x86-64", "x86-64-v2", "aarch64"})
    for (const Case& c : {Case{8, 4, 4, {3, 3}}, {8, 8, 8, {3, 3}}, {7, 8, 8, {3, 3}}}) {
      INFO(name << ", " << c.groups << " groups of " << c.inputs);
      const Target target = *find_target(name);
      // What leaves the model lies row by row; what is summed up lies as is best.
      Graph g = grouped(c).graph;
      g.set_output(0, reduce(g, Op::ReduceMax, g.outputs()[0].node, {2, 3}));
      const FusedGraph f = fuse(rewrite::simplify(std::move(g)), target);
      const auto kernel = std::ranges::find_if(f.kernels, shuffles_lanes);
      REQUIRE(kernel != f.kernels.end());
      for (const Level& level : target.levels) {
        const int parts = 16 * 32 / level.register_bits;
        const auto cut = cut_lanes(*kernel, std::max(1, parts));
        INFO(print(*kernel));
        REQUIRE(cut);
        CHECK((shuffles_lanes(*cut) ? level.register_bits >= 256 : true));
      }
    }
}

TEST_CASE("other groups of few channels are merged to whole vectors", "[fuse]") {
  CHECK(groups_chosen({8, 4, 8, {3, 3}}) == Shape{2, 32, 16});
  CHECK(groups_chosen({8, 8, 4, {3, 3}, 2}) == Shape{2, 16, 32});
  // Two groups are whole vectors; more than two would be too many products.
  CHECK(groups_chosen({8, 24, 24, {3, 3}}) == Shape{4, 48, 48});
  CHECK(groups_chosen({4, 20, 20, {3, 3}}) == Shape{4, 20, 20});
  // Whole vectors already; groups of one channel; no number of them is whole vectors.
  CHECK(groups_chosen({4, 16, 16, {3, 3}}) == Shape{4, 16, 16});
  CHECK(groups_chosen({32, 1, 2, {3, 3}}) == Shape{32, 2, 1});
  CHECK(groups_chosen({2, 4, 4, {3, 3}}) == Shape{2, 4, 4});
}

TEST_CASE("a last group that is lacking is one of zeros", "[fuse]") {
  CHECK(groups_chosen({7, 8, 4, {3, 3}}) == Shape{2, 16, 32});
  CHECK(groups_chosen({3, 4, 8, {3, 3}}) == Shape{1, 32, 16});
  CHECK(groups_chosen({5, 24, 24, {3, 3}}) == Shape{3, 48, 48});
  // Two of three would be zeros.
  CHECK(groups_chosen({5, 4, 4, {3, 3}}) == Shape{5, 4, 4});
}

TEST_CASE("groups of bytes are merged as others are", "[fuse]") {
  CHECK(groups_chosen({8, 4, 4, {3, 3}, 1, 1, 11, true}) == Shape{2, 16, 16});
  CHECK(groups_chosen({7, 8, 8, {3, 3}, 2, 1, 11, true}) == Shape{4, 16, 16});
}

TEST_CASE("merged groups compute what groups compute", "[fuse]") {
  for (const Case& c : {Case{8, 4, 4, {3, 3}},
                        {4, 8, 8, {5, 3}, 2},
                        {8, 2, 4, {3}},
                        {4, 24, 24, {3, 3}},
                        {4, 8, 4, {2, 3, 3}},
                        {7, 8, 8, {3, 3}, 2},
                        {3, 4, 4, {3, 3}, 1, 1},
                        {5, 24, 24, {3, 3}, 2, 1, 20},
                        {4, 8, 8, {3, 3}, 1, 1, 20, true},
                        {7, 8, 8, {3, 3}, 2, 1, 20, true}}) {
    const RandomGraph direct = grouped(c);
    const Algorithms chosen = choose_algorithms(rewrite::simplify(direct.graph),
                                                *find_target("x86-64-v4"), false);
    const Tensor want = evaluate(direct.graph, direct.inputs).outputs[0];
    const Tensor got = evaluate(chosen.graph, direct.inputs).outputs[0];
    CHECK(compare_tensors(got, want, 1e-5, 1e-5) == "");
    CHECK(check_kernels(direct, *find_target("native")) == "");
  }
}

TEST_CASE("lanes that share channels compute what groups compute",
          "[fuse][lanes][sweep]") {
  static constexpr LevelChoice kLevels[] = {
      {"native"}, {"x86-64-v3"}, {"x86-64-v2"}, {"x86-64-v4"}, {"x86-64-v3", 8}};
  static const Case kCases[] = {
      {7, 8, 8, {3, 3}, 2, 1, 20}, {8, 4, 4, {3, 3}}, {4, 8, 8, {5, 3}, 2},
      {16, 2, 2, {3, 3}},          {8, 4, 4, {3}},    {8, 8, 8, {2, 3, 3}},
      {3, 4, 4, {3, 3}, 1, 1}};
  for (const Case& c : swept(kCases, 2)) {
    INFO(c.groups << " groups of " << c.inputs);
    const RandomGraph direct = grouped(c);
    for (const LevelChoice& level : swept(kLevels, 3))
      if (const auto target = target_for(level))
        CHECK(check_kernels(direct, *target) == "");
  }
}

// Each has weights of its own, and its result's channels are those of the whole in
// blocks.
TEST_CASE("the groups of one picture are winograd's pictures", "[fuse][winograd]") {
  for (const Case& c : {Case{4, 16, 16, {3, 3}, 1, 1},
                        {2, 32, 64, {3, 3}, 1, 1},
                        {8, 4, 8, {3, 3}, 1, 1},
                        {4, 24, 24, {3, 3}, 1, 1},
                        {3, 48, 32, {5}, 1, 1, 200}}) {
    const RandomGraph direct = grouped(c);
    const Algorithms chosen = choose_algorithms(rewrite::simplify(direct.graph),
                                                *find_target("x86-64-v4"), false);
    INFO(c.groups << " groups of " << c.inputs);
    REQUIRE(chosen.winograd == 1);
    REQUIRE(verify(chosen.graph).empty());
    const Tensor want = evaluate(direct.graph, direct.inputs).outputs[0];
    const Tensor got = evaluate(chosen.graph, direct.inputs).outputs[0];
    CHECK(compare_tensors(got, want, 1e-4, 1e-4) == "");
    CHECK(check_kernels(direct, *find_target("native")) == "");
  }
  // Of strided ones the transforms take longer than their products.
  const Graph strided = rewrite::simplify(grouped({4, 16, 16, {3, 3}, 2, 1}).graph);
  CHECK(choose_algorithms(strided, *find_target("x86-64-v4"), false).winograd == 0);
}
