// A small matrix times one axis of a tensor, from the nodes that a contraction has.
#include "compiler/select/forms/transform.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <numeric>

namespace svod::select {

NodeId transform(Algorithms& out, const Matrix& matrix, NodeId x, size_t axis,
                 bool unroll) {
  Graph& g = out.graph;
  std::vector<float> values(matrix.values.begin(), matrix.values.end());
  const Shape shape = g[x].shape;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Shape full = shape, unit(shape.size() + 1, 1), result = shape;
  full.insert(full.begin() + at, matrix.rows);
  unit[axis] = matrix.rows, unit[axis + 1] = matrix.columns;
  result[axis] = matrix.rows;
  NodeId a = expand(g, unsqueeze(g, x, at), full);
  NodeId m = expand(g, tensor_f32(g, unit, values), full);
  NodeId sum = reduce(g, Op::ReduceSum, map(g, Op::Mul, {a, m}), {at + 1});
  if (unroll) out.sums.unrolled.insert(sum);
  return reshape(g, sum, result);
}

void keep_result(Algorithms& out, NodeId transformed) {
  out.results.insert(out.graph[transformed].inputs[0]);
}

} // namespace svod::select
