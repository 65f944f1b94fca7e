// F(m, r): m + r - 1 multiplications where the direct form takes m r, so a layer of 3 x 3
// taps in tiles of 4 x 4 takes a quarter of the products, batched over the positions of a
// tile. The transforms are sums over a few known numbers each; kernels compute them in
// registers, with the numbers in the code.
#include "compiler/select/forms/winograd.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <cmath>

namespace svod::select {

// By how many there are: those with the least error of a layer of normal numbers among
// short fractions, found by descent. A geometric series around one is near it (Alam et
// al., "Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022).
// Pairs stand together.
static constexpr double kPoints[kMostWinogradInputs][kMostWinogradInputs] = {
    {},
    {0},
    {0, 1},
    {0, 1, -1},
    {0, 0.75, -0.75, -2},
    {0, 0.625, -0.625, 1.5, -1.5},
    {0, 1, -1, 2, -2, 0.5},
    {0, 1, -1, 2, -2, 0.5, -0.5},
    {0, 0.6875, -0.6875, 1.125, -1.125, 2.25, -2.25, -0.34375},
    {0, 0.375, -0.375, 0.8125, -0.8125, 1.25, -1.25, 2.25, -2.25},
};

// Coefficients of the product of (x - p) over the first `points` points but `without`.
static std::vector<double> polynomial(int64_t points, int64_t without) {
  std::vector<double> c(static_cast<size_t>(points) + 1);
  c[0] = 1;
  for (int64_t j = 0, degree = 0; j < points; ++j) {
    if (j == without) continue;
    ++degree;
    for (int64_t i = degree; i >= 0; --i)
      c[i] = (i > 0 ? c[i - 1] : 0) - kPoints[points][j] * c[i];
  }
  return c;
}

static Matrix zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
}

static Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out = zeros(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j)
      for (int64_t k = 0; k < a.columns; ++k) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}

// Sum and difference of each pair of points; everything else stays.
static Matrix butterflies(int64_t points) {
  Matrix out = zeros(points + 1, points + 1);
  for (int64_t i = 0; i <= points; ++i) out.at(i, i) = 1;
  for (int64_t i = 1; i + 1 < points; i += 2)
    out.at(i, i + 1) = out.at(i + 1, i) = 1, out.at(i + 1, i + 1) = -1;
  return out;
}

// Its inverse.
static Matrix halved(Matrix butterflies) {
  for (int64_t i = 1; i + 1 < butterflies.rows; i += 2)
    if (butterflies.at(i, i + 1) != 0)
      for (int64_t k = 0; k < 4; ++k) butterflies.at(i + k / 2, i + k % 2) /= 2;
  return butterflies;
}

WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps) {
  const int64_t n = outputs + taps - 1, points = n - 1;
  SVOD_CHECK(n >= 2 && n <= kMostWinogradInputs);
  const double* at = kPoints[points];
  Matrix input = zeros(n, n), weight = zeros(n, taps), output = zeros(outputs, n);
  for (int64_t j = 0; j < n; ++j) {
    const bool infinity = j == points;
    const std::vector<double> row = polynomial(points, infinity ? -1 : j);
    for (int64_t k = 0; k < n; ++k) input.at(j, k) = row[k];
    double norm = 1;
    for (int64_t l = 0; l < points && !infinity; ++l)
      if (l != j) norm *= at[j] - at[l];
    for (int64_t k = 0; k < taps; ++k)
      weight.at(j, k) = infinity ? k == taps - 1 : std::pow(at[j], k) / norm;
    for (int64_t i = 0; i < outputs; ++i)
      output.at(i, j) = infinity ? i == outputs - 1 : std::pow(at[j], i);
  }
  const Matrix pairs = butterflies(points);
  return {{product(halved(pairs), input), pairs},
          {weight},
          {pairs, product(output, halved(pairs))}};
}

// One of the three transforms along those of `axes` that are cut into tiles.
static NodeId transform_tiles(Algorithms& out, const Convolution& conv,
                              const WinogradForm& form,
                              const Steps WinogradMatrices::* steps, NodeId x,
                              std::array<size_t, 2> axes, bool unroll) {
  for (int axis : {1, 0}) {
    if (form.outputs[axis] == 1) continue;
    const WinogradMatrices matrices =
        winograd_matrices(form.outputs[axis], form.window(conv, axis));
    for (const Matrix& m : matrices.*steps) x = transform(out, m, x, axes[axis], unroll);
  }
  return x;
}

