// NCHW16c for convolutions: a tile of neighbouring pixels is then one contiguous run, the
// vector is channels, and there is no im2col. Values that stay row-major need no rule.
#include "compiler/select/assign_layouts.h"

#include "compiler/kernel/lane_pads.h"
#include "compiler/kernel/schedule.h"
#include "compiler/select/group.h"
#include "compiler/select/lane_reads.h"

#include <algorithm>
#include <functional>

namespace svod::select {

namespace {

class Assigner {
public:
  Assigner(const Graph& graph, const Grouping& grouping, const LayoutHints& hints,
           const BlockSizes& blocks, const RowsFirst& rows_first)
      : g(graph), grouping_(grouping), hints_(hints), rows_first_(rows_first),
        lanes_(blocks.lanes), bytes_(blocks.bytes), parts_(blocks.parts) {}
  std::map<NodeId, Layout> run();

private:
  std::set<int64_t> channel_axes(const Group& group) const;
  bool convolution_prefers(const Group& group) const;
  bool has_channels_of(NodeId n, const Shape& shape) const;
  int64_t channels_before(const Node& slice, int64_t channels) const;
  bool follows_blocked(NodeId root) const;
  bool prefers_blocked(const Group& group) const;
  bool pools_channels(const Group& group) const;
  bool concat_prefers(NodeId n) const;
  void find_lane_reads();
  bool is_copied(NodeId n) const;
  void find_copies(const Contraction& convolution);
  void find_dot_reads();
  void find_dot_channels(const Contraction& c);
  std::optional<OwnAxes> stored_axes(const Contraction& c, const Operand& operand) const;
  std::optional<Layout> dot_layout(const OwnAxes& own, int64_t reduced,
                                   int64_t column) const;
  void read_by_lanes(NodeId n, int64_t channels);
  Layout blocked_channels(NodeId n) const;
  void add_borders();
  void extend_rows(NodeId pad);
  void put_rows_first(const std::set<NodeId>& fixed);
  void leave_room();

