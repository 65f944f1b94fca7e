// The first fusion: one cut by rule, then a few rounds in which kernels that would read
// badly ask for a value to be stored in a better order. Every decision is in the data of
// the result (layouts, stages, splits, chunks), so a search can replace the rules without
// touching what follows.
#include "compiler/fuse.h"

#include "compiler/contraction/contraction.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/lower/lower.h"
#include "compiler/optimize/choose.h"
#include "compiler/optimize/make_kernel.h"
#include "compiler/select/algorithms.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/select/chain.h"
#include "compiler/select/group.h"
#include "compiler/select/magnitudes.h"
#include "compiler/select/picture_edges.h"
#include "compiler/select/whole_rows.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

namespace {

// What later kernels ask of the cut.
struct Wishes {
  std::set<NodeId> forced;
  LayoutHints hints;
};

class Fuser {
public:
  Fuser(const Algorithms& algorithms, const Target& target, Wishes& wishes)
      : g(algorithms.graph), unrolled_(algorithms.unrolled), results_(algorithms.results),
        lanes_(target.levels[0].lanes), level_(target.levels.back()), wishes_(wishes),
        fixed_(fixed_layouts(g)), users_(users_of(g)) {}
  // False: the wishes grew, start again.
  bool run(FusedGraph& out);

private:
  void make_buffers();
  Stored stored() { return {g, grouping_, out_->buffers, buffer_of_, out_->packed}; }
  void add_region(NodeId node);
  Argument region_input(NodeId node);
  bool wish_padded_inputs();
  bool wish_narrow_results();
  bool wish_results(NodeId below);
  bool wish_near_lanes(const Group& group, const ScheduledKernel& k);
  bool wish_kept_innermost(NodeId contraction, const OwnAxes& own, const OwnAxes& other);
  bool wish_no_sums_across(const Contraction& c, const ScheduledKernel& k);
  bool wish_for(const Group& group, const ScheduledKernel& kernel);
  bool wish_whole_rows(const Group& group);
  void pad_lanes(Layout& layout, const Shape& shape) const;
  bool wish_whole_vectors(BufferId id);
  void add_border(NodeId target);
  void add_call(NodeId call);

  const Graph& g;
  const std::set<NodeId>& unrolled_;
  const std::set<NodeId>& results_;
  int lanes_;
  const Level& level_; // chunks fit the tiles of the strongest
  Wishes& wishes_;
  std::set<NodeId> fixed_; // no wish changes how these lie in memory
  Users users_;
  Grouping grouping_;
  std::map<NodeId, BufferId> buffer_of_;
  std::set<NodeId> bordered_;
  FusedGraph* out_ = nullptr;
};

void Fuser::make_buffers() {
  std::map<NodeId, Layout> layouts = assign_layouts(g, grouping_, wishes_.hints, lanes_);
  for (const auto& [n, layout] : layouts) {
    buffer_of_[n] = static_cast<BufferId>(out_->buffers.size());
    out_->buffers.push_back({n, g[n].dtype, g[n].shape, layout, -1, {}});
  }
  for (size_t i = 0; i < g.inputs().size(); ++i)
    if (auto found = buffer_of_.find(g.inputs()[i].node); found != buffer_of_.end())
      out_->buffers[found->second].input = static_cast<int32_t>(i);
  for (size_t i = 0; i < g.outputs().size(); ++i)
    out_->buffers[buffer_of_.at(g.outputs()[i].node)].outputs.push_back(
        static_cast<int32_t>(i));
}

// A contraction that reads the model's input through a pad gets a padded copy: guards on
// every broadcast would cost more than the copy, where not the first and last positions
// alone need them.
bool Fuser::wish_padded_inputs() {
  bool grew = false;
  for (const Group& group : grouping_.groups) {
    if (group.base == kNoNode) continue;
    const std::optional<Contraction> c = read_contraction(g, group.base);
    if (!c) continue;
    for (size_t i = 0; i < 2; ++i) {
      const Operand& operand = c->of_input(i);
      const NodeId n = std::ranges::find_if(operand.views, [&](const OperandView& view) {
                         return grouping_.stored[view.node] ||
                                g[view.node].op == Op::Pad ||
                                view.node == operand.source();
                       })->node;
      if (g[n].op != Op::Pad || grouping_.known[n] || grouping_.stored[n]) continue;
      if (edges_apart(g, *c, operand, n, lanes_)) continue;
      NodeId in = g[n].inputs[0];
      bool fixed = fixed_.count(in) != 0 || !grouping_.stored[in] ||
                   (g[n].payload.back() != 0 && byte_size(g[n].dtype) != 1);
      if (fixed) grew |= wishes_.forced.insert(n).second;
      // What is padded keeps its own kernel, with all that can follow a reduction.
      bool given = is_opaque(g[in].op) || g[in].op == Op::Result;
      if (fixed && !given && !is_view(g[in].op)) wishes_.forced.insert(in);
    }
  }
  return grew;
}

// A sum that no kernel can take in is stored; where bytes are made of it, they are stored
// in its place.
bool Fuser::wish_narrow_results() {
  bool grew = false;
  for (const Group& group : grouping_.groups) {
    NodeId n = group.root;
    if (group.base != n || group.target != n || byte_size(g[n].dtype) < 4) continue;
    while (users_[n].size() == 1 && byte_size(g[n].dtype) != 1) {
      NodeId user = users_[n][0];
      bool maps = is_map(g[user].op) || g[user].op == Op::Cast ||
                  g[user].op == Op::Reshape || g[user].op == Op::Permute;
      if (!maps) break;
      n = user;
    }
    if (byte_size(g[n].dtype) == 1) grew |= wishes_.forced.insert(n).second;
  }
  return grew;
}

// Views that cut the positions of a tile otherwise than the tile is written out start
// from a stored result, and so do all results but one of those that meet in a kernel:
// tiles of three rows and halves of fourteen have no bound but the tensor.
bool Fuser::wish_results(NodeId below) {
  std::vector<NodeId> open = {below}, found;
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!seen.insert(n).second || (grouping_.stored[n] && n != below)) continue;
    if (results_.count(n) != 0) found.push_back(n);
    open.insert(open.end(), g[n].inputs.begin(), g[n].inputs.end());
  }
  if (found.size() > 1) found.pop_back();
  bool grew = false;
  for (NodeId n : found) grew |= wishes_.forced.insert(n).second;
  return grew;
}

