#include "tests/support/known_product.h"

#include "compiler/ir/build.h"

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

} // namespace svod::test