// Room after the last row and column, so that tiles cover the result; a pad that is there
// already grows.
static NodeId pad_to_tiles(Graph& g, NodeId x, Shape high) {
  if (std::ranges::all_of(high, [](int64_t amount) { return amount == 0; })) return x;
  const size_t rank = high.size();
  Shape low(rank, 0);
  const Node n = g[x];
  if (n.op == Op::Pad && n.payload[2 * rank] == 0) {
    for (size_t i = 0; i < rank; ++i)
      low[i] = n.payload[i], high[i] += n.payload[rank + i];
    x = n.inputs[0];
  }
  return pad(g, x, low, high, 0);
}

// [N, C, extents], rows and columns whole multiples of the dilation -> [pictures, C,
// rows, columns].
static NodeId pictures_of(Graph& g, const Convolution& conv, NodeId x) {
  if (conv.plain()) return x;
  const Shape& shape = g[x].shape;
  const auto [d_rows, d_columns] = conv.dilation;
  const int64_t rows = shape.size() == 3 ? 1 : shape[shape.size() - 2] / d_rows;
  const int64_t columns = shape.back() / d_columns;
  x = reshape(g, x,
              {shape[0], conv.inputs, conv.depth, rows, d_rows, columns, d_columns});
  return reshape(g, permute(g, x, {0, 4, 6, 2, 1, 3, 5}),
                 {conv.pictures, conv.inputs, rows, columns});
}

// The other way, for results that cover a little more: [pictures, OC, rows, columns] ->
// [N, OC, extents], as the sum lies.
static NodeId results_of(Graph& g, const Convolution& conv, NodeId y) {
  const Shape& shape = conv.results;
  if (!conv.plain()) {
    const Shape& covered = g[y].shape;
    const auto [d_rows, d_columns] = conv.dilation;
    const int64_t depth = conv.batch / (shape[0] * d_rows * d_columns);
    y = reshape(
        g, y, {shape[0], d_rows, d_columns, depth, conv.outputs, covered[2], covered[3]});
    const int64_t rows = g[y].shape[5] * d_rows, columns = g[y].shape[6] * d_columns;
    y = permute(g, y, {0, 4, 3, 5, 1, 6, 2});
    Shape extents = shape;
    extents.back() = columns;
    if (extents.size() > 3) extents[extents.size() - 2] = rows;
    y = reshape(g, y, extents);
  }
  const size_t rank = shape.size();
  y = slice(g, y, Shape(rank, 0), Shape(rank, 1), shape);
  return arranged(g, y, conv.result);
}

// The inputs of each tile: [N, C, rows, columns, n, n] and the phases of each axis that
// has more than one. An axis that is not cut into tiles has one position.
static NodeId tiles_of(Graph& g, const Convolution& conv, const WinogradForm& form,
                       NodeId x) {
  for (int axis : {0, 1}) {
    const int64_t phases = form.phases(conv, axis);
    x = form.outputs[axis] == 1 ? unsqueeze(g, x, static_cast<int64_t>(g[x].shape.size()))
                                : window(g, x, axis + 2, phases * form.inputs(conv, axis),
                                         phases * form.outputs[axis], 1);
  }
  Shape cut = g[x].shape, shape = cut;
  cut.resize(4), shape.resize(4);
  for (int axis : {0, 1}) {
    cut.insert(cut.end(), {form.inputs(conv, axis), form.phases(conv, axis)});
    shape.push_back(form.inputs(conv, axis));
  }
  for (int axis : {0, 1})
    if (form.phases(conv, axis) != 1) shape.push_back(form.phases(conv, axis));
  return reshape(g, permute(g, reshape(g, x, cut), {0, 1, 2, 3, 4, 6, 5, 7}), shape);
}

bool blocks_inputs(const Convolution& conv, const WinogradForm& form, int64_t lanes) {
  return form.channels && 2 * conv.inputs >= lanes;
}

// Position by position; rows of tiles are whole vectors where these run over them.
static Layout by_position(const WinogradForm& form, const Shape& shape, bool channels,
                          int64_t lanes) {
  const size_t rank = shape.size();
  Layout layout = channels ? blocked(rank, 1, lanes) : row_major(rank);
  layout.order = {4, 5};
  for (size_t i = 6; i < rank; ++i) layout.order.push_back(static_cast<int64_t>(i));
  layout.order.insert(layout.order.end(), {0, 1, 2, 3});
  if (form.by_rows) {
    std::erase(layout.order, 2);
    layout.order.insert(layout.order.begin(), 2);
  }
  if (!form.channels) layout.high[3] = -shape[3] & (lanes - 1);
  return layout;
}

