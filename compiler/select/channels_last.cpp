#include "compiler/select/channels_last.h"

#include "compiler/select/group.h"

#include <algorithm>

namespace svod::select {

namespace {

constexpr size_t kPictureRank = 3, kChannels = 1;

class Layer {
public:
  Layer(const Graph& graph, const Grouping& grouping, std::map<NodeId, Layout>& layouts)
      : g(graph), grouping_(grouping), layouts_(layouts), fixed_(fixed_layouts(graph)) {}
  void run();

private:
  bool is_picture(NodeId n) const { return g[n].shape.size() >= kPictureRank; }
  NodeId picture_of(const Contraction& c, const Operand& operand) const;
  NodeId convolved(const Group& group) const;
  bool moves_sums(const Group& group) const;
  bool follows(const Group& group) const;
  void mark(NodeId n);

  const Graph& g;
  const Grouping& grouping_;
  std::map<NodeId, Layout>& layouts_;
  const std::set<NodeId> fixed_;
  std::set<NodeId> marked_;
};

void Layer::mark(NodeId n) {
  const auto found = layouts_.find(n);
  const size_t rank = g[n].shape.size();
  if (found == layouts_.end() || fixed_.count(n) != 0 || !is_picture(n) ||
      found->second != row_major(rank))
    return;
  marked_.insert(n);
  std::vector<int64_t>& order = found->second.order;
  std::rotate(order.begin() + kChannels, order.begin() + kChannels + 1, order.end());
}

// The picture that an operand is read from: stored, its channels are summed over, and all
// its other axes are walked along by what is computed.
NodeId Layer::picture_of(const Contraction& c, const Operand& operand) const {
  const auto view = std::ranges::find_if(
      operand.views, [&](const OperandView& v) { return grouping_.stored[v.node]; });
  if (view == operand.views.end() || !view->map || !is_picture(view->node))
    return kNoNode;
  auto sums = [&](size_t axis) {
    return std::ranges::find(c.reduced, axis) != c.reduced.end();
  };
  for (size_t axis = 0; axis < view->map->at.size(); ++axis) {
    if (g[view->node].shape[axis] == 1) continue;
    const std::vector<int64_t>& steps = view->map->at[axis].steps;
    bool summed = false, kept = false;
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i] != 0) (sums(i) ? summed : kept) = true;
    if (axis == kChannels ? kept || !summed : !kept) return kNoNode;
  }
  return view->node;
}

// The picture that the group's contraction with weights reads, if it is a convolution.
NodeId Layer::convolved(const Group& group) const {
  if (group.base == kNoNode || !is_reduce(g[group.base].op)) return kNoNode;
  const std::optional<Contraction> c = read_contraction(g, group.base);
  if (!c || !c->right().known || c->left().known) return kNoNode;
  return picture_of(*c, c->left());
}

// Whether the group computes one picture from others, some of which are marked, channel
// by channel and without another order of their elements.
bool Layer::follows(const Group& group) const {
  const Shape& shape = g[group.target].shape;
  bool reads = false, moves = false;
  visit_kernel(g, grouping_, group.root, [&](NodeId n) {
    if (grouping_.known[n]) return false;
    moves |= g[n].op == Op::Reshape || g[n].op == Op::Permute || g[n].op == Op::Gather;
    for (NodeId in : g[n].inputs)
      reads |= marked_.count(in) != 0 && g[in].shape.size() == shape.size() &&
               g[in].shape[kChannels] == g[group.root].shape[kChannels];
    return true;
  });
  return reads && !moves;
}

// Whether what becomes of the group's sums has their axes in another order.
bool Layer::moves_sums(const Group& group) const {
  bool moves = false;
  visit_kernel(g, grouping_, group.root, [&](NodeId n) {
    if (grouping_.known[n] || n == group.base) return false;
    moves |= g[n].op == Op::Permute;
    return true;
  });
  return moves;
}

void Layer::run() {
  for (const Group& group : grouping_.groups) {
    const NodeId picture = convolved(group);
    if (picture == kNoNode) continue;
    mark(picture);
    if (g[group.target].shape.size() == g[picture].shape.size() &&
        g[group.target].shape[0] == g[picture].shape[0] && !moves_sums(group))
      mark(group.target);
  }
  for (size_t before = 0; before != marked_.size();) {
    before = marked_.size();
    for (const Group& group : grouping_.groups)
      if (group.target != kNoNode && is_picture(group.target) &&
          g[group.root].shape.size() == g[group.target].shape.size() &&
          marked_.count(group.target) == 0 && follows(group))
        mark(group.target);
  }
}

} // namespace

void lay_channels_last(const Graph& g, const Grouping& grouping,
                       std::map<NodeId, Layout>& layouts) {
  Layer(g, grouping, layouts).run();
}

} // namespace svod::select
