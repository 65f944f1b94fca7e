// A matrix product of which each operand is cut into two by two blocks: seven products of
// sums of blocks, and sums of these. Rows are cut into even and odd ones, so that a few
// rows of the result need the same few rows of the input and kernels may run part by
// part; the other two axes are cut in the middle, where vectors stay whole.
#include "compiler/select/forms/strassen.h"

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

// The operand in the rank of the product, and the contraction's axes it has. nullopt
// where it varies along a part of an axis of the product.
static std::optional<Reading> in_rank(const Graph& g, const Contraction& c,
                                      const Operand& operand) {
  Shape shape(g[c.product].shape.size(), 1);
  std::vector<size_t> own;
  for (size_t axis = 0; axis < c.axes.size(); ++axis) {
    if (!operand.varies(axis)) continue;
    own.push_back(axis);
    shape[c.axes[axis].whole] *= c.axes[axis].extent;
  }
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && shape[d] != g[c.product].shape[d]) return std::nullopt;
  return operand_in_order(g, c, operand, own, shape);
}

std::optional<MatrixProduct> match_product(const Graph& g, const Contraction& c,
                                           int64_t lanes) {
  const bool weighted = c.right().known && !c.left().known && !c.left().own_repeats;
  if (c.dtype != DType::F32 || !weighted || !c.batch.empty()) return std::nullopt;
  const auto x = in_rank(g, c, c.left()), w = in_rank(g, c, c.right());
  if (!x || !w) return std::nullopt;
  MatrixProduct p{*x, *w, g[c.product].shape};
  std::vector<size_t> rows, columns, inner;
  for (size_t d = 0; d < p.full.size(); ++d) {
    const bool of_x = x->shape[d] != 1, of_w = w->shape[d] != 1;
    if (p.full[d] == 1) continue;
    if (std::ranges::count(g[c.sum].payload, int64_t(d)) == 0)
      (of_x ? rows : columns).push_back(d);
    else if (of_x && of_w)
      inner.push_back(d);
    else
      return std::nullopt;
  }
  if (rows.empty() || columns.size() != 1 || inner.size() != 1) return std::nullopt;
  p.rows = c.count(c.rows);
  p.column = columns[0], p.inner = inner[0];
  if (p.full[p.column] % (2 * lanes) != 0 || p.full[p.inner] % (2 * lanes) != 0)
    return std::nullopt;
  // Halves of a picture lie closer to each other than pictures do.
  auto even =
      std::ranges::find_if(rows, [&](size_t d) { return d != 0 && p.full[d] % 2 == 0; });
  if (even == rows.end() && p.full[rows[0]] % 2 == 0) even = rows.begin();
  p.row = even != rows.end()
              ? *even
              : *std::ranges::max_element(rows, {}, [&](size_t d) { return p.full[d]; });
  return p;
}

bool MatrixProduct::has_rows_behind(size_t axis) const {
  for (size_t d = axis + 1; d < full.size(); ++d)
    if (d != inner && input.shape[d] != 1) return true;
  return false;
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
  // A convolution's channels: positions follow them, even where pictures are the rows.
  // The sum, where it is stored, has two axes in front.
  const bool channels = p.column == 1 && p.has_rows_behind(1);
  if (channels)
    out.layouts[g[y].inputs[0]] =
        blocked(rank + 2, static_cast<int64_t>(p.column + 2), lanes);
  y = joined(g, y, p.row, p.column);
  Shape shape = p.full;
  shape[p.inner] = 1;
  ++out.strassen;
  y = slice(g, y, Shape(rank, 0), Shape(rank, 1), shape);
  if (channels) out.layouts[y] = blocked(rank, 1, lanes);
  return y;
}

} // namespace svod::select