// [groups, OC, C, taps] -> [groups, OC, 1, 1, n, n, C, taps of the depth, and the windows
// of each axis that has more than one, and its phases likewise].
static NodeId transformed_weights(Algorithms& out, const Convolution& conv,
                                  const WinogradForm& form, NodeId weight) {
  Graph& g = out.graph;
  const int64_t outputs = conv.groups * conv.outputs;
  Shape all(4, 0), cut = {outputs, conv.terms()};
  for (int axis : {0, 1}) {
    const int64_t windows = form.windows(conv, axis), window = form.window(conv, axis);
    const int64_t phases = form.phases(conv, axis);
    all[axis + 2] = windows * window * phases - conv.taps[axis];
    cut.insert(cut.end(), {windows, window, phases});
  }
  NodeId w = reshape(g, weight, {outputs, conv.terms(), conv.taps[0], conv.taps[1]});
  if (all[2] + all[3] != 0) w = pad(g, w, Shape(4, 0), all, 0);
  NodeId u = transform_tiles(out, conv, form, &WinogradMatrices::weight,
                             reshape(g, w, cut), {3, 6}, false);
  Shape shape = {conv.groups,          conv.outputs,         1,          1,
                 form.inputs(conv, 0), form.inputs(conv, 1), conv.inputs};
  if (conv.depth_taps != 1) shape.push_back(conv.depth_taps);
  for (int axis : {0, 1})
    if (form.windows(conv, axis) != 1) shape.push_back(form.windows(conv, axis));
  for (int axis : {0, 1})
    if (form.phases(conv, axis) != 1) shape.push_back(form.phases(conv, axis));
  return reshape(g, permute(g, u, {0, 3, 6, 1, 2, 5, 4, 7}), shape);
}

namespace {

// Positions along one axis from `first`, and how many of its phases they meet.
struct Positions {
  int64_t first, count, phases;
};

} // namespace

// The last position, that of the point at infinity, sees a window's last tap only, so
// phases that lack it are not multiplied there.
static std::vector<Positions> positions_of(const Convolution& conv,
                                           const WinogradForm& form, int axis) {
  const int64_t n = form.inputs(conv, axis), phases = form.phases(conv, axis);
  const int64_t lacking = form.lacking(conv, axis);
  if (lacking == 0) return {{0, n, phases}};
  return {{0, n - 1, phases}, {n - 1, 1, phases - lacking}};
}

// The products at some rows and columns of the positions, summed up over all other axes:
// of both axes first the windows, then the phases.
static NodeId products_at(Algorithms& out, const Convolution& conv,
                          const WinogradForm& form, NodeId v, NodeId u,
                          std::array<Positions, 2> at) {
  Graph& g = out.graph;
  const size_t rank = g[v].shape.size();
  Shape start(rank, 0), v_extent = g[v].shape, u_extent = g[u].shape;
  size_t phase_axis = rank;
  for (int axis : {1, 0}) {
    start[axis + 4] = at[axis].first;
    v_extent[axis + 4] = u_extent[axis + 4] = at[axis].count;
    if (form.phases(conv, axis) == 1) continue;
    --phase_axis;
    v_extent[phase_axis] = u_extent[phase_axis] = at[axis].phases;
  }
  const Shape step(rank, 1);
  Shape full = v_extent;
  full[1] = conv.outputs;
  std::vector<int64_t> summed;
  for (size_t i = 6; i < rank; ++i) summed.push_back(static_cast<int64_t>(i));
  v = expand(g, slice(g, v, start, step, v_extent), full);
  u = expand(g, slice(g, u, start, step, u_extent), full);
  const NodeId sum = reduce(g, Op::ReduceSum, map(g, Op::Mul, {v, u}), summed);
  if (form.amplified) out.sums.amplified.insert(sum);
  return sum;
}

