// Helpers of the rules on views, joins and reductions. What a view needs is in its
// payload, so these compute payloads.
#include "compiler/rewrite/known_values.h"
#include "compiler/rewrite/rule_parts.h"

#include <algorithm>

namespace svod::rewrite {

using pattern::Helper;
using pattern::Nodes;

// Entries of the part-th per-axis list of a payload.
static Shape per_axis(const Node& node, size_t part) {
  size_t rank = node.shape.size();
  auto begin = node.payload.begin() + static_cast<std::ptrdiff_t>(part * rank);
  return Shape(begin, begin + static_cast<std::ptrdiff_t>(rank));
}

const Helper reshaped_small{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  auto shape =
      shape_through_reshape(g[in[0]].shape, m.node(pattern::y).shape, m.root().shape);
  return shape ? reshape(g, in[0], *shape) : kNoNode;
}};

const Helper permuted{
    [](const Match& m, Nodes in) { return permute(m.r.g, in[0], m.root().payload); }};

const Helper sliced_small{[](const Match& m, Nodes in) {
  const Shape small = m.r.g[in[0]].shape, full = m.node(pattern::y).shape;
  Shape start = per_axis(m.root(), 0), step = per_axis(m.root(), 1),
        extent = m.root().shape;
  for (size_t i = 0; i < small.size(); ++i)
    if (small[i] != full[i]) start[i] = 0, step[i] = 1, extent[i] = 1;
  return slice(m.r.g, in[0], start, step, extent);
}};

const Helper part_of_concat{[](const Match& m, Nodes in) {
  const Node &root = m.root(), &joined = m.r.g[in[0]];
  size_t axis = static_cast<size_t>(joined.payload[0]);
  Shape start = per_axis(root, 0), step = per_axis(root, 1);
  int64_t last = start[axis] + (root.shape[axis] - 1) * step[axis];
  auto [low, high] = std::minmax(start[axis], last);
  int64_t begin = 0;
  for (NodeId part : joined.inputs) {
    int64_t end = begin + m.r.g[part].shape[axis];
    if (low >= begin && high < end) {
      start[axis] -= begin;
      return slice(m.r.g, part, start, step, root.shape);
    }
    begin = end;
  }
  return kNoNode;
}};

const Helper inside_of_pad{[](const Match& m, Nodes in) {
  const Node &root = m.root(), &x = m.r.g[in[0]];
  Shape start = per_axis(root, 0), step = per_axis(root, 1),
        low = per_axis(m.node(pattern::y), 0);
  for (size_t i = 0; i < start.size(); ++i) {
    start[i] -= low[i];
    int64_t last = start[i] + (root.shape[i] - 1) * step[i];
    if (std::min(start[i], last) < 0 || std::max(start[i], last) >= x.shape[i])
      return kNoNode;
  }
  return slice(m.r.g, in[0], start, step, root.shape);
}};

const Helper without_inner_concats{[](const Match& m, Nodes) {
  const Node& root = m.root();
  std::vector<NodeId> parts;
  for (NodeId part : root.inputs) {
    const Node& inner = m.r.g[part];
    if (inner.op != Op::Concat || inner.payload != root.payload || !m.r.used_once(part)) {
      parts.push_back(part);
      continue;
    }
    m.replaced.push_back(part);
    parts.insert(parts.end(), inner.inputs.begin(), inner.inputs.end());
  }
  return parts == root.inputs ? kNoNode : concat(m.r.g, parts, root.payload[0]);
}};

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

const Helper with_slices_joined{[](const Match& m, Nodes) {
  const Node& root = m.root();
  size_t axis = static_cast<size_t>(root.payload[0]);
  std::vector<NodeId> parts;
  for (NodeId part : root.inputs) {
    NodeId joined =
        parts.empty() ? kNoNode : join_slices(m.r.g, parts.back(), part, axis);
    if (joined == kNoNode)
      parts.push_back(part);
    else
      parts.back() = joined;
  }
  return parts == root.inputs ? kNoNode : concat(m.r.g, parts, root.payload[0]);
}};

