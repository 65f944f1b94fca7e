// F(4 x 4, 3 x 3): 36 multiplications where the direct form takes 144, so a layer's
// product shrinks to a quarter, batched over the 36 positions of a tile. The transforms
// are sums over six known numbers each; kernels compute them in registers, with the
// numbers in the code.
#include "compiler/fuse/winograd.h"

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace svod {

static constexpr std::array<double, 5> kPoints = {0, 1, -1, 0.5, -2};

// Coefficients of the product of (x - p) over the points but `without`.
static std::array<double, 6> polynomial(int without) {
  std::array<double, 6> c = {1};
  int degree = 0;
  for (int j = 0; j < 5; ++j) {
    if (j == without) continue;
    ++degree;
    for (int i = degree; i >= 0; --i) c[i] = (i > 0 ? c[i - 1] : 0) - kPoints[j] * c[i];
  }
  return c;
}

const WinogradMatrices& winograd_matrices() {
  static const WinogradMatrices matrices = [] {
    WinogradMatrices m{};
    for (int j = 0; j < 5; ++j) {
      double norm = 1;
      for (int l = 0; l < 5; ++l)
        if (l != j) norm *= kPoints[j] - kPoints[l];
      m.input[j] = polynomial(j);
      for (int k = 0; k < 3; ++k) m.weight[j][k] = std::pow(kPoints[j], k) / norm;
      for (int i = 0; i < 4; ++i) m.output[i][j] = std::pow(kPoints[j], i);
    }
    m.input[5] = polynomial(-1);
    m.weight[5] = {0, 0, 1};
    m.output[3][5] = 1;
    return m;
  }();
  return matrices;
}

static NodeId without_expand(const Graph& g, NodeId n) {
  return g[n].op == Op::Expand ? g[n].inputs[0] : n;
}

static bool is_window(const Node& n, int64_t axis) {
  return n.op == Op::Window && n.payload == Payload{axis, 3, 1, 1};
}

std::optional<Convolution> match_convolution(const Graph& g, NodeId reduce,
                                             const std::vector<bool>& known) {
  const Node& r = g[reduce];
  if (r.op != Op::ReduceSum || r.dtype != DType::F32 || r.payload != Payload{4, 5, 6})
    return std::nullopt;
  const Node& product = g[r.inputs[0]];
  if (product.op != Op::Mul || product.shape.size() != 7) return std::nullopt;
  if (product.shape[5] != 3 || product.shape[6] != 3) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeId weight = without_expand(g, product.inputs[i]);
    NodeId n = without_expand(g, product.inputs[1 - i]);
    Shape weight_shape = {1, product.shape[1], 1, 1, product.shape[4], 3, 3};
    if (!known[weight] || known[n] || g[weight].shape != weight_shape) continue;
    if (g[n].op != Op::Reshape) continue;
    n = g[n].inputs[0];
    if (g[n].op != Op::Permute || g[n].payload != Payload{0, 2, 3, 1, 4, 5}) continue;
    n = g[n].inputs[0];
    if (!is_window(g[n], 3) || !is_window(g[g[n].inputs[0]], 2)) continue;
    Convolution conv{g[g[n].inputs[0]].inputs[0],
                     weight,
                     r.shape[0],
                     product.shape[4],
                     r.shape[1],
                     r.shape[2],
                     r.shape[3]};
    if (g[conv.input].shape.size() == 4) return conv;
  }
  return std::nullopt;
}

template <size_t R, size_t C>
static NodeId matrix_node(Graph& g, const std::array<std::array<double, C>, R>& rows) {
  std::vector<float> values;
  for (const auto& row : rows)
    for (double v : row) values.push_back(static_cast<float>(v));
  return tensor_f32(g, {static_cast<int64_t>(R), static_cast<int64_t>(C)}, values);
}

// [.., p] -> [.., r]: sum over p of matrix[r, p] * x[.., p], as a reduction over the last
// axis.
static NodeId transform_last(Algorithms& out, NodeId matrix, NodeId x, bool unroll) {
  Graph& g = out.graph;
  Shape shape = g[x].shape;
  int64_t rows = g[matrix].shape[0], columns = g[matrix].shape[1];
  size_t rank = shape.size();
  Shape full = shape, unit(rank + 1, 1), result = shape;
  full.insert(full.end() - 1, rows);
  unit[rank - 1] = rows, unit[rank] = columns;
  result[rank - 1] = rows;
  NodeId a = expand(g, unsqueeze(g, x, static_cast<int64_t>(rank) - 1), full);
  NodeId m = expand(g, reshape(g, matrix, unit), full);
  NodeId sum =
      reduce(g, Op::ReduceSum, map(g, Op::Mul, {a, m}), {static_cast<int64_t>(rank)});
  if (unroll) out.unrolled.insert(sum);
  return reshape(g, sum, result);
}

// Both of the last two axes: (matrix * x * matrix transposed), transposed. Tiles, weights
// and products stay transposed until the output's transform turns them back.
static NodeId transform_both(Algorithms& out, NodeId matrix, NodeId x, bool unroll) {
  NodeId rows = transform_last(out, matrix, x, unroll);
  return transform_last(out, matrix, permute_last_two(out.graph, rows), unroll);
}

