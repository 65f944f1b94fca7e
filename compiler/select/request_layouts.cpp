// Requests for layouts, from how the loads of a kernel run along its lanes.
#include "compiler/select/requests.h"

#include "compiler/kernel/lane_facts.h"
#include "compiler/select/panels.h"
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
bool RequestFinder::put_kept_axes_innermost(NodeId contraction, const OwnAxes& own,
                                            const OwnAxes& other) {
  if (grouping_.known[own.node] || fixed_.count(own.node) != 0) return false;
  if (!requests_.stored.insert(own.node).second) return false;
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
  fill_last_vector(layout, g[own.node].shape);
  requests_.layouts[own.node] = layout;
  return true;
}

// The last axis of the contraction's result with more than one position; -1 where there
// is none.
static int64_t columns_of(const Graph& g, const Contraction& c) {
  const Shape& result = g[c.sum].shape;
  for (int64_t axis = std::ssize(result); axis-- > 0;)
    if (result[static_cast<size_t>(axis)] > 1) return axis;
  return -1;
}

// Turns the operand around that has the columns, if each of its elements is in enough
// products for a copy to pay.
bool RequestFinder::put_columns_innermost(const Contraction& c, int64_t columns) {
  constexpr int64_t kOften = 32;
  const int64_t products = element_count(g[c.product].shape);
  for (size_t i = 0; i < 2; ++i) {
    const OwnAxes own = own_axes(g, c, c.of_input(i));
    const OwnAxes other = own_axes(g, c, c.of_input(1 - i));
    if (own.varies_along(columns) && !other.varies_along(columns) &&
        !grouping_.known[other.node] &&
        products / element_count(g[own.node].shape) >= kOften)
      return put_kept_axes_innermost(c.sum, own, other);
  }
  return false;
}

// A short sum along the lanes ends with sums across them, again and again. The operand
// that has the result's innermost axis is turned around, if it is used often enough.
bool RequestFinder::avoid_sums_across_lanes(const Contraction& c,
                                            const ScheduledKernel& k) {
  constexpr int64_t kShort = 512;
  if (std::ranges::count(k.loops.inner[0], *k.loops.lane) == 0) return false;
  const Shape& domain = g[c.product].shape;
  const int64_t last = columns_of(g, c);
  if (c.terms() > kShort || last < 0 || domain[last] < 2 * lanes_) return false;
  return put_columns_innermost(c, last);
}

// Columns that lie in short pieces where they are read, as the even and odd rows of
// Strassen's form do, are no lanes. Rows in their place scatter each vector of results
// over as many lines. (Scores of 196 tokens, 6 heads: 335 us, from a copy of the keys,
// which takes 17, 195.)
bool RequestFinder::join_columns(const Contraction& c, const ScheduledKernel& k) {
  const Stage& last = k.stages.back();
  const int64_t columns = columns_of(g, c);
  int64_t apart = 0;
  if (columns < 0 || last.kind != StageKind::Store || !k.inner(last).empty() ||
      !k.indices.affine_in(last.index, *k.loops.lane, apart) || apart <= 1)
    return false;
  const bool in_pieces = std::ranges::any_of(k.loops.outer, [&](AxisId a) {
    const int64_t extent = k.indices.extent(a);
    return k.indices.coefficient(last.index, a) == 1 && extent > 1 && extent < lanes_;
  });
  const Shape& domain = g[c.product].shape;
  if (!in_pieces || domain[static_cast<size_t>(columns)] < 2 * lanes_) return false;
  return put_columns_innermost(c, columns);
}

// Factors of a product of two tensors are stored in the order in which it reads them.
bool RequestFinder::lay_panels(const Group& group, const ScheduledKernel& k) {
  bool any = false;
  for (auto& [n, layout] : panels_of(g, grouping_, users_, group, k, machine_, lanes_)) {
    if (fixed_.count(n) != 0 || !requests_.layouts.emplace(n, layout).second) continue;
    requests_.stored.insert(n);
    any = true;
  }
  return any;
}

