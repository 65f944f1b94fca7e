// Activations behind a tile: a loop computes them where registers do not hold them, and
// the results are the same.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

Tensor numbers(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = double(i * 7919 % 101) / 64 - 1;
  return make_tensor(DType::F32, shape, values);
}

// A product of matrices, of which each element y becomes exp(-y) + tanh(2 y).
RandomGraph activated() {
  RandomGraph out;
  Graph& g = out.graph;
  const NodeId x = g.add_input("x", DType::F32, {37, 24});
  out.inputs.push_back(numbers({37, 24}));
  Tensor w = numbers({1, 24, 48});
  const NodeId each = broadcast_map(
      g, Op::Mul,
      {unsqueeze(g, x, 2), weight(g, DType::F32, w.shape, g.add_blob(w.bytes))});
  const NodeId y = squeeze_axes(g, reduce(g, Op::ReduceSum, each, {1}), {1});
  const NodeId twice = map(g, Op::Add, {y, y});
  g.add_output("z",
               map(g, Op::Add,
                   {map(g, Op::Exp, {map(g, Op::Neg, {y})}), map(g, Op::Tanh, {twice})}));
  out.tolerance.assign(g.size(), 1e-3);
  return out;
}

// The text for a level of the kernel that has the activation, tuned for one row.
std::string text_of(const RandomGraph& random, const char* level) {
  const Target all = tuned_for(default_target(), "znver4");
  const auto at = std::ranges::find(all.levels, std::string(level), &Level::name);
  REQUIRE(at != all.levels.end());
  for (const ScheduledKernel& k :
       fuse(rewrite::simplify(random.graph), all, true).kernels)
    if (std::string text = text_for(k, *at); text.find("op_exp_") != std::string::npos)
      return text;
  return "";
}

} // namespace

TEST_CASE("activations of a tile are computed by a loop", "[fuse][kernels]") {
  if (!default_target().is_x86()) return;
  const std::string few = text_of(activated(), "x86-64-v3");
  INFO(few);
  CHECK(few.find("[n] = op_exp_vf32(") != std::string::npos);
  CHECK(few.find("[n] = op_tanh_vf32(") != std::string::npos);
  // Registers enough for the tiles of this row.
  CHECK(text_of(activated(), "x86-64-v4").find("[n] =") == std::string::npos);
}

TEST_CASE("kernels with looped values compute the same", "[kernels]") {
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    if (const auto target = target_for({level}))
      CHECK(check_kernels(activated(), *target).empty());
}
