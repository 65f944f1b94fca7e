#include "tests/support/convolve.h"

namespace svod::test {

// `filters` has axes of extent 1 for the picture's positions.
static NodeId correlate(Graph& g, NodeId x, NodeId filters, int64_t low,
                        std::array<int64_t, 2> strides) {
  const Shape of_w = g[filters].shape;
  const int64_t outputs = of_w[1], rows = of_w[5], columns = of_w[6];
  x = pad(g, x, {0, 0, rows > 1 ? low : 0, columns > 1 ? low : 0},
          {0, 0, rows > 1, columns > 1}, 0);
  x = window(g, window(g, x, 2, rows, strides[0], 1), 3, columns, strides[1], 1);
  const Shape p = g[x].shape;
  const Shape full = {p[0], outputs, p[2], p[3], of_w[4], rows, columns};
  Shape of_x = full;
  of_x[1] = 1;
  x = reshape(g, permute(g, x, {0, 2, 3, 1, 4, 5}), of_x);
  NodeId product = map(g, Op::Mul, {expand(g, x, full), expand(g, filters, full)});
  return reshape(g, reduce(g, Op::ReduceSum, product, {4, 5, 6}),
                 {p[0], outputs, p[2], p[3]});
}

static Shape beside_positions(const Shape& filters) {
  return {1, filters[0], 1, 1, filters[1], filters[2], filters[3]};
}

NodeId convolve(Graph& g, NodeId x, const Tensor& weights, int64_t low,
                std::array<int64_t, 2> strides) {
  const NodeId w =
      weight(g, DType::F32, beside_positions(weights.shape), g.add_blob(weights.bytes));
  return correlate(g, x, w, low, strides);
}

NodeId convolve(Graph& g, NodeId x, NodeId filters, int64_t low,
                std::array<int64_t, 2> strides) {
  return correlate(g, x, reshape(g, filters, beside_positions(g[filters].shape)), low,
                   strides);
}

} // namespace svod::test