// An input of the model stays as it lies. What is multiplied with much more of it than it
// has itself is stored in the input's order, row by row, so that both have the steps of
// the sum as neighbours. (A flattened picture of 30752 in blocks times a matrix with as
// many columns: 36 ms, 6.6.)
bool RequestFinder::follow_given(const OwnAxes& given, const OwnAxes& small) {
  constexpr int64_t kSmaller = 32;
  return g[given.node].op == Op::Input && !grouping_.known[small.node] &&
         fixed_.count(small.node) == 0 &&
         element_count(g[small.node].shape) * kSmaller <=
             element_count(g[given.node].shape) &&
         requests_.stored.insert(small.node).second;
}

// An operand whose elements are far apart along the lanes is stored with that axis
// innermost.
bool RequestFinder::turn_operands(const Group& group, const ScheduledKernel& k) {
  const NodeId base = group.innermost();
  if (base == kNoNode || !k.has_lane_axis()) return false;
  const std::optional<Contraction> c = read_contraction(g, base);
  if (!c) return false;
  const Expr& v = k.exprs[k.stages[0].value];
  if (v.kind != Expr::Kind::Map || v.op != Op::Mul) return false;
  if (avoid_sums_across_lanes(*c, k) || join_columns(*c, k)) return true;
  for (size_t i = 0; i < 2; ++i) {
    for (ExprId id : loads_below(k, v.inputs[i])) {
      const Expr& load = k.exprs[id];
      if (k.arguments[load.argument].kind != Argument::Kind::Buffer) continue;
      int64_t stride = 0;
      bool affine = k.indices.affine_in(load.index, *k.loops.lane, stride) && stride >= 0;
      if ((affine && stride == 0) || shuffled_lanes(k, load)) continue;
      if (affine && stride == 1) {
        bool masked = !load.bounds.empty();
        if (masked && pad_vectors(k.arguments[load.argument].id)) return true;
        continue;
      }
      const OwnAxes own = own_axes(g, *c, c->of_input(i));
      // Used once or twice each, as in a depthwise convolution: shuffled where it is
      // read.
      int64_t products = element_count(g[c->product].shape);
      if (affine && stride <= kNearLanes &&
          products <= 2 * element_count(g[own.node].shape))
        continue;
      // Windows that a depthwise convolution reads once are not worth to be stored: they
      // are many times what they are cut from, which is turned instead (look_at_reads).
      const int64_t stored =
          element_count(s_.buffers[k.arguments[load.argument].id].shape);
      if (element_count(g[own.node].shape) > 2 * stored &&
          products <= 2 * element_count(g[own.node].shape))
        continue;
      const OwnAxes other = own_axes(g, *c, c->of_input(1 - i));
      if (put_kept_axes_innermost(base, own, other)) return true;
      if (follow_given(own, other)) return true;
    }
  }
  return false;
}

// Stores the padded form in which `reader` reads a value that has to stay as it is.
// Beyond a pad, which alone makes a value larger, its axes may be others.
void RequestFinder::store_padded_form(NodeId value, NodeId reader) {
  std::vector<NodeId> readers;
  visit_kernel(g, grouping_, reader, [&](NodeId n) {
    if (std::ranges::count(g[n].inputs, value) != 0) readers.push_back(n);
    return true;
  });
  if (readers.size() == 1 && readers[0] != reader && g[readers[0]].op == Op::Pad)
    requests_.stored.insert(readers[0]);
}

// Values that are read again and again with lanes that lie apart are turned: the
// transform of Winograd's tiles reads each element twice, a depthwise convolution nine
// times. (Tiles of 40 channels of a concatenation, guarded lane by lane: 1590 us, of 48
// blocked ones 8.)
void RequestFinder::look_at_reads() {
  constexpr double kAgain = 1.5;
  for (const auto& [id, reads] : reads_) {
    const Buffer& b = s_.buffers[id];
    const auto most = std::ranges::max_element(
        reads.apart, {}, [](const auto& axis) { return axis.second; });
    if (most == reads.apart.end() ||
        most->second < kAgain * double(element_count(b.shape)))
      continue;
    const auto [axis, apart] = *most;
    const bool channels = b.shape.size() >= 3 && axis == 1;
    // A vector of which most lanes are empty is no gain.
    if (b.shape[static_cast<size_t>(axis)] * (channels ? 2 : 1) < lanes_) continue;
    if (fixed_.count(b.node) != 0 || requests_.layouts.count(b.node) != 0 ||
        apart <= reads.near || (channels && joins_slivers(g, b.node, lanes_))) {
      store_padded_form(b.node, reads.reader);
      continue;
    }
    const size_t rank = b.shape.size();
    Layout layout = row_major(rank);
    if (channels) {
      layout = blocked(rank, 1, lanes_);
    } else {
      std::erase(layout.order, axis);
      layout.order.push_back(axis);
      fill_last_vector(layout, b.shape);
    }
    requests_.layouts.emplace(b.node, std::move(layout));
  }
}

