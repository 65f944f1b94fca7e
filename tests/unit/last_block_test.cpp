// Channels come in blocks, of which the last may be cut: reductions end where the
// channels do, and compute the same.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/sweep.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

NodeId weights(Graph& g, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = double(i % 13) / 16 - 0.375;
  Tensor t = make_tensor(DType::F32, shape, values);
  return weight(g, DType::F32, shape, g.add_blob(std::move(t.bytes)));
}

NodeId pointwise(Graph& g, NodeId x, int64_t results) {
  NodeId each = broadcast_map(
      g, Op::Mul, {unsqueeze(g, x, 1), weights(g, {1, results, g[x].shape[1], 1, 1})});
  return squeeze_axes(g, reduce(g, Op::ReduceSum, each, {2}), {2});
}

// [1,8,17,19] -> `channels`, in blocks -> 64
RandomGraph products_over(int64_t channels) {
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{1, 8, 17, 19};
  Tensor values = make_tensor(DType::F32, shape, std::vector<double>(8 * 323));
  auto* numbers = reinterpret_cast<float*>(values.bytes.data());
  for (int i = 0; i < 8 * 323; ++i) numbers[i] = float(i * 7919 % 101) / 32 - 1;
  out.inputs.push_back(std::move(values));
  const NodeId made =
      map(g, Op::Abs, {pointwise(g, g.add_input("x", DType::F32, shape), channels)});
  g.add_output("y", map(g, Op::Abs, {pointwise(g, made, 64)}));
  out.tolerance.assign(g.size(), 1e-4);
  return out;
}

bool ends_early(const RandomGraph& random) {
  const Target target = *find_target("x86-64-v4");
  bool found = false;
  for (const ScheduledKernel& k :
       fuse(rewrite::simplify(random.graph), target, true).kernels)
    found |= test::text_for(k, target.levels[0]).find(") * 4; ++") != std::string::npos;
  return found;
}

} // namespace

TEST_CASE("sums over blocks of channels end with the channels", "[kernels][sweep]") {
  CHECK(ends_early(products_over(24)));
  CHECK(ends_early(products_over(58)));
  CHECK(!ends_early(products_over(32)));
  CHECK(!ends_early(products_over(62))); // in groups of four there is none to spare
  for (int64_t channels : swept({24, 58, 17, 32, 42, 62}, 3))
    for (const char* level : swept({"x86-64-v3", "x86-64-v4", "x86-64-v2"}, 2))
      if (const auto target = target_for({level})) {
        CAPTURE(channels, level);
        CHECK(check_kernels(products_over(channels), *target) == "");
      }
}
