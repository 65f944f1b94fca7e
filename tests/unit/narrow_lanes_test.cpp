// Windows of vectors that take several registers each: the kernel goes through a block of
// channels one register at a time, and computes the same.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/sweep.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

NodeId known(Graph& g, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = double(i % 13) / 8 - 0.75;
  Tensor t = make_tensor(DType::F32, shape, values);
  return weight(g, DType::F32, shape, g.add_blob(std::move(t.bytes)));
}

// A 1x1 convolution, whose result is blocked, and a filter of each of its channels.
RandomGraph depthwise(int64_t channels, int64_t size, int64_t step) {
  RandomGraph out;
  Graph& g = out.graph;
  NodeId x = g.add_input("x", DType::F32, {1, 8, 17, 19});
  Tensor values = make_tensor(DType::F32, {1, 8, 17, 19}, std::vector<double>(8 * 323));
  auto* numbers = reinterpret_cast<float*>(values.bytes.data());
  for (int i = 0; i < 8 * 323; ++i) numbers[i] = float(i * 7919 % 101) / 32 - 1;
  out.inputs.push_back(std::move(values));
  NodeId each =
      broadcast_map(g, Op::Mul, {unsqueeze(g, x, 1), known(g, {1, channels, 8, 1, 1})});
  NodeId made = squeeze_axes(g, reduce(g, Op::ReduceSum, each, {2}), {2});
  made = map(g, Op::Abs, {made});
  NodeId wide = pad(g, made, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  NodeId seen = window(g, window(g, wide, 2, size, step, 1), 3, size, step, 1);
  NodeId product =
      broadcast_map(g, Op::Mul, {seen, known(g, {1, channels, 1, 1, size, size})});
  g.add_output("y", squeeze_axes(g, reduce(g, Op::ReduceSum, product, {4, 5}), {4, 5}));
  out.tolerance.assign(g.size(), 1e-4);
  return out;
}

// How many kernels go by shorter vectors, and their lanes.
std::vector<int> narrowed(const RandomGraph& random, const char* level) {
  const Target all = default_target();
  const auto at = std::ranges::find(all.levels, std::string(level), &Level::name);
  REQUIRE(at != all.levels.end());
  std::vector<int> lanes;
  for (const ScheduledKernel& k :
       fuse(rewrite::simplify(random.graph), all, true).kernels)
    if (const LevelSchedule how = optimize::schedule_kernel(k, *at);
        how.lanes != k.loops.lanes) {
      lanes.push_back(how.lanes);
      CHECK(tile_points(how.tile) > 2);
    }
  return lanes;
}

} // namespace

TEST_CASE("windows of long vectors go one register at a time", "[fuse][kernels]") {
  CHECK(narrowed(depthwise(32, 3, 1), "x86-64-v3") == std::vector<int>{8});
  CHECK(narrowed(depthwise(32, 3, 2), "x86-64-v3") == std::vector<int>{8});
  // A vector is a register, or instructions are what there is too much of.
  CHECK(narrowed(depthwise(32, 3, 1), "x86-64-v4").empty());
  CHECK(narrowed(depthwise(32, 3, 1), "x86-64-v2").empty());
  // Some lanes of the last block are none.
  CHECK(narrowed(depthwise(24, 3, 1), "x86-64-v3").empty());
}

TEST_CASE("kernels with shorter vectors compute the same", "[kernels]") {
  const auto target = target_for({"x86-64-v3"});
  if (!target) return;
  for (int64_t size : {3, 5})
    for (int64_t step : {1, 2}) {
      CAPTURE(size, step);
      CHECK(check_kernels(depthwise(32, size, step), *target) == "");
    }
}

TEST_CASE("lanes that nobody writes are not summed", "[kernels][sweep]") {
  // The longest accumulators of the last block of channels, in floats; 0: all 16.
  const std::pair<int64_t, int> wanted[] = {{24, 8}, {17, 4}, {26, 0}, {3, 4},
                                            {32, 0}, {21, 8}, {20, 4}};
  for (const char* level : swept({"x86-64-v3", "x86-64-v4", "x86-64-v2"}, 1)) {
    const auto target = target_for({level});
    if (!target) continue;
    for (auto [channels, lanes] : swept(wanted, 3)) {
      CAPTURE(level, channels);
      const RandomGraph random = depthwise(channels, 3, 1);
      for (const ScheduledKernel& k :
           fuse(rewrite::simplify(random.graph), *target, true).kernels) {
        if (k.stages.empty() || k.stages[0].kind != StageKind::Reduce) continue;
        const std::string text = text_for(k, target->levels[0]);
        for (int part : {4, 8})
          CHECK((text.find("Vector<f32, " + std::to_string(part) + "> c") !=
                 std::string::npos) == (part == lanes));
      }
      CHECK(check_kernels(random, *target) == "");
    }
  }
}
