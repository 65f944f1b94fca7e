#include "compiler/rewrite/known_values.h"

#include "compiler/rewrite/rule_parts.h"

#include <algorithm>

namespace svod::rewrite {

NodeId base_of(Graph& g, NodeId id) {
  if (g[id].op == Op::Expand) return g[id].inputs[0];
  if (auto bits = splat_bits(g, id))
    return constant_bits(g, g[id].dtype, Shape(g[id].shape.size(), 1), *bits);
  return id;
}

NodeId one_element(Graph& g, NodeId id) {
  NodeId base = base_of(g, id);
  if (element_count(g[base].shape) != 1) return kNoNode;
  return reshape(g, base, {});
}

NodeId over_result(Graph& g, NodeId scalar, const Shape& shape) {
  return expand(g, reshape(g, scalar, Shape(shape.size(), 1)), shape);
}

NodeId join_known(Graph& g, Op op, NodeId c, NodeId d) {
  const Shape full = g[c].shape;
  c = base_of(g, c), d = base_of(g, d);
  Shape joined = g[c].shape;
  for (size_t i = 0; i < joined.size(); ++i)
    if (joined[i] == 1) joined[i] = g[d].shape[i];
  int64_t larger = std::max(element_count(g[c].shape), element_count(g[d].shape));
  if (element_count(joined) > larger) return kNoNode;
  return expand(g, map(g, op, {expand(g, c, joined), expand(g, d, joined)}), full);
}

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

NodeId softmax_sum(const Graph& g, NodeId quotient) {
  NodeId sum = kNoNode;
  match(GraphForms(g), exp_over_sum(), quotient, [&](const Found& found) {
    const NodeId divisor = found.letters[pattern::y.index];
    if (g[found.letters[pattern::w.index]].payload != g[divisor].payload) return false;
    sum = divisor;
    return true;
  });
  return sum;
}

} // namespace svod::rewrite