  const Graph& g;
  const Grouping& grouping_;
  const LayoutHints& hints_;
  const RowsFirst& rows_first_;
  int lanes_, bytes_;
  bool parts_;
  std::map<NodeId, const Group*> group_of_; // by root
  std::set<NodeId> lane_reads_, dot_channels_;
  std::map<NodeId, Layout> dot_reads_;
  std::map<NodeId, Layout> out_;
};

// The axes of x that are this axis of its reshaped form y; none when it is a part of one.
static std::set<int64_t> axes_before_reshape(const Shape& x, const Shape& y,
                                             int64_t axis) {
  int64_t before = 1, size = y[axis];
  for (int64_t i = 0; i < axis; ++i) before *= y[i];
  std::set<int64_t> axes;
  for (size_t i = 0; i < x.size() && size > 1; ++i) {
    int64_t& left = before > 1 ? before : size;
    if (x[i] == 0 || left % x[i] != 0) return {};
    if (before == 1 && x[i] > 1) axes.insert(static_cast<int64_t>(i));
    left /= x[i];
  }
  return axes;
}

// The axes of the group's reduction that become axis 1 of its root; none when that is not
// clear.
std::set<int64_t> Assigner::channel_axes(const Group& group) const {
  std::map<NodeId, bool> leads; // to the base
  std::function<bool(NodeId)> visit = [&](NodeId n) {
    if (n == group.base) return true;
    if (auto found = leads.find(n); found != leads.end()) return found->second;
    bool any = false;
    if (n == group.root || !grouping_.stored[n])
      for (NodeId in : g[n].inputs) any |= visit(in);
    return leads[n] = any;
  };
  visit(group.root);
  std::set<int64_t> axes = {1};
  for (NodeId n = group.root; n != group.base;) {
    const Node& node = g[n];
    auto next = std::ranges::find_if(node.inputs, visit);
    if (next == node.inputs.end()) return {};
    std::set<int64_t> before;
    for (int64_t axis : axes) {
      if (node.op == Op::Permute)
        before.insert(node.payload[axis]);
      else if (node.op == Op::Reshape)
        before.merge(axes_before_reshape(g[*next].shape, node.shape, axis));
      else
        before.insert(axis);
    }
    axes = std::move(before);
    n = *next;
  }
  return axes;
}

bool Assigner::convolution_prefers(const Group& group) const {
  const Shape& shape = g[group.root].shape;
  if (shape.size() < 3 || shape[1] * 2 < lanes_) return false;
  if (group.nested != kNoNode) return false;
  const std::optional<Contraction> c = read_contraction(g, group.base);
  if (!c) return false;
  int64_t last = -1;
  for (size_t i = 0; i < g[group.base].shape.size(); ++i)
    if (g[group.base].shape[i] > 1) last = static_cast<int64_t>(i);
  const OwnAxes weight = own_axes(g, *c, c->right());
  bool spatial =
      std::any_of(shape.begin() + 2, shape.end(), [](int64_t e) { return e > 1; });
  // Axis 1 of a transposed result is no channel, nor are heads, whose known queries or
  // positions have columns of their own (8 heads of 64 known queries and 200 keys, half
  // of each block empty: 110 us, row by row 8).
  const std::set<int64_t> channel = channel_axes(group);
  const OwnAxes input = own_axes(g, *c, c->left());
  auto is_column = [&](int64_t a) {
    return weight.varies_along(a) && !input.varies_along(a);
  };
  bool columns = false;
  for (int64_t a = 0; a < std::ssize(g[c->product].shape); ++a)
    columns |= g[c->product].shape[static_cast<size_t>(a)] > 1 && is_column(a);
  auto is_channel = [&](int64_t a) {
    return columns ? is_column(a) : weight.varies_along(a);
  };
  return spatial && !weight.varies_along(last) && input.varies_along(last) &&
         (channel.empty() || std::ranges::any_of(channel, is_channel));
}

// Whether the channels of n, axis 1, are those of a result of this shape. Pictures that
// make up the result are as many first positions, and its groups are pictures
// (winograd.h).
bool Assigner::has_channels_of(NodeId n, const Shape& shape) const {
  const Shape& own = g[n].shape;
  const bool form = hints_.count(n) != 0 && shape[0] != 0;
  if (own[1] == shape[1]) return own[0] == shape[0] || (form && own[0] % shape[0] == 0);
  return form && own[1] % lanes_ == 0 && own[0] * own[1] == shape[0] * shape[1];
}

// Of how many channels the slice takes some; the channels it leaves, where it takes part
// of a block, which no value of whole blocks is.
int64_t Assigner::channels_before(const Node& slice, int64_t channels) const {
  const size_t rank = slice.shape.size();
  const Shape& from = g[slice.inputs[0]].shape;
  if (slice.op != Op::Slice || rank < 3 || slice.shape[1] != channels ||
      slice.payload[1] % lanes_ != 0 || slice.payload[rank + 1] != 1)
    return channels;
  return from[1];
}

// Whether the kernel of `root` reads a blocked value of root's own channels, or makes one
// on its way. They may be some of that value's: a gate multiplies one half of a
// convolution's channels by the other (64 of 128 channels, 2000 positions: row by row
// 500 us, blocked 160).
bool Assigner::follows_blocked(NodeId root) const {
  std::vector<std::pair<NodeId, Shape>> work = {{root, g[root].shape}};
  std::set<std::pair<NodeId, Shape>> seen;
  while (!work.empty()) {
    auto [n, shape] = std::move(work.back());
    work.pop_back();
    if (!seen.insert({n, shape}).second || grouping_.known[n]) continue;
    const bool stored = grouping_.stored[n] && n != root;
    const std::map<NodeId, Layout>& layouts = stored ? out_ : hints_;
    auto found = layouts.find(n);
    const bool blocks = found != layouts.end() && found->second.block_axis == 1 &&
                        found->second.block % lanes_ == 0;
    if (blocks && has_channels_of(n, shape)) return true;
    if (stored) continue;
    if (g[n].op == Op::Slice) shape[1] = channels_before(g[n], shape[1]);
    for (NodeId in : g[n].inputs) work.emplace_back(in, shape);
  }
  return false;
}

bool Assigner::prefers_blocked(const Group& group) const {
  const Shape& shape = g[group.root].shape;
  if (shape.size() < 3 || shape[1] * 2 < lanes_) return false;
  if (group.base != kNoNode && is_contraction(g, group.base))
    return convolution_prefers(group);
  if (pools_channels(group)) return true;
  OpClass c = info(g[group.root].op).op_class;
  if (c == OpClass::Scan || c == OpClass::Order || g[group.root].op == Op::Scatter)
    return false;
  return follows_blocked(group.root);
}

// Blocked where most of its parts are, or where it is read channel by channel. The latter
// pays even where a part begins within a block, and so is written element by element: a
// depthwise convolution of rows gathers its steps and scatters its results (36 and 36
// channels, 5x5, stride 2, AVX2: 450 us beside 110, and 30 s to compile).
bool Assigner::concat_prefers(NodeId n) const {
  const Node& node = g[n];
  int64_t axis = node.payload[0];
  if (node.shape.size() < 3 || node.shape[1] * 2 < lanes_) return false;
  if (dot_channels_.count(n) != 0) return true;
  if (joins_slivers(g, n, lanes_)) return false;
  if (lane_reads_.count(n) != 0) return true;
  int64_t start = 0, blocked = 0, total = 0;
  for (NodeId part : node.inputs) {
    if (axis == 1 && start % lanes_ != 0) return false;
    start += g[part].shape[axis];
    auto own = group_of_.find(part);
    bool prefers = own != group_of_.end() && !grouping_.stored[part]
                       ? prefers_blocked(*own->second)
                       : out_.count(part) != 0 && out_.at(part).block_axis == 1;
    if (!grouping_.stored[part] && own == group_of_.end())
      prefers = follows_blocked(part);
    total += element_count(g[part].shape);
    if (prefers) blocked += element_count(g[part].shape);
  }
  return blocked * 2 > total;
}

// A pooling: a reduction over windows along axes that are not the channels.
bool Assigner::pools_channels(const Group& group) const {
  if (group.base == kNoNode || !is_reduce(g[group.base].op)) return false;
  const std::set<int64_t> channel = channel_axes(group);
  if (!channel.empty() && channel.count(1) == 0) return false;
  const Node& base = g[group.base];
  if (base.shape.size() < 4 || base.shape[1] != g[group.root].shape[1]) return false;
  bool windows = false;
  NodeId n = base.inputs[0];
  for (; !grouping_.stored[n] && is_view(g[n].op); n = g[n].inputs[0]) {
    if (g[n].op == Op::Window && g[n].payload[0] == 1) return false;
    windows |= g[n].op == Op::Window;
    if (g[n].op == Op::Permute || g[n].op == Op::Expand) return false;
  }
  return windows && g[n].shape.size() >= 3 && g[n].shape[1] == base.shape[1];
}

void Assigner::read_by_lanes(NodeId n, int64_t channels) {
  while (!grouping_.stored[n] && is_view(g[n].op)) n = g[n].inputs[0];
  const Shape& shape = g[n].shape;
  if (!grouping_.known[n] && shape.size() >= 3 && shape[1] == channels)
    lane_reads_.insert(n);
}

// Whether n is copied together from other values, so that its layout costs no more than
// another: a padded copy, or a join whose parts begin with a block.
bool Assigner::is_copied(NodeId n) const {
  const Node& node = g[n];
  if (node.op == Op::Pad) return true;
  if (node.op != Op::Concat || node.payload[0] != 1) return false;
  return std::ranges::all_of(node.inputs,
                             [&](NodeId in) { return g[in].shape[1] % lanes_ == 0; });
}

// A copy of many channels, of which a convolution reads all at each position: row by row
// they would come from as many pages, more than the processor has at hand (80 channels of
// 3000 positions: 41 GFLOP/s, blocked 100).
void Assigner::find_copies(const Contraction& convolution) {
  for (const Operand& operand : convolution.operands) {
    NodeId n = own_axes(g, convolution, operand).node;
    while (!grouping_.stored[n] && is_view(g[n].op)) n = g[n].inputs[0];
    const Shape& shape = g[n].shape;
    if (grouping_.stored[n] && !grouping_.known[n] && shape.size() >= 3 &&
        shape[1] >= lanes_ && shape[1] % lanes_ == 0 && is_copied(n))
      lane_reads_.insert(n);
  }
}

// Bytes whose products are sums over channels: only neighbours can be multiplied four at
// a time (128 channels of 32 x 32 pixels that a slice had left row by row, 1x1, with dot
// products of AVX-512: 503 us, blocked 100).
void Assigner::find_dot_channels(const Contraction& c) {
  if (c.dtype != DType::I32 || !c.right().known) return;
  for (const OperandView& view : c.left().views) {
    if (!view.map) return;
    if (!grouping_.stored[view.node] || grouping_.known[view.node]) continue;
    const Node& node = g[view.node];
    const size_t rank = node.shape.size();
    if (!is_byte(node.dtype) || rank < 3 || node.shape[1] * 2 < lanes_) return;
    const auto run = run_of(view.map->at[1], node.shape[1], c.axes);
    if (run && !run->empty() && std::ranges::count(c.reduced, run->back()) != 0)
      dot_channels_.insert(view.node);
    return;
  }
}

// Depthwise convolutions and poolings work channel by channel: where theirs are lanes,
// those of what they read are, too.
void Assigner::find_lane_reads() {
  for (const Group& group : grouping_.groups) {
    if (group.base == kNoNode) continue;
    const std::optional<Contraction> c = read_contraction(g, group.base);
    if (c) find_dot_channels(*c);
    if (!prefers_blocked(group)) continue;
    if (pools_channels(group))
      read_by_lanes(g[group.base].inputs[0], g[group.root].shape[1]);
    if (!c) continue;
    find_copies(*c);
    int64_t channels = g[group.root].shape[1];
    if (g[c->product].shape[1] != channels) continue;
    const OwnAxes own[] = {own_axes(g, *c, c->left()), own_axes(g, *c, c->right())};
    if (!own[0].varies_along(1) || !own[1].varies_along(1)) continue;
    for (const OwnAxes& each : own) read_by_lanes(each.node, channels);
  }
}

// The first stored value that the operand is read from; nothing where a view above it
// mixes the product's axes.
std::optional<OwnAxes> Assigner::stored_axes(const Contraction& c,
                                             const Operand& operand) const {
  for (const OperandView& view : operand.views) {
    if (!grouping_.stored[view.node]) continue;
    const auto axes = whole_axes(g, c, view);
    if (!axes) break;
    return OwnAxes{view.node, *axes};
  }
  return std::nullopt;
}

// Columns of kDot bytes that one product sums; none where the factor lacks an axis or
// its sum is no whole number of them.
std::optional<Layout> Assigner::dot_layout(const OwnAxes& own, int64_t reduced,
                                           int64_t column) const {
  const auto& domain = own.axes;
  const int64_t summed = std::ranges::find(domain, reduced) - domain.begin();
  const int64_t across = std::ranges::find(domain, column) - domain.begin();
  const Shape& shape = g[own.node].shape;
  const int64_t rank = std::ssize(domain);
  if (summed == rank || across == rank || shape[static_cast<size_t>(summed)] % kDot != 0)
    return std::nullopt;
  Layout layout = blocked(shape.size(), summed, kDot);
  std::erase_if(layout.order, [&](int64_t a) { return a == summed || a == across; });
  layout.order.insert(layout.order.end(), {summed, across});
  // Whole vectors of columns: a guarded load is no dot product.
  const int64_t columns = shape[static_cast<size_t>(across)];
  layout.high[static_cast<size_t>(across)] = -columns & (lanes_ - 1);
  return layout;
}

// A product of bytes that both vary: the signed ones lie as dot products read weights,
// four of those that are summed beside each other, then the columns.
void Assigner::find_dot_reads() {
  for (const Group& group : grouping_.groups) {
    if (group.base == kNoNode) continue;
    const Node& sum = g[group.base];
    if (sum.dtype != DType::I32 || sum.payload.size() != 1) continue;
    const std::optional<Contraction> c = read_sum_of_products(g, group.base);
    if (!c || c->left().known || c->right().known) continue;
    int64_t column = static_cast<int64_t>(sum.shape.size()) - 1;
    while (column > 0 && sum.shape[static_cast<size_t>(column)] == 1) --column;
    for (const Operand& operand : c->operands) {
      if (operand.known) continue;
      const std::optional<OwnAxes> own = stored_axes(*c, operand);
      if (!own || g[own->node].dtype != DType::I8) continue;
      if (auto layout = dot_layout(*own, sum.payload[0], column))
        dot_reads_.emplace(own->node, std::move(*layout));
    }
  }
}

// A padded copy of bytes: a dot product over a row's last bytes may read past them, times
// zero.
void Assigner::extend_rows(NodeId pad) {
  const Node& node = g[pad];
  size_t rank = node.shape.size();
  Layout& layout = out_.at(pad);
  bool row = byte_size(node.dtype) == 1 && rank >= 3 && layout.block_axis < 0 &&
             layout.order == row_major(rank).order && node.payload[2 * rank - 1] > 0;
  if (!row || layout.has_border() || fixed_layouts(g).count(pad) != 0) return;
  layout.fill = static_cast<uint64_t>(node.payload[2 * rank]);
  layout.high[rank - 1] = kDot - 1;
}

// A stored value that is read through a pad gets a border as wide as the widest of them
// that have one value: zero before that of a pooling.
void Assigner::add_borders() {
  std::vector<NodeId> pads, others;
  for (NodeId n : g.live_nodes()) {
    if (g[n].op != Op::Pad || grouping_.known[n]) continue;
    if (grouping_.stored[n])
      extend_rows(n);
    else
      (g[n].payload.back() == 0 ? pads : others).push_back(n);
  }
  pads.insert(pads.end(), others.begin(), others.end());
  const std::set<NodeId> fixed = fixed_layouts(g);
  for (NodeId n : pads) {
    const Node& node = g[n];
    NodeId in = node.inputs[0];
    size_t rank = node.shape.size();
    const NodeId below = g[in].op == Op::Pad ? g[in].inputs[0] : kNoNode;
    if (below != kNoNode && !grouping_.stored[in] && grouping_.stored[below] &&
        pads_lanes(g[in], out_.at(below), g[below].shape))
      in = below;
    if (!grouping_.stored[in] || fixed.count(in) != 0 || rank < 3) continue;
    auto fill = static_cast<uint64_t>(node.payload[2 * rank]);
    Layout& layout = out_.at(in);
    bool fits = !layout.has_border() || layout.fill == fill;
    for (size_t i = 0; i < rank; ++i) {
      int64_t low = node.payload[i], high = node.payload[rank + i];
      bool any = low > 0 || high > 0;
      const bool blocks = layout.block_axis == static_cast<int64_t>(i);
      fits &= !any || (i >= 2 && !blocks) || pads_lanes(node, layout, g[in].shape, i);
      fits &= low + high <= g[in].shape[i] + 2;
    }
    if (!fits) continue;
    layout.fill = fill;
    // A dot product over a row's last bytes may read past them, times zero: neighbours
    // in a row, or, channel by channel, those of a window as wide as its pads ask.
    int64_t beyond = 0;
    if (byte_size(node.dtype) == 1 && node.payload[2 * rank - 1] > 0) {
      const int64_t window = node.payload[rank - 1] + node.payload[2 * rank - 1] + 1;
      if (layout.block_axis < 0) beyond = kDot - 1;
      if (lane_reads_.count(in) != 0) beyond = -window & (kDot - 1);
    }
    for (size_t i = 0; i < rank; ++i) {
      if (layout.block_axis == static_cast<int64_t>(i)) continue;
      layout.low[i] = std::max(layout.low[i], node.payload[i]);
      layout.high[i] =
          std::max(layout.high[i], node.payload[rank + i] + (i + 1 == rank ? beyond : 0));
    }
  }
}

// Where rows move in memory they move by words: one with a border ends with one.
void Assigner::put_rows_first(const std::set<NodeId>& fixed) {
  for (const NodeId n : rows_first_) {
    const auto found = out_.find(n);
    if (found == out_.end() || fixed.count(n) != 0) continue;
    Layout& layout = found->second;
    const Shape& shape = g[n].shape;
    if (shape.size() != 4 || layout.order != row_major(4).order) continue;
    std::swap(layout.order[1], layout.order[2]);
    if (!layout.has_border() || layout.block_axis >= 0) continue;
    constexpr int64_t kWord = 4;
    const int64_t column = shape[1] * byte_size(g[n].dtype);
    while ((shape[3] + layout.low[3] + layout.high[3]) * column % kWord != 0)
      ++layout.high[3];
  }
}

// What moves on from run to run lies in one memory with what comes behind it.
void Assigner::leave_room() {
  for (const StateLink& state : g.states()) {
    if (state.axis < 0) continue;
    const NodeId in = g.inputs()[state.input].node, out = g.outputs()[state.output].node;
    const auto axis = static_cast<size_t>(state.axis);
    const int64_t rows = g[in].shape[axis] + state.grown * state.period;
    for (const NodeId n : {in, out}) {
      const auto found = out_.find(n);
      if (found == out_.end()) continue; // nobody reads it
      found->second.room.assign(g[n].shape.size(), 0);
      found->second.room[axis] = rows - g[n].shape[axis];
    }
  }
}

Layout Assigner::blocked_channels(NodeId n) const {
  const Node& node = g[n];
  int64_t block = lanes_;
  if (byte_size(node.dtype) == 1 && bytes_ > lanes_ && !(parts_ && lane_reads_.count(n)))
    for (block = bytes_; block > lanes_ && node.shape[1] % block != 0;)
      block = parts_ ? block - lanes_ : lanes_;
  return blocked(node.shape.size(), 1, block);
}

std::map<NodeId, Layout> Assigner::run() {
  const std::set<NodeId> fixed = fixed_layouts(g);
  for (const Group& group : grouping_.groups) group_of_[group.root] = &group;
  if (lanes_ > 1) find_lane_reads(), find_dot_reads();
  for (NodeId n : g.live_nodes()) {
    if (!grouping_.stored[n]) continue;
    size_t rank = g[n].shape.size();
    Layout layout = row_major(rank);
    bool free = lanes_ > 1 && fixed.count(n) == 0 && !grouping_.known[n];
    if (free && dot_reads_.count(n) != 0) {
      layout = dot_reads_.at(n);
    } else if (free && hints_.count(n) != 0) {
      layout = hints_.at(n);
    } else if (free) {
      auto group = group_of_.find(n);
      bool is_concat = g[n].op == Op::Concat;
      bool wants =
          is_concat ? concat_prefers(n)
                    : lane_reads_.count(n) != 0 || dot_channels_.count(n) != 0 ||
                          (group != group_of_.end() && prefers_blocked(*group->second));
      if (wants) layout = blocked_channels(n);
    }
    out_[n] = std::move(layout);
  }
  if (lanes_ > 1) add_borders();
  put_rows_first(fixed);
  leave_room();
  return std::move(out_);
}

} // namespace

std::map<NodeId, Layout> assign_layouts(const Graph& g, const Grouping& grouping,
                                        const LayoutHints& hints,
                                        const BlockSizes& blocks,
                                        const RowsFirst& rows_first) {
  return Assigner(g, grouping, hints, blocks, rows_first).run();
}

} // namespace svod::select
