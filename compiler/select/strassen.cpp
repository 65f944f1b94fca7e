// A matrix product of which each operand is cut into two by two blocks: seven products of
// sums of blocks, and sums of these. Rows are cut into even and odd ones, so that a few
// rows of the result need the same few rows of the input and kernels may run part by
// part; the other two axes are cut in the middle, where vectors stay whole.
#include "compiler/select/strassen.h"

#include "compiler/ir/build.h"

#include <algorithm>

namespace svod::select {

const StrassenMatrices& strassen_matrices() {
  static const StrassenMatrices kMatrices = {{7, 4, {1,  0, 0, 1, //
                                                     0,  0, 1, 1, //
                                                     1,  0, 0, 0, //
                                                     0,  0, 0, 1, //
                                                     1,  1, 0, 0, //
                                                     -1, 0, 1, 0, //
                                                     0,  1, 0, -1}},
                                             {7, 4, {1,  0, 0, 1,  //
                                                     1,  0, 0, 0,  //
                                                     0,  1, 0, -1, //
                                                     -1, 0, 1, 0,  //
                                                     0,  0, 0, 1,  //
                                                     1,  1, 0, 0,  //
                                                     0,  0, 1, 1}},
                                             {4, 7, {1, 0,  0, 1, -1, 0, 1, //
                                                     0, 0,  1, 0, 1,  0, 0, //
                                                     0, 1,  0, 1, 0,  0, 0, //
                                                     1, -1, 1, 0, 0,  1, 0}}};
  return kMatrices;
}

// Whether every element of the node is read from another element of what is computed.
static bool reads_once(const Graph& g, NodeId n) {
  for (; is_view(g[n].op); n = g[n].inputs[0])
    if (g[n].op == Op::Expand || (g[n].op == Op::Window && g[n].payload[1] != 1))
      return false;
  return true;
}

std::optional<MatrixProduct> match_product(const Graph& g, NodeId reduce,
                                           const std::vector<bool>& known,
                                           int64_t lanes) {
  const Node& r = g[reduce];
  if (r.op != Op::ReduceSum || r.dtype != DType::F32) return std::nullopt;
  const Node& product = g[r.inputs[0]];
  if (product.op != Op::Mul) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    MatrixProduct p;
    p.input = without_expand(g, product.inputs[1 - i]);
    p.weight = without_expand(g, product.inputs[i]);
    p.full = product.shape;
    if (known[p.input] || !known[p.weight] || !reads_once(g, p.input)) continue;
    const Shape &x = g[p.input].shape, &w = g[p.weight].shape;
    std::vector<size_t> rows, columns, inner;
    bool plain = true;
    for (size_t d = 0; d < p.full.size(); ++d) {
      const bool summed = std::ranges::count(r.payload, int64_t(d)) != 0;
      if (p.full[d] == 1) continue;
      if (summed)
        inner.push_back(d);
      else if (w[d] == 1)
        rows.push_back(d), p.rows *= p.full[d];
      else if (x[d] == 1)
        columns.push_back(d);
      plain = plain && (summed ? x[d] != 1 && w[d] != 1 : x[d] == 1 || w[d] == 1);
    }
    if (!plain || rows.empty() || columns.size() != 1 || inner.size() != 1) continue;
    p.column = columns[0], p.inner = inner[0];
    if (p.full[p.column] % (2 * lanes) != 0 || p.full[p.inner] % (2 * lanes) != 0)
      continue;
    auto even = std::ranges::find_if(rows, [&](size_t d) { return p.full[d] % 2 == 0; });
    p.row =
        even != rows.end()
            ? *even
            : *std::ranges::max_element(rows, {}, [&](size_t d) { return p.full[d]; });
    return p;
  }
  return std::nullopt;
}