// Room after the last row and column, so that tiles of four cover the result; a pad that
// is there already grows.
static NodeId pad_to_tiles(Graph& g, NodeId x, int64_t rows, int64_t columns) {
  if (rows == 0 && columns == 0) return x;
  Shape low(4, 0), high = {0, 0, rows, columns};
  const Node n = g[x];
  if (n.op == Op::Pad && n.payload[8] == 0) {
    for (int i = 0; i < 4; ++i) low[i] = n.payload[i], high[i] += n.payload[4 + i];
    x = n.inputs[0];
  }
  return pad(g, x, low, high, 0);
}

NodeId winograd(Algorithms& out, const Convolution& conv, NodeId input, NodeId weight,
                int64_t lanes) {
  Graph& g = out.graph;
  const WinogradMatrices& m = winograd_matrices();
  int64_t rows = (conv.height + 3) / 4, columns = (conv.width + 3) / 4;
  NodeId x = pad_to_tiles(g, input, 4 * rows - conv.height, 4 * columns - conv.width);
  x = window(g, window(g, x, 2, 6, 4, 1), 3, 6, 4, 1); // [N, C, rows, columns, 6, 6]
  NodeId v = transform_both(out, matrix_node(g, m.input), x, true);
  Layout by_position = blocked(6, 1, lanes);
  by_position.order = {4, 5, 0, 1, 2, 3};
  out.stored.insert(v);
  out.layouts[v] = by_position;

  NodeId w = reshape(g, weight, {conv.outputs, conv.inputs, 3, 3});
  NodeId u = transform_both(out, matrix_node(g, m.weight), w, false); // [OC, C, 6, 6]
  u = reshape(g, permute(g, u, {0, 2, 3, 1}), {1, conv.outputs, 1, 1, 6, 6, conv.inputs});
  Shape full = {conv.batch, conv.outputs, rows, columns, 6, 6, conv.inputs};
  v = reshape(g, permute(g, v, {0, 2, 3, 4, 5, 1}),
              {conv.batch, 1, rows, columns, 6, 6, conv.inputs});
  NodeId product = map(g, Op::Mul, {expand(g, v, full), expand(g, u, full)});
  NodeId sums = reduce(g, Op::ReduceSum, product, {6});
  Layout of_sums = blocked(7, 1, lanes);
  of_sums.order = {4, 5, 0, 1, 2, 3, 6};
  out.stored.insert(sums);
  out.layouts[sums] = of_sums;

  NodeId y = reshape(g, sums, {conv.batch, conv.outputs, rows, columns, 6, 6});
  y = transform_both(out, matrix_node(g, m.output), y, true);
  y = permute(g, y, {0, 1, 2, 4, 3, 5});
  y = reshape(g, y, {conv.batch, conv.outputs, 4 * rows, 4 * columns});
  y = slice(g, y, {0, 0, 0, 0}, {1, 1, 1, 1},
            {conv.batch, conv.outputs, conv.height, conv.width});
  ++out.winograd;
  return reshape(g, y, {conv.batch, conv.outputs, conv.height, conv.width, 1, 1, 1});
}

namespace {

// A stated generator (splitmix64), so that the choice is the same on every machine.
class Samples {
public:
  float next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    // Like activations after a rectifier: half are zero.
    float value = static_cast<float>(static_cast<int64_t>(z) >> 11) * 0x1p-52f;
    return value < 0 ? 0 : value;
  }

private:
  uint64_t state_ = 1;
};

using Tile = std::array<std::array<float, 6>, 6>;

template <size_t R, size_t K>
std::array<std::array<float, 6>, R>
both_sides(const std::array<std::array<double, K>, R>& m, const float (&x)[K][K]) {
  float half[R][K] = {};
  std::array<std::array<float, 6>, R> out{};
  for (size_t i = 0; i < R; ++i)
    for (size_t q = 0; q < K; ++q)
      for (size_t p = 0; p < K; ++p) half[i][q] += float(m[i][p]) * x[p][q];
  for (size_t i = 0; i < R; ++i)
    for (size_t j = 0; j < R; ++j)
      for (size_t q = 0; q < K; ++q) out[i][j] += float(m[j][q]) * half[i][q];
  return out;
}

} // namespace

double winograd_error(const Graph& g, const Convolution& conv) {
  Tensor weights = evaluate_known(g, conv.weight);
  const WinogradMatrices& m = winograd_matrices();
  Samples samples;
  double worst = 0, squares = 0;
  int64_t counted = 0, step = std::max<int64_t>(1, conv.outputs / 6);
  for (int64_t oc = 0; oc < conv.outputs; oc += step) {
    float sums[6][6] = {};
    double direct[4][4] = {};
    for (int64_t c = 0; c < conv.inputs; ++c) {
      float tile[6][6], w[3][3];
      for (auto& row : tile)
        for (float& value : row) value = samples.next();
      std::memcpy(w, weights.bytes.data() + (oc * conv.inputs + c) * sizeof w, sizeof w);
      auto v = both_sides(m.input, tile);
      auto u = both_sides(m.weight, w);
      for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) sums[i][j] += v[i][j] * u[i][j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q)
              direct[i][j] += double(tile[i + p][j + q]) * double(w[p][q]);
    }
    auto y = both_sides(m.output, sums);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        worst = std::max(worst, std::fabs(double(y[i][j]) - direct[i][j]));
        squares += direct[i][j] * direct[i][j];
        ++counted;
      }
  }
  double mean = std::sqrt(squares / double(std::max<int64_t>(counted, 1)));
  return mean > 0 ? worst / mean : 0;
}

} // namespace svod
