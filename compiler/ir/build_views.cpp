// Views. A view that changes nothing is its input, a view of a view of the same kind is
// one view where that can be said in one node, and a view of a splat constant is a
// constant: so every later pass meets short chains.
#include "compiler/ir/fold.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <numeric>

namespace svod {

NodeId reshape(Graph& g, NodeId x, Shape shape) {
  const Node& node = g[x];
  SVOD_CHECK(element_count(shape) == element_count(node.shape)) << "reshape count";
  if (node.shape == shape) return x;
  if (node.op == Op::Reshape) return reshape(g, node.inputs[0], std::move(shape));
  // Sources without axes of their own just take the shape.
  if (is_known(g, x))
    return g.intern({node.op, node.dtype, std::move(shape), node.payload, {}});
  return make(g, {Op::Reshape, {}, std::move(shape), {}, {x}});
}

// Whether the permutation only moves axes of extent 1: then no element moves.
static bool moves_no_element(const Shape& shape, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

NodeId permute(Graph& g, NodeId x, std::vector<int64_t> perm) {
  const Node node = g[x];
  SVOD_CHECK(perm.size() == node.shape.size()) << "permute rank";
  if (node.op == Op::Permute) {
    for (int64_t& axis : perm) axis = node.payload.at(static_cast<size_t>(axis));
    return permute(g, node.inputs[0], std::move(perm));
  }
  Shape shape;
  for (int64_t axis : perm) shape.push_back(node.shape.at(static_cast<size_t>(axis)));
  if (auto bits = splat_bits(g, x))
    return constant_bits(g, node.dtype, std::move(shape), *bits);
  if (moves_no_element(node.shape, perm)) return reshape(g, x, std::move(shape));
  return make(g, {Op::Permute, {}, {}, std::move(perm), {x}});
}

NodeId expand(Graph& g, NodeId x, Shape shape) {
  const Node& node = g[x];
  if (node.shape == shape) return x;
  if (node.op == Op::Expand) return expand(g, node.inputs[0], std::move(shape));
  if (auto bits = splat_bits(g, x))
    return constant_bits(g, node.dtype, std::move(shape), *bits);
  return make(g, {Op::Expand, {}, std::move(shape), {}, {x}});
}

NodeId broadcast_to(Graph& g, NodeId x, const Shape& shape) {
  Shape padded = g[x].shape;
  SVOD_CHECK(padded.size() <= shape.size()) << "broadcast to a smaller rank";
  padded.insert(padded.begin(), shape.size() - padded.size(), 1);
  return expand(g, reshape(g, x, std::move(padded)), shape);
}

NodeId slice(Graph& g, NodeId x, Shape start, Shape step, Shape extent) {
  const Node node = g[x];
  size_t rank = node.shape.size();
  SVOD_CHECK(start.size() == rank && step.size() == rank && extent.size() == rank)
      << "slice rank";
  bool whole = true;
  for (size_t i = 0; i < rank; ++i) {
    if (extent[i] == 0) start[i] = 0; // nothing is read: one normal form
    if (extent[i] <= 1) step[i] = 1;
    whole = whole && start[i] == 0 && step[i] == 1 && extent[i] == node.shape[i];
  }
  if (whole) return x;
  if (auto bits = splat_bits(g, x))
    return constant_bits(g, node.dtype, std::move(extent), *bits);
  if (node.op == Op::Slice && element_count(extent) != 0) {
    for (size_t i = 0; i < rank; ++i) {
      start[i] = node.payload[i] + start[i] * node.payload[rank + i];
      step[i] *= node.payload[rank + i];
    }
    return slice(g, node.inputs[0], std::move(start), std::move(step), std::move(extent));
  }
  Payload payload = std::move(start);
  payload.insert(payload.end(), step.begin(), step.end());
  return make(g, {Op::Slice, {}, std::move(extent), std::move(payload), {x}});
}

NodeId slice_axis(Graph& g, NodeId x, int64_t axis, int64_t start, int64_t extent) {
  Shape starts(g[x].shape.size(), 0), steps(g[x].shape.size(), 1), extents = g[x].shape;
  starts.at(static_cast<size_t>(axis)) = start;
  extents.at(static_cast<size_t>(axis)) = extent;
  return slice(g, x, std::move(starts), std::move(steps), std::move(extents));
}

NodeId pad(Graph& g, NodeId x, Shape low, Shape high, double value) {
  uint64_t bits = scalar_bits(g[x].dtype, value);
  return pad_bits(g, x, std::move(low), std::move(high), bits);
}

NodeId pad_bits(Graph& g, NodeId x, Shape low, Shape high, uint64_t bits) {
  const Node node = g[x];
  size_t rank = node.shape.size();
  SVOD_CHECK(low.size() == rank && high.size() == rank) << "pad rank";
  auto is_zero = [](int64_t amount) { return amount == 0; };
  if (std::all_of(low.begin(), low.end(), is_zero) &&
      std::all_of(high.begin(), high.end(), is_zero))
    return x;
  Shape shape = node.shape;
  for (size_t i = 0; i < rank; ++i) shape[i] += low[i] + high[i];
  // Padding of nothing, or of the padding value itself.
  if (element_count(node.shape) == 0 || splat_bits(g, x) == bits)
    return constant_bits(g, node.dtype, std::move(shape), bits);
  if (node.op == Op::Pad && static_cast<uint64_t>(node.payload[2 * rank]) == bits) {
    for (size_t i = 0; i < rank; ++i) {
      low[i] += node.payload[i];
      high[i] += node.payload[rank + i];
    }
    return pad_bits(g, node.inputs[0], std::move(low), std::move(high), bits);
  }
  Payload payload = std::move(low);
  payload.insert(payload.end(), high.begin(), high.end());
  payload.push_back(static_cast<int64_t>(bits));
  return make(g, {Op::Pad, {}, {}, std::move(payload), {x}});
}

NodeId window(Graph& g, NodeId x, int64_t axis, int64_t size, int64_t stride,
              int64_t dilation) {
  const Node& node = g[x];
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(node.shape.size()))
      << "window axis";
  int64_t room = node.shape[axis] - (size - 1) * dilation - 1;
  SVOD_CHECK(size >= 1 && stride >= 1 && dilation >= 1 && room >= 0) << "window size";
  Shape shape = node.shape;
  shape[axis] = room / stride + 1;
  shape.push_back(size);
  if (size == 1) { // a strided slice with one more axis
    Shape start(node.shape.size(), 0), step(node.shape.size(), 1), extent = node.shape;
    step[axis] = stride;
    extent[axis] = shape[axis];
    return reshape(g, slice(g, x, std::move(start), std::move(step), std::move(extent)),
                   std::move(shape));
  }
  if (auto bits = splat_bits(g, x))
    return constant_bits(g, node.dtype, std::move(shape), *bits);
  return make(g, {Op::Window, {}, {}, {axis, size, stride, dilation}, {x}});
}

NodeId permute_last_two(Graph& g, NodeId x) {
  std::vector<int64_t> perm(g[x].shape.size());
  SVOD_CHECK(perm.size() >= 2) << "permute_last_two wants a matrix";
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return permute(g, x, std::move(perm));
}

NodeId unsqueeze(Graph& g, NodeId x, int64_t axis) {
  Shape shape = g[x].shape;
  SVOD_CHECK(axis >= 0 && axis <= static_cast<int64_t>(shape.size())) << "unsqueeze axis";
  shape.insert(shape.begin() + axis, 1);
  return reshape(g, x, std::move(shape));
}

NodeId squeeze_axes(Graph& g, NodeId x, std::vector<int64_t> axes) {
  Shape shape;
  for (size_t i = 0; i < g[x].shape.size(); ++i) {
    bool drop =
        std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    SVOD_CHECK(!drop || g[x].shape[i] == 1) << "squeeze of a longer axis";
    if (!drop) shape.push_back(g[x].shape[i]);
  }
  return reshape(g, x, std::move(shape));
}

} // namespace svod
