#include "compiler/egraph/join_contractions.h"

#include <map>
#include <tuple>

namespace svod::egraph {

namespace {

// A sum of x * weights in which x repeats along one axis, its columns, and the weights do
// not. Both are under their expands, if there are any.
struct Columns {
  NodeId sum, x, weights;
  size_t axis;
};

NodeId below_expand(const Graph& g, NodeId id) {
  return g[id].op == Op::Expand ? g[id].inputs[0] : id;
}

std::optional<Columns> read_columns(const EGraph& e, NodeId sum, NodeId product) {
  const Graph& g = e.g;
  const Node& node = g[product];
  if (node.op != Op::Mul || !e.known(node.inputs[1]) || e.known(node.inputs[0]))
    return std::nullopt;
  const NodeId x = below_expand(g, node.inputs[0]),
               weights = below_expand(g, e.known_form(node.inputs[1]));
  const Payload& axes = g[sum].payload;
  for (size_t axis = 0; axis < node.shape.size(); ++axis) {
    const bool reduced =
        std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end();
    if (!reduced && node.shape[axis] > 1 && g[x].shape[axis] == 1 &&
        g[weights].shape[axis] == node.shape[axis])
      return Columns{sum, x, weights, axis};
  }
  return std::nullopt;
}

// The extents with the columns' axis left open.
Shape around(Shape shape, size_t axis) {
  shape[axis] = 0;
  return shape;
}

void join(EGraph& e, const std::vector<Columns>& all, std::vector<Site>& sites) {
  Graph& g = e.g;
  const size_t first = g.size();
  const size_t axis = all[0].axis;
  const Payload axes = g[all[0].sum].payload;
  Shape full = g[g[all[0].sum].inputs[0]].shape;
  std::vector<NodeId> weights;
  full[axis] = 0;
  for (const Columns& each : all) {
    weights.push_back(each.weights);
    full[axis] += g[each.weights].shape[axis];
  }
  const NodeId beside = concat(g, weights, static_cast<int64_t>(axis));
  const NodeId product =
      map(g, Op::Mul, {expand(g, all[0].x, full), expand(g, beside, full)});
  const NodeId sum = reduce(g, Op::ReduceSum, product, axes);
  int64_t start = 0;
  for (const Columns& each : all) {
    const int64_t extent = g[each.weights].shape[axis];
    const NodeId part = slice_axis(g, sum, static_cast<int64_t>(axis), start, extent);
    sites.push_back({each.sum, part});
    start += extent;
  }
  for (const Columns& each : all) {
    const std::vector<int32_t> sources = g.sources(each.sum);
    for (size_t fresh = first; fresh < g.size(); ++fresh)
      g.credit(static_cast<NodeId>(fresh), sources);
  }
  for (size_t i = sites.size() - all.size(); i < sites.size(); ++i)
    e.merge(sites[i].at, sites[i].form);
}

} // namespace

std::vector<Site> join_contractions(EGraph& e, const std::vector<NodeId>& live) {
  using Key = std::tuple<NodeId, size_t, Payload, Shape, Shape>;
  std::map<Key, std::vector<Columns>> side_by_side;
  for (NodeId id : live) {
    if (e.known(id) || e.g[id].op != Op::ReduceSum) continue;
    const auto found = read_columns(e, id, e.g[id].inputs[0]);
    if (!found) continue;
    const Shape full = e.g[e.g[id].inputs[0]].shape;
    side_by_side[{e.find(found->x), found->axis, e.g[id].payload,
                  around(full, found->axis),
                  around(e.g[found->weights].shape, found->axis)}]
        .push_back(*found);
  }
  std::vector<Site> joined;
  for (const auto& [key, all] : side_by_side)
    if (all.size() > 1) join(e, all, joined);
  return joined;
}

} // namespace svod::egraph
