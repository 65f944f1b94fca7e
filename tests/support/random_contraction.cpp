// Weights are small integers and scales powers of two, so that sums stay exact in f32
// over several layers, and kernels can be held to every bit.
#include "tests/support/random_contraction.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <numeric>

namespace svod::test {

namespace {

class Builder {
public:
  explicit Builder(const ContractionSource& source)
      : source_(source), g(source.g), random_(source.random) {}

  Contracted run() {
    bool convolutions = random_.chance(60);
    Contracted y = convolutions ? first_convolution() : matrix_product();
    axis_ = convolutions ? 1 : static_cast<int64_t>(g[y.node].shape.size()) - 1;
    follow(y);
    for (int more = 0; convolutions && more < 2 && random_.chance(50); ++more) {
      if (random_.chance(25)) y.node = pool(y.node);
      y = convolve(y);
      follow(y);
    }
    return y;
  }

private:
  int64_t pick(std::initializer_list<int64_t> small,
               std::initializer_list<int64_t> large) {
    const auto& list = source_.large ? large : small;
    return list.begin()[random_.below(static_cast<int64_t>(list.size()))];
  }

  NodeId known(const Shape& shape, std::initializer_list<double> values) {
    std::vector<double> elements(static_cast<size_t>(element_count(shape)));
    for (double& element : elements)
      element = values.begin()[random_.below(static_cast<int64_t>(values.size()))];
    Tensor tensor = make_tensor(source_.dtype, shape, elements);
    uint32_t blob = g.add_blob(std::move(tensor.bytes));
    return g.intern({Op::Weight, source_.dtype, shape, {blob}, {}});
  }

  NodeId weights(const Shape& shape) { return known(shape, {-2, -1, 0, 1, 2}); }

  Contracted matrix_product() {
    int64_t m = pick({1, 2, 3, 5}, {1, 6, 13, 33}), k = pick({1, 3, 5}, {7, 32, 65}),
            n = pick({1, 2, 4}, {1, 8, 17, 48});
    Shape left = random_.chance(50) ? Shape{m, k} : Shape{2, m, k};
    NodeId x = source_.input(left);
    if (random_.chance(25)) { // both unknown, as in attention
      NodeId other = source_.input(random_.chance(50) ? Shape{2, k, n} : Shape{k, n});
      return {matmul(g, x, other), 9.0 * static_cast<double>(k), 4, true};
    }
    NodeId w = random_.chance(50) ? weights({k, n}) : permute(g, weights({n, k}), {1, 0});
    return {matmul(g, x, w), 6.0 * static_cast<double>(k), 2, true};
  }

  Contracted first_convolution() {
    Shape shape{random_.between(1, 2), pick({1, 3, 4}, {3, 8, 16, 17})};
    for (int64_t axes = random_.between(1, 2); axes > 0; --axes)
      shape.push_back(pick({3, 5, 6}, {7, 14, 15}));
    return convolve({source_.input(shape), 3, 2, true});
  }

  // Divides both numbers of channels.
  int64_t groups_of(int64_t channels) {
    if (random_.chance(60)) return 1;
    if (random_.chance(60)) return channels; // depthwise
    return channels % 2 == 0 ? 2 : 1;
  }

  Contracted convolve(const Contracted& from) {
    const Shape shape = g[from.node].shape;
    int64_t spatial = static_cast<int64_t>(shape.size()) - 2, channels = shape[1];
    int64_t groups = groups_of(channels), depth = channels / groups;
    int64_t outputs = groups * pick({1, 2, 3}, groups == 1 ? many() : few());
    NodeId x = from.node;
    if (groups > 1) {
      Shape split{shape[0], groups, depth};
      split.insert(split.end(), shape.begin() + 2, shape.end());
      x = reshape(g, x, split);
    }
    int64_t channel = groups > 1 ? 2 : 1, first = channel + 1;
    Shape kernel;
    x = see_windows(x, first, spatial, kernel);
    // [.., C, o.., k..] -> [.., 1, o.., C, k..]
    std::vector<int64_t> order(g[x].shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + channel, order.begin() + first,
                order.begin() + first + spatial);
    x = unsqueeze(g, permute(g, x, order), channel);

    Shape filter{outputs, depth};
    filter.insert(filter.end(), kernel.begin(), kernel.end());
    Shape place = groups > 1 ? Shape{1, groups, outputs / groups} : Shape{1, outputs};
    place.insert(place.end(), static_cast<size_t>(spatial), 1);
    place.insert(place.end(), filter.begin() + 1, filter.end());
    NodeId w = reshape(g, weights(filter), place);
    NodeId product = broadcast_map(g, Op::Mul, {x, w});
    const Shape full = g[product].shape;
    std::vector<int64_t> axes;
    for (int64_t axis = first + spatial; axis < static_cast<int64_t>(full.size()); ++axis)
      axes.push_back(axis);
    Shape result{shape[0], outputs};
    result.insert(result.end(), full.begin() + first, full.begin() + first + spatial);
    NodeId sum = reshape(g, reduce(g, Op::ReduceSum, product, axes), result);
    double terms = static_cast<double>(depth * element_count(kernel));
    return {sum, from.bound * 2 * terms, from.fraction, from.exact};
  }

