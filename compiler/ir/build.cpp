// Sources, joins, reductions and index ops. Each function normalises its payload, so that
// equal values meet as equal nodes, and answers directly where the result is one of its
// inputs.
#include "compiler/ir/build.h"

#include "compiler/ir/fold.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

NodeId constant(Graph& g, DType dtype, Shape shape, double value) {
  return constant_bits(g, dtype, std::move(shape), scalar_bits(dtype, value));
}

NodeId constant_int(Graph& g, DType dtype, Shape shape, int64_t value) {
  return constant_bits(g, dtype, std::move(shape), scalar_bits_int(dtype, value));
}

NodeId constant_bits(Graph& g, DType dtype, Shape shape, uint64_t bits) {
  if (element_count(shape) == 0) bits = 0; // all empty tensors of a type are one node
  return g.intern(
      {Op::Constant, dtype, std::move(shape), {static_cast<int64_t>(bits)}, {}});
}

static Tensor small_tensor(DType dtype, Shape shape, std::span<const std::byte> bytes) {
  SVOD_CHECK(static_cast<size_t>(element_count(shape) * byte_size(dtype)) == bytes.size())
      << "values and shape differ in number";
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

NodeId tensor_i64(Graph& g, Shape shape, std::span<const int64_t> values) {
  return tensor_node(g,
                     small_tensor(DType::I64, std::move(shape), std::as_bytes(values)));
}

NodeId tensor_f32(Graph& g, Shape shape, std::span<const float> values) {
  return tensor_node(g,
                     small_tensor(DType::F32, std::move(shape), std::as_bytes(values)));
}

NodeId iota(Graph& g, DType dtype, Shape shape, int64_t axis) {
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(shape.size())) << "iota axis";
  // Up to one index along the axis, all elements are 0.
  if (shape[axis] <= 1) return constant_bits(g, dtype, std::move(shape), 0);
  return make(g, {Op::Iota, dtype, std::move(shape), {axis}, {}});
}

NodeId concat(Graph& g, std::vector<NodeId> inputs, int64_t axis) {
  SVOD_CHECK(!inputs.empty()) << "concat of nothing";
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(g[inputs[0]].shape.size()))
      << "concat axis";
  Shape total = g[inputs[0]].shape;
  std::vector<NodeId> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& part = g[inputs[i]];
    if (i > 0) total[axis] += part.shape[axis];
    if (part.shape[axis] != 0) parts.push_back(inputs[i]);
  }
  if (parts.empty()) return inputs[0];
  if (parts.size() == 1) return parts[0];
  auto first = splat_bits(g, parts[0]);
  bool one_splat = first && std::all_of(parts.begin(), parts.end(), [&](NodeId part) {
                     return splat_bits(g, part) == first;
                   });
  if (one_splat) return constant_bits(g, g[parts[0]].dtype, std::move(total), *first);
  return make(g, {Op::Concat, {}, {}, {axis}, std::move(parts)});
}

NodeId reduce(Graph& g, Op op, NodeId x, std::vector<int64_t> axes) {
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const Shape shape = g[x].shape;
  // Over one element every reduction is the element.
  std::erase_if(axes, [&](int64_t axis) {
    SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(shape.size())) << "reduce axis";
    return shape[axis] == 1;
  });
  if (axes.empty()) return x;
  if ((op == Op::ReduceMin || op == Op::ReduceMax) && element_count(shape) != 0)
    if (auto bits = splat_bits(g, x)) {
      Shape reduced = shape;
      for (int64_t axis : axes) reduced[axis] = 1;
      return constant_bits(g, g[x].dtype, std::move(reduced), *bits);
    }
  return make(g, {op, {}, {}, std::move(axes), {x}});
}

NodeId arg_reduce(Graph& g, Op op, NodeId x, int64_t axis, bool select_last) {
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(g[x].shape.size())) << "axis";
  if (g[x].shape[axis] == 1) return constant_int(g, DType::I64, g[x].shape, 0);
  return make(g, {op, {}, {}, {axis, select_last}, {x}});
}

NodeId scan(Graph& g, Op op, NodeId x, int64_t axis) {
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(g[x].shape.size())) << "axis";
  if (g[x].shape[axis] == 1) return x;
  return make(g, {op, {}, {}, {axis}, {x}});
}

NodeId gather(Graph& g, NodeId data, NodeId index, int64_t axis) {
  // One known index everywhere is a slice that repeats.
  if (auto bits = splat_bits(g, index); bits && element_count(g[index].shape) != 0) {
    const Shape shape = g[index].shape;
    int64_t at = static_cast<int64_t>(*bits);
    if (g[index].dtype == DType::I32) at = static_cast<int32_t>(at);
    if (at >= 0 && at < g[data].shape[axis])
      return expand(g, slice_axis(g, data, axis, at, 1), shape);
  }
  return make(g, {Op::Gather, {}, {}, {axis}, {data, index}});
}

NodeId scatter(Graph& g, NodeId data, NodeId index, NodeId update, int64_t axis,
               Combiner how) {
  if (element_count(g[index].shape) == 0) return data;
  return make(
      g, {Op::Scatter, {}, {}, {axis, static_cast<int64_t>(how)}, {data, index, update}});
}

NodeId descend(Graph& g, NodeId key, NodeId node, NodeId root, int64_t steps) {
  return make(g, {Op::Descend, {}, {}, {steps}, {key, node, root}});
}

NodeId argsort(Graph& g, NodeId x, int64_t axis, bool descending,
               std::optional<int64_t> count) {
  SVOD_CHECK(axis >= 0 && axis < static_cast<int64_t>(g[x].shape.size())) << "axis";
  Shape shape = g[x].shape;
  shape[axis] = count.value_or(shape[axis]);
  if (g[x].shape[axis] == 1) return constant_int(g, DType::I64, shape, 0);
  return make(g, {Op::ArgSort, {}, {}, {axis, descending, shape[axis]}, {x}});
}

} // namespace svod