// [pictures, C, ..] -> [pictures of the result, C, .., taps of the depth]. Pictures are
// moved before they are told apart: a reshape of v would be one with that v ends with,
// and v no value of its own that is stored.
static NodeId depth_windows(Graph& g, const Convolution& conv, NodeId v) {
  Shape shape = g[v].shape;
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> order(shape.size()), back = {rank - 1, rank};
  for (int64_t i = 0; i < rank; ++i) order[i] = (i + 1) % rank;
  for (int64_t i = 0; i + 1 < rank; ++i) back.push_back(i);
  back.push_back(rank + 1);
  shape.erase(shape.begin());
  shape.insert(shape.end(), {conv.pictures / conv.depth, conv.depth});
  v = reshape(g, permute(g, v, order), shape);
  v = permute(g, window(g, v, rank, conv.depth_taps, conv.depth_stride, 1), back);
  shape = g[v].shape;
  shape.erase(shape.begin());
  shape[0] = conv.batch;
  return reshape(g, v, shape);
}

// The products of all positions: [N, OC, rows, columns, n, n]. `v` is the transformed
// input, [N, C, rows, columns, n, n, phases]; `u` the transformed weights.
static NodeId products(Algorithms& out, const Convolution& conv, const WinogradForm& form,
                       NodeId v, NodeId u, int64_t lanes) {
  Graph& g = out.graph;
  const size_t rank = g[v].shape.size();
  std::vector<int64_t> order = {0, 2, 3, 4, 5, 1};
  if (conv.depth_taps != 1) {
    v = depth_windows(g, conv, v);
    order.push_back(static_cast<int64_t>(rank));
  }
  for (int axis : {0, 1}) {
    const int64_t windows = form.windows(conv, axis);
    if (windows == 1) continue;
    order.push_back(static_cast<int64_t>(g[v].shape.size()));
    const int64_t shift = form.outputs[axis] == 1 ? conv.stride[axis] : 1;
    v = window(g, v, axis + 2, windows, shift, 1);
  }
  for (size_t i = 6; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  v = permute(g, v, order);
  Shape shape = g[v].shape;
  shape.insert(shape.begin() + 1, 1);
  v = reshape(g, v, shape);
  std::vector<NodeId> rows;
  for (const Positions& row : positions_of(conv, form, 0)) {
    std::vector<NodeId> columns;
    for (const Positions& column : positions_of(conv, form, 1))
      columns.push_back(products_at(out, conv, form, v, u, {row, column}));
    rows.push_back(concat(g, columns, 5));
  }
  NodeId sums = concat(g, rows, 4);
  out.stored.insert(sums);
  out.layouts[sums] = by_position(form, g[sums].shape, form.channels, lanes);
  shape = g[sums].shape;
  shape.resize(6);
  return reshape(g, sums, shape);
}

NodeId winograd(Algorithms& out, const Convolution& conv, const WinogradForm& form,
                NodeId input, NodeId weight, int64_t lanes) {
  Graph& g = out.graph;
  const Convolution::Pair m = form.outputs;
  const Shape& extents = g[input].shape;
  Convolution::Pair covered = {};
  Shape beyond(extents.size(), 0);
  for (int axis : {0, 1}) {
    covered[axis] = m[axis] * form.tiles(conv, axis);
    const size_t at = extents.size() - 2 + axis;
    if (at < 2) continue; // one row
    int64_t rows = (extents[at] + conv.dilation[axis] - 1) / conv.dilation[axis];
    const int64_t reached =
        covered[axis] + form.parts[axis] * form.window(conv, axis) - 1;
    if (m[axis] != 1) rows = std::max(rows, form.phases(conv, axis) * reached);
    beyond[at] = rows * conv.dilation[axis] - extents[at];
  }
  NodeId x = pad_to_tiles(g, input, beyond);
  // Whole rows, so that vectors of tiles are read without conditions.
  if (!form.channels) {
    out.stored.insert(x);
    out.layouts[x] = row_major(beyond.size());
  }
  x = tiles_of(g, conv, form, pictures_of(g, conv, x));
  NodeId v = transform_tiles(out, conv, form, &WinogradMatrices::input, x, {4, 5}, true);
  out.stored.insert(v);
  out.layouts[v] = by_position(form, g[v].shape, blocks_inputs(conv, form, lanes), lanes);
  NodeId u = transformed_weights(out, conv, form, weight);
  NodeId y = products(out, conv, form, v, u, lanes);
  y = transform_tiles(out, conv, form, &WinogradMatrices::output, y, {4, 5}, true);
  keep_result(out, y);
  y = permute(g, y, {0, 1, 2, 4, 3, 5});
  y = reshape(g, y, {conv.batch, conv.outputs, covered[0], covered[1]});
  ++out.winograd;
  return results_of(g, conv, y);
}

} // namespace svod::select