// A tile of rows that is written out into a part of a larger tensor where its lanes lie
// apart: one store per lane, each into another cache line (a tile with several columns
// fills them at least in part). It is stored by itself, and moved as squares.
bool Fuser::wish_near_lanes(const Group& group, const ScheduledKernel& k) {
  const Shape& shape = g[group.root].shape;
  if (group.target == group.root || !k.has_lane_axis()) return false;
  if (shape.size() < 3 || 2 * shape[1] < lanes_) return false;
  std::set<int64_t> places;
  for (const Stage& s : k.stages) {
    int64_t stride = 0;
    const bool affine = k.indices.affine_in(s.index, *k.loops.lane, stride);
    if (s.kind == StageKind::Store && affine && stride > 1)
      places.insert(s.index.constant);
  }
  const bool columns =
      std::ranges::any_of(places, [&](int64_t p) { return places.count(p + 1) != 0; });
  if (places.size() < 2 || columns || !wishes_.forced.insert(group.root).second)
    return false;
  wishes_.hints[group.root] = blocked(shape.size(), 1, lanes_);
  return true;
}

// Rows that are no whole vectors are followed by zeros: reading them takes no masks, and
// all start at the same place in a cache line.
void Fuser::pad_lanes(Layout& layout, const Shape& shape) const {
  auto last = static_cast<size_t>(layout.order.back());
  if (shape[last] > lanes_) layout.high[last] = -shape[last] & (lanes_ - 1);
}

bool Fuser::wish_whole_vectors(BufferId id) {
  const Buffer& b = out_->buffers[id];
  if (fixed_.count(b.node) != 0 || wishes_.hints.count(b.node) != 0) return false;
  if (b.layout.has_border() || b.layout.block_axis >= 0) return false;
  Layout layout = b.layout;
  pad_lanes(layout, b.shape);
  return layout.has_border() && wishes_.hints.emplace(b.node, std::move(layout)).second;
}