  static std::initializer_list<int64_t> many() {
    static const std::initializer_list<int64_t> list{1, 8, 17, 32};
    return list;
  }
  static std::initializer_list<int64_t> few() {
    static const std::initializer_list<int64_t> list{1, 1, 2};
    return list;
  }

  // Padding and one window axis per spatial axis; the kernel's extents.
  NodeId see_windows(NodeId x, int64_t first, int64_t spatial, Shape& kernel) {
    Shape low(g[x].shape.size(), 0), high = low;
    std::vector<int64_t> stride, dilation;
    for (int64_t i = 0; i < spatial; ++i) {
      int64_t size = random_.between(1, 3), by = random_.between(1, 2);
      int64_t apart = random_.chance(80) ? 1 : 2;
      low[first + i] = random_.below(2);
      high[first + i] = random_.below(2);
      int64_t have = g[x].shape[first + i] + low[first + i] + high[first + i];
      if ((size - 1) * apart >= have) size = 1;
      kernel.push_back(size);
      stride.push_back(by);
      dilation.push_back(apart);
    }
    x = pad(g, x, low, high, 0);
    for (int64_t i = 0; i < spatial; ++i)
      x = window(g, x, first + i, kernel[static_cast<size_t>(i)],
                 stride[static_cast<size_t>(i)], dilation[static_cast<size_t>(i)]);
    return x;
  }

  NodeId pool(NodeId x) {
    int64_t spatial = static_cast<int64_t>(g[x].shape.size()) - 2;
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < spatial; ++i) {
      if (g[x].shape[2 + i] < 2) return x;
      axes.push_back(2 + spatial + i);
    }
    for (int64_t i = 0; i < spatial; ++i) x = window(g, x, 2 + i, 2, 2, 1);
    return squeeze_axes(g, reduce(g, Op::ReduceMax, x, axes), axes);
  }

  // One value per channel, or per column.
  NodeId per_channel(const Shape& shape, std::initializer_list<double> values) {
    Shape small(shape.size(), 1);
    small[static_cast<size_t>(axis_)] = shape[static_cast<size_t>(axis_)];
    return expand(g, known(small, values), shape);
  }

  void follow(Contracted& y) {
    const Shape shape = g[y.node].shape;
    DType dtype = source_.dtype;
    auto then = [&](Op op, NodeId other) {
      y.node = g.intern({op, dtype, shape, {}, {y.node, other}});
    };
    if (random_.chance(70)) {
      then(Op::Add, per_channel(shape, {-1.5, 0, 1, 2.25}));
      y.bound += 3, y.fraction = std::max(y.fraction, 2);
    }
    if (random_.chance(50)) {
      then(Op::Mul, per_channel(shape, {-1, 0.5, 2, 0.25}));
      y.bound *= 2, y.fraction += 2;
    } else if (random_.chance(15)) {
      then(Op::Div, constant(g, dtype, shape, 3));
      y.exact = false;
    }
    if (random_.chance(25)) {
      then(Op::Add, source_.input(shape));
      y.bound += 3, y.fraction = std::max(y.fraction, 2);
    }
    if (random_.chance(50)) then(Op::Max, constant(g, dtype, shape, 0));
  }

  const ContractionSource& source_;
  Graph& g;
  Random& random_;
  int64_t axis_ = 1;
};

} // namespace

Contracted random_contraction(const ContractionSource& source) {
  return Builder(source).run();
}

} // namespace svod::test