// First element and step along the axis where an index of known values takes `count`
// elements at one distance, the same ones everywhere else. One element has the step 1.
static std::optional<std::pair<int64_t, int64_t>>
regular_index(Graph& g, NodeId index, size_t axis, int64_t count) {
  index = base_of(g, index);
  const Shape shape = g[index].shape;
  const auto values = known_ints(g, index);
  if (!values || shape[axis] != count || count < 1) return std::nullopt;
  int64_t inner = 1; // elements from one index along the axis to the next
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t first = (*values)[0],
                step = count == 1 ? 1 : (*values)[static_cast<size_t>(inner)] - first;
  for (size_t i = 0; i < values->size(); ++i) {
    int64_t at = static_cast<int64_t>(i) / inner % count;
    if ((*values)[i] != first + at * step) return std::nullopt;
  }
  return std::pair(first, step);
}

const Helper regular_slice{[](const Match& m, Nodes in) {
  const Node& root = m.root();
  const Shape data = m.r.g[in[0]].shape;
  const size_t axis = static_cast<size_t>(root.payload[0]);
  const int64_t count = root.shape[axis];
  const auto index = regular_index(m.r.g, in[1], axis, count);
  if (!index || count == 1) return kNoNode;
  const auto [first, by] = *index;
  const int64_t last = first + (count - 1) * by;
  if (by == 0 || std::min(first, last) < 0 || std::max(first, last) >= data[axis])
    return kNoNode;
  Shape start(data.size(), 0), step(data.size(), 1);
  start[axis] = first;
  step[axis] = by;
  return slice(m.r.g, in[0], start, step, root.shape);
}};

// What exporters write for x[:, a:b] = z: positions of a scatter that all follow each
// other. A join is written in place by what makes its parts.
const Helper with_rows_between{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const int64_t axis = m.root().payload[0], how = m.root().payload[1];
  const auto at = static_cast<size_t>(axis);
  const int64_t count = g[in[2]].shape[at], whole = m.root().shape[at];
  if (how != static_cast<int64_t>(Combiner::Set)) return kNoNode;
  const auto index = regular_index(g, in[1], at, count);
  if (!index || index->second != 1) return kNoNode;
  const int64_t first = index->first, after = first + count;
  if (first < 0 || after > whole) return kNoNode;
  std::vector<NodeId> parts = {in[2]};
  if (first > 0) parts.insert(parts.begin(), slice_axis(g, in[0], axis, 0, first));
  if (after < whole) parts.push_back(slice_axis(g, in[0], axis, after, whole - after));
  return parts.size() == 1 ? parts[0] : concat(g, parts, axis);
}};

const Helper over_axes_of_both{[](const Match& m, Nodes in) {
  std::vector<int64_t> axes = m.node(pattern::y).payload;
  axes.insert(axes.end(), m.root().payload.begin(), m.root().payload.end());
  return reduce(m.r.g, m.root().op, in[0], axes);
}};

const Helper reduced_small{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Node& root = m.root();
  const Shape& full = m.node(pattern::y).shape;
  Shape shape = full;
  bool picks = root.op == Op::ReduceMin || root.op == Op::ReduceMax;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool reduced = std::ranges::find(root.payload, i) != root.payload.end();
    bool repeats = g[in[0]].shape[i] != shape[i];
    // Equal elements along a reduced axis: any of them is the least. A kept axis
    // repeats what is computed once.
    if (repeats && (picks || !reduced)) shape[i] = 1;
    if (reduced && !(repeats && picks)) axes.push_back(static_cast<int64_t>(i));
  }
  if (shape == full) return kNoNode;
  return expand(g, reduce(g, root.op, expand(g, in[0], shape), axes), root.shape);
}};

} // namespace svod::rewrite