// Stores an operand of the contraction with what only it has innermost: the reduced axes
// then step over whole vectors.
bool Fuser::wish_kept_innermost(NodeId contraction, const OwnAxes& own,
                                const OwnAxes& other) {
  if (grouping_.known[own.node] || fixed_.count(own.node) != 0) return false;
  if (!wishes_.forced.insert(own.node).second) return false;
  const Payload& axes = g[contraction].payload;
  Layout layout = row_major(g[own.node].shape.size());
  std::vector<int64_t> batch, kept, reduced;
  for (size_t axis = 0; axis < own.axes.size(); ++axis) {
    int64_t d = own.axes[axis];
    bool is_reduced = d >= 0 && std::ranges::count(axes, d) != 0;
    auto& list = is_reduced ? reduced : d < 0 || other.varies_along(d) ? batch : kept;
    list.push_back(static_cast<int64_t>(axis));
  }
  layout.order = batch;
  layout.order.insert(layout.order.end(), reduced.begin(), reduced.end());
  layout.order.insert(layout.order.end(), kept.begin(), kept.end());
  pad_lanes(layout, g[own.node].shape);
  wishes_.hints[own.node] = layout;
  return true;
}

// A short sum along the lanes ends with sums across them, again and again. The operand
// that has the result's innermost axis is turned around, if it is used often enough.
bool Fuser::wish_no_sums_across(const Contraction& c, const ScheduledKernel& k) {
  constexpr int64_t kShort = 512, kOften = 32;
  if (std::ranges::count(k.loops.inner[0], *k.loops.lane) == 0) return false;
  const Shape &domain = g[c.product].shape, &result = g[c.sum].shape;
  int64_t last = -1;
  for (int64_t axis = 0; axis < std::ssize(result); ++axis)
    if (result[axis] > 1) last = axis;
  if (c.terms() > kShort || last < 0 || domain[last] < 2 * lanes_) return false;
  for (size_t i = 0; i < 2; ++i) {
    const OwnAxes own = own_axes(g, c, c.of_input(i));
    const OwnAxes other = own_axes(g, c, c.of_input(1 - i));
    const int64_t uses = element_count(domain) / element_count(g[own.node].shape);
    if (grouping_.known[other.node] || !own.varies_along(last) ||
        other.varies_along(last) || uses < kOften)
      continue;
    return wish_kept_innermost(c.sum, own, other);
  }
  return false;
}

// An operand whose elements are far apart along the lanes is stored with that axis
// innermost.
bool Fuser::wish_for(const Group& group, const ScheduledKernel& k) {
  const NodeId base = group.innermost();
  if (base == kNoNode || !k.has_lane_axis()) return false;
  const std::optional<Contraction> c = read_contraction(g, base);
  if (!c) return false;
  const Expr& v = k.exprs[k.stages[0].value];
  if (v.kind != Expr::Kind::Map || v.op != Op::Mul) return false;
  if (wish_no_sums_across(*c, k)) return true;
  for (size_t i = 0; i < 2; ++i) {
    for (ExprId id : loads_below(k, v.inputs[i])) {
      const Expr& load = k.exprs[id];
      if (k.arguments[load.argument].kind != Argument::Kind::Buffer) continue;
      int64_t stride = 0;
      bool affine = k.indices.affine_in(load.index, *k.loops.lane, stride) && stride >= 0;
      if (affine && stride == 0) continue;
      if (affine && stride == 1) {
        bool masked = !load.bounds.empty();
        if (masked && wish_whole_vectors(k.arguments[load.argument].id)) return true;
        continue;
      }
      const OwnAxes own = own_axes(g, *c, c->of_input(i));
      // Used once or twice each, as in a depthwise convolution: shuffled where it is
      // read.
      int64_t products = element_count(g[c->product].shape);
      if (affine && stride <= kNearLanes &&
          products <= 2 * element_count(g[own.node].shape))
        continue;
      const OwnAxes other = own_axes(g, *c, c->of_input(1 - i));
      if (wish_kept_innermost(base, own, other)) return true;
    }
  }
  return false;
}

bool Fuser::wish_whole_rows(const Group& group) {
  const NodeId n = group.target;
  const Layout& now = out_->buffers[buffer_of_.at(n)].layout;
  if (fixed_.count(n) != 0 || wishes_.hints.count(n) != 0 ||
      now != row_major(now.order.size()))
    return false;
  std::optional<Layout> whole = whole_rows(g, grouping_, users_, group, lanes_);
  return whole && wishes_.hints.emplace(n, std::move(*whole)).second;
}

void Fuser::add_border(NodeId target) {
  BufferId id = buffer_of_.at(target);
  const Buffer& b = out_->buffers[id];
  if (!b.layout.has_border() || !bordered_.insert(target).second) return;
  ScheduledKernel border = lower_border(id, b, lanes_);
  choose_chunks(border, out_->packed, out_->buffers, level_);
  out_->kernels.push_back(std::move(border));
}

