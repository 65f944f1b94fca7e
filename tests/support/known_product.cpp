#include "tests/support/known_product.h"

#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/rewrite/simplify.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace svod::test {

Graph known_product(int64_t rows, int64_t depth, int64_t columns) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {rows, depth});
  std::vector<float> numbers;
  for (int64_t i = 0; i < depth * columns; ++i)
    numbers.push_back(static_cast<float>(i % 257));
  NodeId w = tensor_f32(g, {depth, columns}, numbers);
  const Shape full = {rows, depth, columns};
  NodeId all = map(g, Op::Mul,
                   {expand(g, reshape(g, x, {rows, depth, 1}), full),
                    expand(g, reshape(g, w, {1, depth, columns}), full)});
  g.add_output("y", reduce(g, Op::ReduceSum, all, {1}));
  return g;
}

ScheduledKernel byte_product(int64_t rows, const Shape& w, std::vector<std::byte> bytes,
                             const Target& target) {
  Graph g;
  const NodeId x = g.add_input("x", DType::I8, {rows, w[0]});
  const NodeId other = bytes.empty() ? g.add_input("w", DType::I8, w)
                                     : tensor_node(g, {DType::I8, w, std::move(bytes)});
  g.add_output("y", matmul(g, cast(g, x, DType::I32), cast(g, other, DType::I32)));
  const FusedGraph fused = fuse(rewrite::simplify(g), target);
  const auto sums = std::ranges::find_if(fused.kernels, [](const ScheduledKernel& k) {
    return !k.stages.empty() && k.stages[0].kind == StageKind::Reduce;
  });
  REQUIRE(sums != fused.kernels.end());
  return *sums;
}

} // namespace svod::test
