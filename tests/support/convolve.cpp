#include "tests/support/convolve.h"

namespace svod::test {

NodeId convolve(Graph& g, NodeId x, const Tensor& weights, int64_t low,
                std::array<int64_t, 2> strides) {
  const int64_t outputs = weights.shape[0], inputs = weights.shape[1];
  const int64_t rows = weights.shape[2], columns = weights.shape[3];
  x = pad(g, x, {0, 0, rows > 1 ? low : 0, columns > 1 ? low : 0},
          {0, 0, rows > 1, columns > 1}, 0);
  x = window(g, window(g, x, 2, rows, strides[0], 1), 3, columns, strides[1], 1);
  const Shape p = g[x].shape;
  const Shape full = {p[0], outputs, p[2], p[3], inputs, rows, columns};
  Shape of_x = full, of_w = {1, outputs, 1, 1, inputs, rows, columns};
  of_x[1] = 1;
  x = reshape(g, permute(g, x, {0, 2, 3, 1, 4, 5}), of_x);
  NodeId w = weight(g, DType::F32, of_w, g.add_blob(weights.bytes));
  NodeId product = map(g, Op::Mul, {expand(g, x, full), expand(g, w, full)});
  return reshape(g, reduce(g, Op::ReduceSum, product, {4, 5, 6}),
                 {p[0], outputs, p[2], p[3]});
}

} // namespace svod::test
