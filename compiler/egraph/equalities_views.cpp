// Helpers of the equalities on views: what a view and a scalar function, a factor or a
// sum are in the other order.
#include "compiler/egraph/equality_parts.h"
#include "compiler/ir/fold.h"
#include "compiler/rewrite/known_values.h"

#include <algorithm>

namespace svod::egraph {

using rewrite::Match;
using rewrite::pattern::Helper;
using rewrite::pattern::Nodes;

namespace {

// The view over another node.
NodeId view_of(Graph& g, const Node& view, NodeId x) {
  Node again = view;
  again.inputs = {x};
  return rebuild(g, again);
}

std::vector<int64_t> inverse_of(const Payload& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

// Whether the view takes each element of the axis once, in order.
bool keeps_axis(const Node& view, const Shape& from, size_t axis) {
  const size_t rank = from.size();
  const Payload& p = view.payload;
  if (view.op == Op::Window) return static_cast<size_t>(p[0]) != axis;
  if (view.op == Op::Pad) return p[axis] == 0 && p[rank + axis] == 0;
  return from[axis] == view.shape[axis] && (view.op == Op::Expand || p[axis] == 0) &&
         (view.op == Op::Expand || p[rank + axis] == 1);
}

// Outside of a pad there are zeros, which a finite factor leaves as they are.
bool pads_zeros(const Match& m, NodeId scale) {
  const Node& pad = m.root();
  const auto bits = static_cast<uint64_t>(pad.payload.back());
  if (bits != scalar_bits(pad.dtype, 0)) return false;
  return all_elements(m.r.g, scale, ValueQuestion::Finite, pad.dtype);
}

} // namespace

const Helper view_then_scale{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Node view = m.root();
  const Shape from = g[in[0]].shape;
  NodeId scale = rewrite::base_of(g, in[1]);
  Shape small = g[scale].shape;
  for (size_t axis = 0; axis < from.size(); ++axis)
    if (small[axis] != 1 && !keeps_axis(view, from, axis)) return kNoNode;
  if (view.op == Op::Pad && !pads_zeros(m, scale)) return kNoNode;
  if (view.op == Op::Window) small.push_back(1);
  scale = expand(g, reshape(g, scale, small), view.shape);
  return map(g, Op::Mul, {view_of(g, view, in[0]), scale});
}};

const Helper view_of_scaled{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Node view = m.node(rewrite::pattern::y);
  const Shape below = g[in[0]].shape;
  NodeId scale = rewrite::base_of(g, in[1]);
  if (view.op == Op::Permute) {
    scale = permute(g, scale, inverse_of(view.payload));
  } else {
    const auto small = rewrite::shape_through_reshape(g[scale].shape, view.shape, below);
    if (!small) return kNoNode;
    scale = reshape(g, scale, *small);
  }
  return view_of(g, view, map(g, Op::Mul, {in[0], expand(g, scale, below)}));
}};

const Helper map_of_views{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Node view = m.root(), scalar = g[in[0]];
  if (element_count(view.shape) == 0) return kNoNode;
  std::vector<NodeId> inputs;
  for (NodeId input : scalar.inputs) inputs.push_back(view_of(g, view, input));
  return map(g, scalar.op, std::move(inputs));
}};

// A form of the input that is a reshape or a permute, as `like` is one.
static NodeId find_view(const Match& m, NodeId input, const Node* like) {
  const Graph& g = m.r.g;
  for (NodeId form : m.r.of(input)) {
    const Node& node = g[form];
    if (node.op != Op::Reshape && node.op != Op::Permute) continue;
    if (like == nullptr) return form;
    const bool equal = node.op == like->op && node.payload == like->payload &&
                       g[node.inputs[0]].shape == g[like->inputs[0]].shape;
    if (equal) return form;
  }
  return kNoNode;
}

const Helper view_of_map{[](const Match& m, Nodes) {
  Graph& g = m.r.g;
  const Node root = m.root();
  NodeId first = kNoNode;
  for (NodeId input : root.inputs)
    if (first == kNoNode) first = find_view(m, input, nullptr);
  if (first == kNoNode) return kNoNode;
  const Node view = g[first];
  const Shape below = g[view.inputs[0]].shape;
  std::vector<NodeId> inputs;
  for (NodeId input : root.inputs) {
    if (const auto bits = splat_bits(g, input)) {
      inputs.push_back(constant_bits(g, g[input].dtype, below, *bits));
      continue;
    }
    const NodeId found = find_view(m, input, &view);
    if (found != kNoNode)
      inputs.push_back(g[found].inputs[0]);
    else if (m.r.known(input) && view.op == Op::Reshape)
      inputs.push_back(reshape(g, input, below));
    else if (m.r.known(input))
      inputs.push_back(permute(g, input, inverse_of(view.payload)));
    else
      return kNoNode;
  }
  return view_of(g, view, map(g, root.op, std::move(inputs)));
}};

const Helper sum_of_permuted{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Payload perm = m.root().payload;
  const std::vector<int64_t> to = inverse_of(perm);
  std::vector<int64_t> axes;
  for (int64_t axis : m.node(rewrite::pattern::y).payload)
    axes.push_back(to[static_cast<size_t>(axis)]);
  return reduce(g, Op::ReduceSum, permute(g, in[0], perm), axes);
}};

const Helper permuted_sum{[](const Match& m, Nodes in) {
  Graph& g = m.r.g;
  const Payload perm = m.node(rewrite::pattern::y).payload;
  std::vector<int64_t> axes;
  for (int64_t axis : m.root().payload) axes.push_back(perm[static_cast<size_t>(axis)]);
  return permute(g, reduce(g, Op::ReduceSum, in[0], axes), perm);
}};

} // namespace svod::egraph