// [.., a, .., b, ..] -> [4, .., a / 2, .., b / 2, ..]: the block is 2 * half of a + half
// of b. The halves of `even_odd` lie next to each other.
static NodeId blocks(Graph& g, NodeId x, size_t a, size_t b, bool even_odd) {
  const Shape shape = g[x].shape;
  Shape cut, result = {4};
  std::vector<int64_t> perm(2);
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto at = static_cast<int64_t>(cut.size());
    if (d != a && d != b) {
      cut.push_back(shape[d]);
      perm.push_back(at);
      result.push_back(shape[d]);
      continue;
    }
    const int64_t half = shape[d] / 2, inside = d == a && even_odd;
    if (inside)
      cut.insert(cut.end(), {half, 2});
    else
      cut.insert(cut.end(), {2, half});
    perm[d == a ? 0 : 1] = at + inside;
    perm.push_back(at + 1 - inside);
    result.push_back(half);
  }
  return reshape(g, permute(g, reshape(g, x, cut), perm), result);
}

// The reverse: of the result.
static NodeId joined(Graph& g, NodeId y, size_t row, size_t column) {
  Shape cut = g[y].shape;
  cut.erase(cut.begin());
  Shape result = cut;
  cut.insert(cut.begin(), {2, 2});
  std::vector<int64_t> perm;
  for (size_t d = 0; d < result.size(); ++d) {
    const auto at = static_cast<int64_t>(d + 2);
    if (d == row)
      perm.insert(perm.end(), {at, 0});
    else if (d == column)
      perm.insert(perm.end(), {1, at});
    else
      perm.push_back(at);
    if (d == row || d == column) result[d] *= 2;
  }
  return reshape(g, permute(g, reshape(g, y, cut), perm), result);
}

// Row by row the seven blocks of it; `channel` takes the place of the result's columns.
static Layout by_rows(const MatrixProduct& p, size_t rank, size_t channel,
                      int64_t lanes) {
  Layout layout = blocked(rank, static_cast<int64_t>(channel + 1), lanes);
  layout.order.clear();
  auto add = [&](size_t axis) { layout.order.push_back(static_cast<int64_t>(axis)); };
  for (size_t d = 0; d < p.row; ++d)
    if (d != p.column && d != p.inner) add(d + 1);
  add(p.row + 1);
  add(0);
  for (size_t d = 0; d + 1 < rank; ++d) {
    if (d == p.column) add(channel + 1);
    if (d > p.row && d != p.column && d != p.inner) add(d + 1);
  }
  add((channel == p.inner ? p.column : p.inner) + 1); // extent 1
  return layout;
}

NodeId strassen(Algorithms& out, const MatrixProduct& p, NodeId input, NodeId weight,
                int64_t lanes) {
  Graph& g = out.graph;
  const StrassenMatrices& m = strassen_matrices();
  const size_t rank = p.full.size();
  Shape full = p.full;
  if (full[p.row] % 2 != 0) {
    Shape high(rank, 0);
    high[p.row] = 1;
    ++full[p.row];
    input = pad(g, input, Shape(rank, 0), high, 0);
  }
  for (size_t d : {p.row, p.column, p.inner}) full[d] /= 2;
  full.insert(full.begin(), 7);
  NodeId v = transform(out, m.input, blocks(g, input, p.row, p.inner, true), 0, true);
  out.stored.insert(v);
  out.layouts[v] = by_rows(p, rank + 1, p.inner, lanes);
  NodeId u =
      transform(out, m.weight, blocks(g, weight, p.inner, p.column, false), 0, false);
  NodeId product = map(g, Op::Mul, {expand(g, v, full), expand(g, u, full)});
  NodeId sums = reduce(g, Op::ReduceSum, product, {static_cast<int64_t>(p.inner + 1)});
  out.stored.insert(sums);
  out.layouts[sums] = by_rows(p, rank + 1, p.column, lanes);
  NodeId y = transform(out, m.output, sums, 0, true);
  keep_result(out, y);
  y = joined(g, y, p.row, p.column);
  Shape shape = p.full;
  shape[p.inner] = 1;
  ++out.strassen;
  y = slice(g, y, Shape(rank, 0), Shape(rank, 1), shape);
  // A convolution's channels.
  if (p.column == 1 && p.row > 1) out.layouts[y] = blocked(rank, 1, lanes);
  return y;
}

} // namespace svod::select