// The first output that is met makes the kernel of all.
void Fuser::add_call(NodeId call) {
  for (const ScheduledKernel& k : out_->kernels)
    if (k.call && std::ranges::find(k.nodes, call) != k.nodes.end()) return;
  Stored all = stored();
  out_->kernels.push_back(lower_call(call, all));
}

Argument Fuser::region_input(NodeId node) {
  const DType dtype = g[node].dtype;
  if (!grouping_.known[node])
    return {Argument::Kind::Buffer, buffer_of_.at(node), dtype, false, true};
  PackedWeight dense{node, dtype, {element_count(g[node].shape)}, {1}, 0, {}, 0};
  auto found = std::find(out_->packed.begin(), out_->packed.end(), dense);
  auto id = static_cast<PackedId>(found - out_->packed.begin());
  if (found == out_->packed.end()) out_->packed.push_back(std::move(dense));
  return {Argument::Kind::Packed, id, dtype, false, true};
}

// Its bodies are fused when the cut around it is settled.
void Fuser::add_region(NodeId node) {
  FusedRegion region;
  region.node = node;
  region.kernels_before = out_->kernels.size();
  for (NodeId input : g[node].inputs) region.inputs.push_back(region_input(input));
  const auto body = static_cast<uint32_t>(g[node].payload[0]);
  region.results.assign(g.body(body)->outputs().size(), kNoBuffer);
  for (const auto& [n, buffer] : buffer_of_) {
    if (n == node) region.value = buffer;
    if (g[n].op == Op::Result && g[n].inputs[0] == node)
      region.results[static_cast<size_t>(g[n].payload[0])] = buffer;
  }
  out_->regions.push_back(std::move(region));
}

bool Fuser::run(FusedGraph& out) {
  out_ = &out;
  grouping_ = group_nodes(g, wishes_.forced, unrolled_);
  if (wish_padded_inputs() || wish_narrow_results()) return false;
  make_buffers();
  bool grew = false;
  for (const Group& group : grouping_.groups) {
    if (has_body(g[group.root].op)) {
      add_region(group.root);
      continue;
    }
    if (element_count(g[group.root].shape) == 0) continue;
    if (g[group.root].op == Op::Call && group.target == group.root) {
      add_call(group.root);
      continue;
    }
    add_border(group.target);
    Stored all = stored();
    const Lower lower_group = [&](const LowerSpec& spec) {
      return lower(group, spec, all);
    };
    MadeKernel made = make_kernel(group, all, lower_group, lanes_, level_);
    out.kernels.push_back(std::move(made.kernel));
    if (!made.written_out && wish_results(group.root)) grew = true;
    if (wish_near_lanes(group, out.kernels.back())) grew = true;
    bool base = group.base != kNoNode && is_reduce(g[group.base].op);
    if (base && wish_for(group, out.kernels.back())) grew = true;
    if (wish_whole_rows(group)) grew = true;
  }
  return !grew;
}

} // namespace

FusedGraph fuse(const Graph& graph, const Target& target, bool direct_only) {
  Algorithms algorithms = choose_algorithms(graph, target, direct_only);
  Wishes wishes{algorithms.stored, algorithms.layouts};
  FusedGraph out;
  for (int round = 0; round < 5; ++round) {
    out = FusedGraph();
    if (Fuser(algorithms, target, wishes).run(out)) break;
  }
  find_chains(out, target.machine());
  drop_unused_weights(out);
  for (NodeId n : graph.live_nodes()) {
    OpClass c = info(graph[n].op).op_class;
    bool is_kernel = c != OpClass::Source && c != OpClass::View && c != OpClass::Region;
    if (is_kernel) ++out.unfused_kernels;
  }
  out.graph = std::move(algorithms.graph);
  out.chosen = std::move(algorithms.chosen);
  find_magnitudes(out);
  for (FusedRegion& region : out.regions) {
    const Node& node = out.graph[region.node];
    for (size_t b = 0; b < body_count(node.op); ++b) {
      const Graph& body = *out.graph.body(static_cast<uint32_t>(node.payload[b]));
      region.bodies.push_back(fuse(body, target, direct_only));
      out.unfused_kernels += region.bodies.back().unfused_kernels;
    }
  }
  return out;
}

} // namespace svod
