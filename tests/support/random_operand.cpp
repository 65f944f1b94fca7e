#include "tests/support/random_operand.h"

#include "compiler/ir/build.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace svod::test {

namespace {

constexpr int64_t kMostElements = 3000;

NodeId add_numbers(Random& random, RandomGraph& out, const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(double(random.between(-3, 3)));
  out.inputs.push_back(make_tensor(DType::F32, shape, values));
  return out.graph.add_input("x" + std::to_string(out.inputs.size()), DType::F32, shape);
}

Shape random_shape(Random& random) {
  Shape shape;
  for (int64_t axes = random.between(1, 4); axes > 0; --axes)
    shape.push_back(random.chance(15) ? 1 : random.between(2, 6));
  return shape;
}

// Neighbouring axes merged, or one split, or one of extent 1 more.
Shape regrouped(Random& random, Shape shape) {
  const auto at = static_cast<size_t>(random.below(std::ssize(shape)));
  const auto place = shape.begin() + std::ptrdiff_t(at);
  if (random.chance(45) && at + 1 < shape.size()) {
    shape[at] *= shape[at + 1];
    shape.erase(place + 1);
  } else if (random.chance(20)) {
    shape.insert(place, 1);
  } else {
    for (int64_t part : {3, 2})
      if (shape[at] > part && shape[at] % part == 0) {
        shape[at] /= part;
        shape.insert(shape.begin() + std::ptrdiff_t(at) + random.below(2), part);
        break;
      }
  }
  return shape;
}

NodeId random_slice(Random& random, Graph& g, NodeId x) {
  const Shape from = g[x].shape;
  Shape start(from.size(), 0), step(from.size(), 1), extent = from;
  const auto axis = static_cast<size_t>(random.below(std::ssize(from)));
  const int64_t by = random.between(1, 2);
  extent[axis] = (from[axis] - 1) / by + 1;
  const bool back = random.chance(40);
  step[axis] = back ? -by : by;
  start[axis] = back ? (extent[axis] - 1) * by : 0;
  return slice(g, x, start, step, extent);
}

NodeId random_view(Random& random, Graph& g, NodeId x) {
  const Shape shape = g[x].shape;
  const auto rank = std::ssize(shape);
  const int64_t axis = random.below(rank);
  switch (random.below(7)) {
  case 0:
  case 1:
    return reshape(g, x, regrouped(random, shape));
  case 2: {
    std::vector<int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[size_t(axis)], order[size_t(random.below(rank))]);
    return permute(g, x, order);
  }
  case 3: {
    Shape full = shape;
    for (int64_t& extent : full)
      if (extent == 1 && random.chance(70)) extent = random.between(2, 4);
    return expand(g, x, full);
  }
  case 4:
    return random_slice(random, g, x);
  case 5: {
    Shape low(shape.size(), 0), high = low;
    low[size_t(axis)] = random.between(0, 2);
    high[size_t(axis)] = random.between(0, 2);
    return pad(g, x, low, high, random.chance(70) ? 0 : 2);
  }
  default: {
    const int64_t size = random.between(1, 3), apart = random.between(1, 2);
    if ((size - 1) * apart >= shape[size_t(axis)]) return x;
    return window(g, x, axis, size, random.between(1, 2), apart);
  }
  }
}

int64_t flat_index(const Shape& shape, const Shape& at) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + at[i];
  return flat;
}

int64_t value_at(const Coordinate& at, const Shape& position) {
  return std::inner_product(position.begin(), position.end(), at.steps.begin(),
                            at.constant);
}

// Calls `visit` with every position of the loops, the last axis fastest.
template <class F> void each_position(const Contraction& c, F&& visit) {
  Shape position(c.axes.size(), 0);
  while (true) {
    visit(position);
    size_t axis = position.size();
    while (axis > 0 && ++position[axis - 1] == c.axes[axis - 1].extent)
      position[--axis] = 0;
    if (axis == 0) return;
  }
}

float element(const Tensor& values, int64_t at) {
  float value = 0;
  std::memcpy(&value, values.bytes.data() + 4 * at, 4);
  return value;
}

} // namespace

NodeId random_sum_of_products(Random& random, RandomGraph& out) {
  Graph& g = out.graph;
  NodeId x = add_numbers(random, out, random_shape(random));
  for (int64_t views = random.between(2, 7); views > 0; --views) {
    const NodeId next = random_view(random, g, x);
    if (element_count(g[next].shape) <= kMostElements) x = next;
  }
  // The other operand comes to the same shape on a shorter way.
  const Shape full = g[x].shape;
  Shape some = full;
  for (int64_t& extent : some)
    if (random.chance(40)) extent = 1;
  NodeId y = add_numbers(random, out, regrouped(random, some));
  y = expand(g, reshape(g, y, some), full);
  Payload axes;
  for (int64_t axis = 0; axis < std::ssize(full); ++axis)
    if (random.chance(50) || (axes.empty() && axis + 1 == std::ssize(full)))
      axes.push_back(axis);
  if (random.chance(50)) std::swap(x, y);
  // Interned as they are: map() would fold what is drawn constant.
  const NodeId product = g.intern({Op::Mul, DType::F32, full, {}, {x, y}});
  Shape result = full;
  for (int64_t axis : axes) result[size_t(axis)] = 1;
  return g.intern({Op::ReduceSum, DType::F32, result, axes, {product}});
}

std::vector<float> mapped_values(const Contraction& c, const OperandView& view,
                                 const Tensor& values) {
  std::vector<float> out;
  each_position(c, [&](const Shape& position) {
    for (const Guard& guard : view.map->guards) {
      const int64_t at = value_at(guard.at, position);
      if (at >= 0 && at < guard.extent) continue;
      out.push_back(static_cast<float>(scalar_value(DType::F32, guard.bits)));
      return;
    }
    Shape at;
    for (const Coordinate& coordinate : view.map->at)
      at.push_back(value_at(coordinate, position));
    out.push_back(element(values, flat_index(values.shape, at)));
  });
  return out;
}

std::vector<float> summed(const Graph& g, const Contraction& c, const Tensor& left,
                          const Tensor& right) {
  const Shape& result = g[c.sum].shape;
  std::vector<float> sums(static_cast<size_t>(element_count(result)));
  const std::vector<float> a = mapped_values(c, c.left().views[0], left);
  const std::vector<float> b = mapped_values(c, c.right().views[0], right);
  size_t next = 0;
  each_position(c, [&](const Shape& position) {
    Shape at(result.size(), 0);
    for (size_t axis = 0; axis < c.axes.size(); ++axis)
      if (std::ranges::count(c.reduced, axis) == 0)
        at[c.axes[axis].whole] += position[axis] * c.axes[axis].stride;
    sums[static_cast<size_t>(flat_index(result, at))] += a[next] * b[next];
    ++next;
  });
  return sums;
}

} // namespace svod::test
