// Rules on views, joins and reductions. Expands move towards the users, so that what they
// repeat is computed and moved before it repeats; slices move towards the sources, so
// that less is made.
#include "compiler/rewrite/rewriter.h"

#include <algorithm>

namespace svod::rewrite {

std::optional<Shape> shape_through_reshape(const Shape& small, const Shape& from,
                                           const Shape& to) {
  if (element_count(from) == 0) return std::nullopt;
  Shape out;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The shortest runs of axes that hold equally many elements.
    size_t i0 = i, j0 = j;
    int64_t left = i < from.size() ? from[i++] : 1;
    int64_t right = j < to.size() ? to[j++] : 1;
    while (left != right) {
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    }
    bool whole = std::equal(from.begin() + i0, from.begin() + i, small.begin() + i0);
    bool one = std::all_of(small.begin() + i0, small.begin() + i,
                           [](int64_t extent) { return extent == 1; });
    if (!whole && !one) return std::nullopt;
    for (; j0 < j; ++j0) out.push_back(whole ? to[j0] : 1);
  }
  return out;
}

namespace {

// Entries of the part-th per-axis list of a payload.
Shape per_axis(const Node& node, size_t part) {
  size_t rank = node.shape.size();
  auto begin = node.payload.begin() + static_cast<std::ptrdiff_t>(part * rank);
  return Shape(begin, begin + static_cast<std::ptrdiff_t>(rank));
}

} // namespace

