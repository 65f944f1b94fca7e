// GridSample: reading an image at fractional coordinates that are data.
// Spatial axes are flattened into one, so that every neighbour of a sample is one gather
// by a computed position; the neighbours' weights are products of a weight per axis.
#include "importer/formula/formula.h"

#include <cmath>

namespace svod::importer {
namespace {

enum class Outside { Zeros, Border, Reflection };

// One spatial axis of GridSample: its extent and the range that reflection folds into.
struct GridAxis {
  int64_t extent;
  double low, high;
};

// Folds x into [low, high] by mirroring at both ends.
Expr reflect(Expr x, const GridAxis& axis) {
  double span = axis.high - axis.low;
  if (span <= 0) return like(x, axis.low);
  Expr turn = apply(Op::Mod, absolute(x - axis.low), like(x, 2 * span));
  return minimum(turn, 2 * span - turn) + axis.low;
}

// Neighbours of the coordinates along one axis: position and weight each.
struct Tap {
  Expr at;                    // whole numbers
  std::optional<Expr> weight; // 1 without
};

// Keys' cubic convolution with a = -0.75 at the distance of each of the four neighbours.
std::vector<Tap> cubic_taps(Expr x) {
  constexpr double kA = -0.75;
  Expr left = apply(Op::Floor, x), f = x - left, g = 1 - f;
  auto far = [](Expr d) { return ((d * kA - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  auto near = [](Expr d) { return (d * (kA + 2) - (kA + 3)) * d * d + 1; };
  return {{left - 1, far(f + 1)},
          {left, near(f)},
          {left + 1, near(g)},
          {left + 2, far(g + 1)}};
}

std::vector<Tap> taps_of(NodeImport& node, const std::string& mode, Expr x) {
  if (mode == "nearest") return {{x, {}}};
  if (mode == "cubic" || mode == "bicubic") return cubic_taps(x);
  if (mode != "linear" && mode != "bilinear")
    node.invalid("mode '" + mode + "' is not in the specification");
  Expr left = apply(Op::Floor, x), f = x - left;
  return {{left, 1 - f}, {left + 1, f}};
}

// Where a tap reads, inside the axis; with zeros outside, the weight of a tap there is 0.
struct Read {
  Expr index; // I64
  Expr weight;
};

Read read_of(const Tap& tap, const GridAxis& axis, Outside outside) {
  double last = static_cast<double>(axis.extent - 1);
  Expr at = outside == Outside::Reflection ? reflect(tap.at, axis) : tap.at;
  Expr weight = tap.weight ? *tap.weight : like(at, 1);
  if (outside == Outside::Zeros) {
    Expr inside = both(less_equal(like(at, 0), at), less_equal(at, like(at, last)));
    weight = select(inside, weight, like(weight, 0));
  }
  return {convert(clamp(at, 0, last), DType::I64), weight};
}

// x [n, c, spatial] at positions [n, count] -> [n, c, count].
Expr gather_pixels(Expr x, Expr position) {
  Expr index = broadcast(unsqueeze(position, 1),
                         {extent(x, 0), extent(x, 1), extent(position, 1)});
  return gather(x, index, 2);
}

Outside padding_mode(NodeImport& node) {
  std::string name = node.get_string("padding_mode");
  if (name == "zeros") return Outside::Zeros;
  if (name == "border") return Outside::Border;
  if (name == "reflection") return Outside::Reflection;
  node.invalid("padding_mode '" + name + "' is not in the specification");
}

// The coordinates of all samples along one axis, [n, count], moved inside as the mode
// says.
Expr coordinates(Expr grid, int64_t entry, const GridAxis& axis, bool corners,
                 bool nearest, Outside outside) {
  Expr x = squeeze(cut(grid, 2, entry, 1), 2);
  double n = static_cast<double>(axis.extent);
  x = corners ? (x + 1) / 2.0 * (n - 1) : ((x + 1) * n - 1) / 2.0;
  if (nearest) x = apply(Op::Round, x);
  if (outside == Outside::Zeros) return x;
  Expr in = both(less_equal(like(x, axis.low), x), less_equal(x, like(x, axis.high)));
  return select(in, x,
                outside == Outside::Border ? clamp(x, 0, n - 1) : reflect(x, axis));
}

// All combinations of one read per axis, summed by their weights.
Expr sample(Expr x, const std::vector<std::vector<Read>>& reads,
            const std::vector<GridAxis>& axes) {
  std::vector<size_t> choice(reads.size(), 0);
  std::optional<Expr> total;
  while (true) {
    Expr position = number(*x.g, DType::I64, 0);
    Expr weight = number(*x.g, x.dtype(), 1);
    for (size_t i = 0; i < reads.size(); ++i) {
      const Read& read = reads[i][choice[i]];
      position = position * static_cast<double>(axes[i].extent) + read.index;
      weight = weight * convert(read.weight, x.dtype());
    }
    Expr pixels = gather_pixels(x, position);
    // A weight of 0 hides also what is not finite.
    Expr w = unsqueeze(weight, 1);
    Expr part = select(equal(w, 0), like(pixels, 0), pixels * w);
    total = total ? *total + part : part;
    size_t i = 0;
    while (i < choice.size() && ++choice[i] == reads[i].size()) choice[i++] = 0;
    if (i == choice.size()) return *total;
  }
}

} // namespace

void import_grid_sample(NodeImport& node) {
  const std::string mode = node.get_string("mode");
  const DType given = node.dtype(0);
  Expr x = wide(node, 0), grid = wide(node, 1);
  int64_t spatial = x.rank() - 2;
  require(node,
          spatial >= 1 && grid.rank() == x.rank() && extent(grid, 0) == extent(x, 0) &&
              extent(grid, grid.rank() - 1) == spatial,
          "the grid does not fit the input");
  require(node, extent(x, 0) > 0 && extent(x, 1) > 0, "the input is empty");
  // The specification does not say how weights that are no whole numbers round here.
  if (given == DType::String || (!is_float(given) && mode != "nearest"))
    node.unsupported("images of integers in another mode than nearest");
  if (given == DType::Bool) x = convert(x, DType::U8);
  bool corners = node.get_int("align_corners") != 0;
  Outside outside = padding_mode(node);
  int64_t count = element_count(grid.shape()) / (extent(x, 0) * spatial);
  Shape to{extent(x, 0), extent(x, 1)};
  to.insert(to.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  Expr points = reshape(grid, {extent(x, 0), count, spatial});
  std::vector<GridAxis> axes;
  std::vector<std::vector<Read>> reads;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t n = extent(x, 2 + i);
    require(node, n > 0, "a spatial axis is empty");
    double edge = corners ? 0 : 0.5;
    axes.push_back({n, -edge, static_cast<double>(n - 1) + edge});
    Expr at = coordinates(points, spatial - 1 - i, axes.back(), corners,
                          mode == "nearest", outside);
    reads.emplace_back();
    for (const Tap& tap : taps_of(node, mode, at))
      reads.back().push_back(read_of(tap, axes.back(), outside));
  }
  int64_t pixels = element_count(x.shape()) / (extent(x, 0) * extent(x, 1));
  Expr flat = reshape(x, {extent(x, 0), extent(x, 1), pixels});
  finish(node, reshape(sample(flat, reads, axes), to));
}

// The grid of normalised output positions, each times the matrix of its batch entry.
void import_affine_grid(NodeImport& node) {
  Expr theta = wide(node, 0);
  require(node, theta.rank() == 3 && extent(theta, 2) == extent(theta, 1) + 1,
          "theta must be a matrix of 2 by 3 or 3 by 4 per batch entry");
  int64_t spatial = extent(theta, 1);
  Shape to;
  if (auto size = ints_if_known(node, 1)) {
    require(node, static_cast<int64_t>(size->size()) == spatial + 2,
            "size has a wrong length");
    to.assign(size->begin() + 2, size->end());
  } else {
    Shape declared = declared_instead(node, 1, 0, spatial + 2);
    to.assign(declared.begin() + 1, declared.end() - 1);
  }
  for (int64_t n : to) require(node, n >= 0 && n <= 1 << 24, "size is out of range");
  bool corners = node.get_int("align_corners") != 0;
  std::vector<Expr> columns;
  Shape whole = to;
  whole.push_back(1);
  for (int64_t i = spatial - 1; i >= 0; --i) { // the last axis is the first coordinate
    double n = static_cast<double>(to[static_cast<size_t>(i)]);
    Expr at =
        count_along(node.g, theta.dtype(), to[static_cast<size_t>(i)], i, spatial + 1);
    at = corners ? at * (n > 1 ? 2 / (n - 1) : 0) - 1 : (at * 2 + 1) / n - 1;
    columns.push_back(broadcast(at, whole));
  }
  columns.push_back(broadcast(number(node.g, theta.dtype(), 1), whole));
  Expr points = reshape(join(columns, spatial), {element_count(to), spatial + 1});
  Expr grid = matmul(unsqueeze(points, 0), permute(theta, {0, 2, 1}));
  to.insert(to.begin(), extent(theta, 0));
  to.push_back(spatial);
  finish(node, reshape(grid, to));
}

} // namespace svod::importer