// Rows that are written side by side and read apart, as where the channels of a picture
// are normalised into tokens: one of both takes an instruction for each lane, whichever
// axis has them (128 channels of 40 x 40 pixels: 306 us). The picture has its channels in
// lanes.
void RequestFinder::turn_rows(const Group& group, const ScheduledKernel& k) {
  const Stage& last = k.stages.back();
  if (group.rows.empty() || last.kind != StageKind::Store) return;
  auto written = [&](AxisId a) { return k.indices.coefficient(last.index, a) == 1; };
  const auto row = std::ranges::find_if(k.inner(last), written);
  if (row == k.inner(last).end()) return;
  for (const Expr& load : k.exprs) {
    int64_t apart = 0;
    if (load.kind != Expr::Kind::Load ||
        k.arguments[load.argument].kind != Argument::Kind::Buffer ||
        !k.indices.affine_in(load.index, *row, apart) || apart <= kNearLanes)
      continue;
    const Buffer& b = s_.buffers[k.arguments[load.argument].id];
    const size_t rank = b.shape.size();
    if (rank < 3 || b.layout != row_major(rank) || fixed_.count(b.node) != 0) continue;
    // Behind axis 1, the channels, lie those of a group, of which it has the number.
    int64_t positions = element_count(b.shape) / b.shape[0];
    for (size_t axis = 1; axis + 1 < rank; ++axis) {
      positions /= b.shape[axis];
      if (apart != positions || b.shape[axis] % lanes_ != 0) continue;
      requests_.layouts.emplace(b.node,
                                blocked(rank, static_cast<int64_t>(axis), lanes_));
      break;
    }
  }
}

// A picture that is read with pixels as lanes while its channels are neighbours in what
// is written, as where a depthwise layer's result goes to tokens: each lane is stored by
// itself, at distances that share the sets of a cache (256 channels of 16 x 16 pixels,
// 3x3: 152 us). Where nobody else reads the picture, its channels are in lanes instead.
// A copy reads each element once, so that either side may be the one that it turns.
void RequestFinder::turn_scattered(const ScheduledKernel& k) {
  const Stage& last = k.stages.back();
  int64_t between = 0;
  if (!k.has_lane_axis() || last.kind != StageKind::Store ||
      !k.indices.affine_in(last.index, *k.loops.lane, between) || between <= kNearLanes)
    return;
  const std::vector<AxisId> loops = loops_of(k, last);
  const auto neighbour = std::ranges::find_if(loops, [&](AxisId a) {
    int64_t step = 0;
    return k.indices.affine_in(last.index, a, step) && step == 1;
  });
  if (neighbour == loops.end()) return;
  for (const Expr& load : k.exprs) {
    int64_t of_lane = 0, of_channel = 0;
    if (load.kind != Expr::Kind::Load ||
        k.arguments[load.argument].kind != Argument::Kind::Buffer ||
        !k.indices.affine_in(load.index, *k.loops.lane, of_lane) || of_lane <= 0 ||
        of_lane > kNearLanes || !k.indices.affine_in(load.index, *neighbour, of_channel))
      continue;
    const Buffer& b = s_.buffers[k.arguments[load.argument].id];
    const size_t rank = b.shape.size();
    if (rank < 3 || b.layout.block_axis >= 0 || b.layout.order != row_major(rank).order ||
        b.shape[1] % lanes_ != 0 || dims_of(b.layout, b.shape).strides[1] != of_channel ||
        fixed_.count(b.node) != 0 || users_[b.node].size() != 1)
      continue;
    requests_.layouts.emplace(b.node, blocked(rank, 1, lanes_));
  }
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
