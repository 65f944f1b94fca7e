// Requests for layouts, from how the loads of a kernel run along its lanes.
#include "compiler/select/requests.h"

#include "compiler/kernel/lane_facts.h"
#include "compiler/select/whole_rows.h"

#include <algorithm>

namespace svod::select {

// Rows that are no whole vectors are followed by zeros: reading them takes no masks, and
// all start at the same place in a cache line.
void RequestFinder::fill_last_vector(Layout& layout, const Shape& shape) const {
  auto last = static_cast<size_t>(layout.order.back());
  if (shape[last] > lanes_) layout.high[last] = -shape[last] & (lanes_ - 1);
}

bool RequestFinder::pad_vectors(BufferId id) {
  const Buffer& b = s_.buffers[id];
  if (fixed_.count(b.node) != 0 || requests_.layouts.count(b.node) != 0) return false;
  if (b.layout.has_border() || b.layout.block_axis >= 0) return false;
  Layout layout = b.layout;
  fill_last_vector(layout, b.shape);
  return layout.has_border() &&
         requests_.layouts.emplace(b.node, std::move(layout)).second;
}

// Stores an operand of the contraction with what only it has innermost: the reduced axes
// then step over whole vectors.
bool RequestFinder::put_kept_axes_innermost(NodeId contraction, const Factor& f,
                                            const Factor& other) {
  if (grouping_.known[f.node] || fixed_.count(f.node) != 0) return false;
  if (!requests_.stored.insert(f.node).second) return false;
  const Payload& axes = g[contraction].payload;
  Layout layout = row_major(g[f.node].shape.size());
  std::vector<int64_t> batch, kept, reduced;
  for (size_t axis = 0; axis < f.domain_axis.size(); ++axis) {
    int64_t d = f.domain_axis[axis];
    bool is_reduced = d >= 0 && std::ranges::count(axes, d) != 0;
    auto& list = is_reduced ? reduced : d < 0 || other.varies_along(d) ? batch : kept;
    list.push_back(static_cast<int64_t>(axis));
  }
  layout.order = batch;
  layout.order.insert(layout.order.end(), reduced.begin(), reduced.end());
  layout.order.insert(layout.order.end(), kept.begin(), kept.end());
  fill_last_vector(layout, g[f.node].shape);
  requests_.layouts[f.node] = layout;
  return true;
}

// A short sum along the lanes ends with sums across them, again and again. The operand
// that has the result's innermost axis is turned around, if it is used often enough.
bool RequestFinder::avoid_sums_across_lanes(const Group& group,
                                            const ScheduledKernel& k) {
  constexpr int64_t kShort = 512, kOften = 32;
  if (std::ranges::count(k.loops.inner[0], *k.loops.lane) == 0) return false;
  const NodeId base = group.innermost();
  const Node& sum = g[base];
  const Shape& domain = g[sum.inputs[0]].shape;
  int64_t steps = 1, last = -1;
  for (int64_t axis = 0; axis < static_cast<int64_t>(domain.size()); ++axis) {
    if (std::ranges::count(sum.payload, axis) != 0)
      steps *= domain[axis];
    else if (domain[axis] > 1)
      last = axis;
  }
  if (steps > kShort || last < 0 || domain[last] < 2 * lanes_) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Factor f = factor_of(g, sum.inputs[0], i);
    const Factor other = factor_of(g, sum.inputs[0], 1 - i);
    const int64_t uses = element_count(domain) / element_count(g[f.node].shape);
    if (grouping_.known[other.node] || !f.varies_along(last) ||
        other.varies_along(last) || uses < kOften)
      continue;
    return put_kept_axes_innermost(base, f, other);
  }
  return false;
}

// An operand whose elements are far apart along the lanes is stored with that axis
// innermost.
bool RequestFinder::turn_operands(const Group& group, const ScheduledKernel& k) {
  const NodeId base = group.innermost();
  if (base == kNoNode || !is_contraction(g, base) || !k.has_lane_axis()) return false;
  const Expr& v = k.exprs[k.stages[0].value];
  if (v.kind != Expr::Kind::Map || v.op != Op::Mul) return false;
  if (avoid_sums_across_lanes(group, k)) return true;
  for (size_t i = 0; i < 2; ++i) {
    for (ExprId id : loads_below(k, v.inputs[i])) {
      const Expr& load = k.exprs[id];
      if (k.arguments[load.argument].kind != Argument::Kind::Buffer) continue;
      int64_t stride = 0;
      bool affine = k.indices.affine_in(load.index, *k.loops.lane, stride) && stride >= 0;
      if (affine && stride == 0) continue;
      if (affine && stride == 1) {
        bool masked = !load.bounds.empty();
        if (masked && pad_vectors(k.arguments[load.argument].id)) return true;
        continue;
      }
      Factor f = factor_of(g, g[base].inputs[0], i);
      // Used once or twice each, as in a depthwise convolution: shuffled where it is
      // read.
      int64_t products = element_count(g[g[base].inputs[0]].shape);
      if (affine && stride <= kNearLanes &&
          products <= 2 * element_count(g[f.node].shape))
        continue;
      Factor other = factor_of(g, g[base].inputs[0], 1 - i);
      if (put_kept_axes_innermost(base, f, other)) return true;
    }
  }
  return false;
}

void RequestFinder::pad_rows(const Group& group) {
  const NodeId n = group.target;
  const Layout& now = s_.buffers[s_.buffer_of.at(n)].layout;
  if (fixed_.count(n) != 0 || requests_.layouts.count(n) != 0 ||
      now != row_major(now.order.size()))
    return;
  std::optional<Layout> whole = whole_rows(g, grouping_, users_, group, lanes_);
  if (whole) requests_.layouts.emplace(n, std::move(*whole));
}

} // namespace svod::select