namespace rules {

NodeId reshape_expand(Rewriter& r, NodeId id) {
  NodeId big = r.g[id].inputs[0];
  if (r.g[big].op != Op::Expand) return kNoNode;
  NodeId x = r.g[big].inputs[0];
  const Shape to = r.g[id].shape;
  auto shape = shape_through_reshape(r.g[x].shape, r.g[big].shape, to);
  if (!shape) return kNoNode;
  return expand(r.g, reshape(r.g, x, *shape), to);
}

NodeId permute_expand(Rewriter& r, NodeId id) {
  NodeId big = r.g[id].inputs[0];
  if (r.g[big].op != Op::Expand) return kNoNode;
  const Node node = r.g[id];
  return expand(r.g, permute(r.g, r.g[big].inputs[0], node.payload), node.shape);
}

NodeId slice_expand(Rewriter& r, NodeId id) {
  NodeId big = r.g[id].inputs[0];
  if (r.g[big].op != Op::Expand) return kNoNode;
  const Node node = r.g[id];
  NodeId x = r.g[big].inputs[0];
  const Shape small = r.g[x].shape, full = r.g[big].shape;
  Shape start = per_axis(node, 0), step = per_axis(node, 1), extent = node.shape;
  for (size_t i = 0; i < small.size(); ++i)
    if (small[i] != full[i]) start[i] = 0, step[i] = 1, extent[i] = 1;
  return expand(r.g, slice(r.g, x, start, step, extent), node.shape);
}

NodeId slice_concat(Rewriter& r, NodeId id) {
  NodeId joined = r.g[id].inputs[0];
  if (r.g[joined].op != Op::Concat) return kNoNode;
  const Node node = r.g[id];
  size_t axis = static_cast<size_t>(r.g[joined].payload[0]);
  Shape start = per_axis(node, 0), step = per_axis(node, 1);
  int64_t last = start[axis] + (node.shape[axis] - 1) * step[axis];
  auto [low, high] = std::minmax(start[axis], last);
  int64_t begin = 0;
  for (NodeId part : r.g[joined].inputs) {
    int64_t end = begin + r.g[part].shape[axis];
    if (low >= begin && high < end) {
      start[axis] -= begin;
      return slice(r.g, part, start, step, node.shape);
    }
    begin = end;
  }
  return kNoNode;
}

NodeId slice_pad(Rewriter& r, NodeId id) {
  NodeId padded = r.g[id].inputs[0];
  if (r.g[padded].op != Op::Pad) return kNoNode;
  const Node node = r.g[id];
  NodeId x = r.g[padded].inputs[0];
  Shape start = per_axis(node, 0), step = per_axis(node, 1),
        low = per_axis(r.g[padded], 0);
  for (size_t i = 0; i < start.size(); ++i) {
    start[i] -= low[i];
    int64_t last = start[i] + (node.shape[i] - 1) * step[i];
    if (std::min(start[i], last) < 0 || std::max(start[i], last) >= r.g[x].shape[i])
      return kNoNode;
  }
  return slice(r.g, x, start, step, node.shape);
}

NodeId concat_concat(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  std::vector<NodeId> parts;
  for (NodeId part : node.inputs) {
    const Node& inner = r.g[part];
    if (inner.op != Op::Concat || inner.payload != node.payload || !r.used_once(part)) {
      parts.push_back(part);
      continue;
    }
    r.absorb(part);
    parts.insert(parts.end(), inner.inputs.begin(), inner.inputs.end());
  }
  if (parts == node.inputs) return kNoNode;
  return concat(r.g, parts, node.payload[0]);
}

// The slice that is a then b along the axis, where both are slices of one node.
static NodeId join_slices(Graph& g, NodeId a, NodeId b, size_t axis) {
  const Node first = g[a], second = g[b];
  if (first.op != Op::Slice || second.op != Op::Slice || first.inputs != second.inputs)
    return kNoNode;
  Shape start = per_axis(first, 0), step = per_axis(first, 1), extent = first.shape;
  Shape start2 = per_axis(second, 0), step2 = per_axis(second, 1);
  int64_t along = extent[axis] > 1 ? step[axis] : start2[axis] - start[axis];
  if (along == 0 || start2[axis] != start[axis] + extent[axis] * along) return kNoNode;
  if (second.shape[axis] > 1 && step2[axis] != along) return kNoNode;
  step[axis] = step2[axis] = along;
  start2[axis] = start[axis];
  if (start != start2 || step != step2) return kNoNode;
  extent[axis] += second.shape[axis];
  return slice(g, first.inputs[0], start, step, extent);
}

NodeId concat_slices(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  size_t axis = static_cast<size_t>(node.payload[0]);
  std::vector<NodeId> parts;
  for (NodeId part : node.inputs) {
    NodeId joined = parts.empty() ? kNoNode : join_slices(r.g, parts.back(), part, axis);
    if (joined == kNoNode)
      parts.push_back(part);
    else
      parts.back() = joined;
  }
  if (parts == node.inputs) return kNoNode;
  return concat(r.g, parts, node.payload[0]);
}

NodeId gather_slice(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  size_t axis = static_cast<size_t>(node.payload[0]);
  NodeId index = base_of(r.g, node.inputs[1]);
  const Shape shape = r.g[index].shape, data = r.g[node.inputs[0]].shape;
  int64_t count = node.shape[axis];
  if (!r.known(index) || shape[axis] != count || count < 2) return kNoNode;
  auto values = known_ints(r.g, index);
  if (!values) return kNoNode;
  int64_t inner = 1; // elements from one index along the axis to the next
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  int64_t first = (*values)[0], by = (*values)[static_cast<size_t>(inner)] - first;
  int64_t last = first + (count - 1) * by;
  if (by == 0 || std::min(first, last) < 0 || std::max(first, last) >= data[axis])
    return kNoNode;
  for (size_t i = 0; i < values->size(); ++i) {
    int64_t at = static_cast<int64_t>(i) / inner % count;
    if ((*values)[i] != first + at * by) return kNoNode;
  }
  Shape start(data.size(), 0), step(data.size(), 1);
  start[axis] = first;
  step[axis] = by;
  return slice(r.g, node.inputs[0], start, step, node.shape);
}

NodeId reduce_reduce(Rewriter& r, NodeId id) {
  const Node outer = r.g[id];
  NodeId middle = outer.inputs[0];
  const Node inner = r.g[middle];
  if (inner.op != outer.op || !r.used_once(middle)) return kNoNode;
  bool rounds = outer.op == Op::ReduceSum || outer.op == Op::ReduceProd;
  if (rounds && r.keep_rounding && is_float(outer.dtype)) return kNoNode;
  if (outer.op == Op::ReduceSum && r.g[inner.inputs[0]].op == Op::Mul) return kNoNode;
  r.absorb(middle);
  std::vector<int64_t> axes = inner.payload;
  axes.insert(axes.end(), outer.payload.begin(), outer.payload.end());
  return reduce(r.g, outer.op, inner.inputs[0], axes);
}

NodeId reduce_expand(Rewriter& r, NodeId id) {
  const Node node = r.g[id];
  NodeId big = node.inputs[0];
  if (r.g[big].op != Op::Expand) return kNoNode;
  NodeId x = r.g[big].inputs[0];
  Shape shape = r.g[big].shape;
  bool picks = node.op == Op::ReduceMin || node.op == Op::ReduceMax;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool reduced = std::ranges::find(node.payload, i) != node.payload.end();
    bool repeats = r.g[x].shape[i] != shape[i];
    // Equal elements along a reduced axis: any of them is the least. A kept axis
    // repeats what is computed once.
    if (repeats && (picks || !reduced)) shape[i] = 1;
    if (reduced && !(repeats && picks)) axes.push_back(static_cast<int64_t>(i));
  }
  if (shape == r.g[big].shape) return kNoNode;
  return expand(r.g, reduce(r.g, node.op, expand(r.g, x, shape), axes), node.shape);
}

} // namespace rules

} // namespace svod::rewrite
