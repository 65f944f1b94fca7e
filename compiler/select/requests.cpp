// Requests for values to be stored.
#include "compiler/select/requests.h"

#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/stage_work.h"
#include "compiler/rewrite/wide_channels.h"
#include "compiler/select/picture_edges.h"

#include <algorithm>

namespace svod::select {

std::string print(const Requests& requests) {
  std::string out;
  for (NodeId n : requests.stored) out += "store %" + std::to_string(n) + "\n";
  for (const auto& [n, layout] : requests.layouts)
    out += "lay %" + std::to_string(n) + " as " + svod::print(layout) + "\n";
  return out;
}

RequestFinder::RequestFinder(const Stored& stored, const std::set<NodeId>& results,
                             const Target& target, Requests& requests)
    : s_(stored), g(stored.graph), grouping_(stored.grouping), results_(results),
      machine_(target.machine()), lanes_(target.levels[0].lanes),
      copies_(target.kind == TargetKind::Linux && target.levels[0].has_vectors()),
      gpu_(target.kind == TargetKind::Gpu), rounds_factors_(target.levels.back().tf32),
      requests_(requests), fixed_(fixed_layouts(g)), users_(users_of(g)) {}

// A contraction that reads the model's input through a pad gets a padded copy: guards on
// every broadcast would cost more than the copy, where not the first and last positions
// alone need them.
void RequestFinder::store_padded_inputs() {
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
      if (fixed) requests_.stored.insert(n);
      // What is padded keeps its own kernel, with all that can follow a reduction.
      bool given = is_opaque(g[in].op) || g[in].op == Op::Result;
      if (fixed && !given && !is_view(g[in].op)) requests_.stored.insert(in);
    }
  }
}

// The copy of an input that was made wide to be copied by tensor cores' whole units.
void RequestFinder::store_widened_inputs() {
  for (const Group& group : grouping_.groups) {
    if (group.base == kNoNode) continue;
    const std::optional<Contraction> c = read_contraction(g, group.base);
    if (!c) continue;
    for (const OperandView& view : c->left().views)
      if (rewrite::is_widened_input(g, view.node, rounds_factors_))
        requests_.stored.insert(view.node);
  }
}

// The bytes that are made of a sum by what alone reads it, if any are.
static std::optional<NodeId> bytes_of(const Graph& g, const Users& users, NodeId n) {
  while (users[n].size() == 1 && byte_size(g[n].dtype) != 1) {
    const NodeId user = users[n][0];
    const bool maps = is_map(g[user].op) || g[user].op == Op::Cast ||
                      g[user].op == Op::Reshape || g[user].op == Op::Permute;
    if (!maps) break;
    n = user;
  }
  return byte_size(g[n].dtype) == 1 ? std::optional(n) : std::nullopt;
}

// What is made of a sum, element by element, of it and of known values alone.
static NodeId finished(const Graph& g, const Grouping& grouping, const Users& users,
                       NodeId n) {
  NodeId last = n;
  while (users[n].size() == 1) {
    const NodeId user = users[n][0];
    const bool alone = std::ranges::all_of(
        g[user].inputs, [&](NodeId in) { return in == n || grouping.known[in]; });
    const bool maps =
        is_map(g[user].op) || g[user].op == Op::Cast || g[user].op == Op::Reshape;
    if (!alone || !maps) break;
    n = user;
    if (byte_size(g[n].dtype) <= byte_size(g[last].dtype)) last = n;
  }
  return last;
}

// A sum that no kernel can take in is stored; where bytes are made of it, they are stored
// in its place. A GPU has the sum's kernel do all that follows for it alone: what is
// stored of a layer is then a picture, whose channels may lie last, and it may be
// narrower than sums are.
void RequestFinder::store_what_sums_become() {
  for (const Group& group : grouping_.groups) {
    const NodeId n = group.root;
    if (group.base != n || group.target != n || byte_size(g[n].dtype) < 4) continue;
    if (const std::optional<NodeId> bytes = bytes_of(g, users_, n))
      requests_.stored.insert(*bytes);
    else if (const NodeId last = finished(g, grouping_, users_, n); gpu_ && last != n)
      requests_.stored.insert(last);
  }
}

// Views that cut the positions of a tile otherwise than the tile is written out start
// from a stored result, and so do all results but one of those that meet in a kernel:
// tiles of three rows and halves of fourteen have no bound but the tensor. Where views
// take the channels apart, as before a pixel shuffle, no axis of the tile is one of
// lanes (256 channels of 64 x 64 pixels, shuffled by two: 10.0 ms, stored first 1.1).
void RequestFinder::store_results_below(NodeId below) {
  std::vector<NodeId> found;
  visit_kernel(g, grouping_, below, [&](NodeId n) {
    if (results_.count(n) != 0 && n != below) found.push_back(n);
    return true;
  });
  if (found.size() > 1) found.pop_back();
  for (NodeId n : found) requests_.stored.insert(n);
}

// A tile of rows that is written out into a part of a larger tensor where its lanes lie
// apart: one store per lane, each into another cache line (a tile with several columns
// fills them at least in part). It is stored by itself, and moved as squares.
void RequestFinder::store_scattered_tile(const Group& group, const ScheduledKernel& k) {
  const Shape& shape = g[group.root].shape;
  if (group.target == group.root || !k.has_lane_axis()) return;
  if (shape.size() < 3 || 2 * shape[1] < lanes_) return;
  std::set<int64_t> places;
  for (const Stage& s : k.stages) {
    int64_t stride = 0;
    const bool affine = k.indices.affine_in(s.index, *k.loops.lane, stride);
    if (s.kind == StageKind::Store && affine && stride > 1)
      places.insert(s.index.constant);
  }
  const bool columns =
      std::ranges::any_of(places, [&](int64_t p) { return places.count(p + 1) != 0; });
  if (places.size() < 2 || columns || !requests_.stored.insert(group.root).second) return;
  requests_.layouts[group.root] = blocked(shape.size(), 1, lanes_);
}

// Whether a buffer is read with lanes that no axis of it is, or there are none.
static bool gathers_lanes(const ScheduledKernel& k) {
  if (!k.has_lane_axis()) return true;
  return std::ranges::any_of(k.stages, [&](const Stage& s) {
    return std::ranges::any_of(loads_below(k, s.value), [&](ExprId id) {
      const Expr& load = k.exprs[id];
      return k.arguments[load.argument].kind == Argument::Kind::Buffer &&
             lane_access(k, load) == LaneAccess::Gathered;
    });
  });
}

// Elements of buffers that each position reads with lanes that are no neighbours: an
// instruction for each of them, written out one after the other.
static int64_t scattered_reads(const ScheduledKernel& k) {
  if (!k.has_lane_axis()) return 0;
  return std::ranges::count_if(k.exprs, [&](const Expr& load) {
    if (load.kind != Expr::Kind::Load ||
        k.arguments[load.argument].kind != Argument::Kind::Buffer)
      return false;
    const LaneAccess reads = lane_access(k, load);
    return reads == LaneAccess::Strided || reads == LaneAccess::Gathered;
  });
}

// Whether lanes are no neighbours in what is read nor in what is written.
static bool moves_lanes_apart(const ScheduledKernel& k) {
  return scattered_reads(k) != 0 && std::ranges::all_of(k.stages, [&](const Stage& s) {
           return s.kind != StageKind::Store ||
                  k.indices.coefficient(s.index, *k.loops.lane) > 1;
         });
}

// Windows that overlap read each element several times. Where views below them cut the
// channels otherwise than the result does, as those of a channel shuffle, what they are
// cut from is stored as the views leave it, with its channels in lanes. (Winograd's tiles
// of 40 shuffled channels: 865 us without lanes, 20 from a copy that takes 30.) So it is
// where channels are joined of parts shorter than a vector, as of slices of a picture.
void RequestFinder::store_below_windows(const Group& group, const ScheduledKernel& k) {
  const Shape& shape = g[group.root].shape;
  if (shape.size() < 4 || 2 * shape[1] < lanes_) return;
  const bool gathers = gathers_lanes(k);
  if (!gathers && !moves_lanes_apart(k)) return;
  visit_kernel(g, grouping_, group.root, [&](NodeId n) {
    if (grouping_.known[n]) return false;
    if (g[n].op != Op::Window) return true;
    const NodeId cut = g[n].inputs[0];
    if (!is_view(g[cut].op) || g[cut].op == Op::Window || grouping_.stored[cut] ||
        element_count(g[n].shape) <= element_count(g[cut].shape))
      return true;
    const NodeId whole = g[cut].op == Op::Pad ? g[cut].inputs[0] : cut;
    if (!gathers && !joins_slivers(g, whole, lanes_)) return true;
    const Shape& picture = g[cut].shape;
    requests_.stored.insert(cut);
    if (picture.size() >= 3 && 2 * picture[1] >= lanes_)
      requests_.layouts.emplace(cut, blocked(picture.size(), 1, lanes_));
    return false;
  });
}

// Whether an index takes quotients of what data says.
static bool divides_data(const IndexPool& pool, const Index& index) {
  return std::ranges::any_of(index.terms, [&](const auto& part) {
    const Term& t = pool.term(part.first);
    return (t.kind == Term::Kind::Div || t.kind == Term::Kind::Mod) &&
           pool.has_dynamic(t.of);
  });
}

// Elements that data picks through views which cut otherwise than what is stored take a
// division for each view and lane (Longformer's diagonals, 98304 elements: 1268 us). The
// views are copied, where they are not much larger than what is picked.
void RequestFinder::store_below_gathers(const Group& group, const ScheduledKernel& k) {
  constexpr int64_t kMuch = 4;
  const bool divides = std::ranges::any_of(k.exprs, [&](const Expr& e) {
    return e.kind == Expr::Kind::Load && divides_data(k.indices, e.index);
  });
  if (!divides) return;
  visit_kernel(g, grouping_, group.root, [&](NodeId n) {
    if (grouping_.known[n]) return false;
    if (g[n].op != Op::Gather) return true;
    const NodeId picked = g[n].inputs[0];
    if (is_view(g[picked].op) && !grouping_.stored[picked] && !grouping_.known[picked] &&
        element_count(g[picked].shape) <= kMuch * element_count(g[n].shape))
      requests_.stored.insert(picked);
    return true;
  });
}

void RequestFinder::look_at_groups() {
  const size_t before = requests_.count();
  // Without vectors a guard costs no more than the read that it saves.
  if (lanes_ > 1) store_padded_inputs();
  if (gpu_) store_widened_inputs();
  // With the copies the cut is another.
  if (requests_.count() == before) store_what_sums_become();
}

// Whether a tile is written out several times over with lanes that lie apart, as where
// slices of its channels meet. (Eight slices of 24 channels, F(4x4, 3x3): 288 reads of 16
// elements each, which Clang did not compile in five minutes.)
static bool reads_tiles_apart(const ScheduledKernel& k) {
  constexpr int64_t kReadsOfTile = 64; // the products of F(6x6, 3x3)
  return scattered_reads(k) > kReadsOfTile;
}

void RequestFinder::look_at(const Group& group, const ScheduledKernel& kernel,
                            bool written_out) {
  const bool lacks_lanes = lanes_ != 1 && !kernel.has_lane_axis();
  if (!written_out || lacks_lanes || (lanes_ != 1 && reads_tiles_apart(kernel)))
    store_results_below(group.root);
  if (lanes_ == 1) return; // the rest is about lanes
  store_scattered_tile(group, kernel);
  if (copies_) store_below_windows(group, kernel);
  if (copies_) store_below_gathers(group, kernel);
  const bool reduces = group.base != kNoNode && is_reduce(g[group.base].op);
  const bool panels = reduces && copies_ && !gpu_ && lay_panels(group, kernel);
  const bool turned = panels || (reduces && turn_operands(group, kernel));
  if (copies_) turn_rows(group, kernel);
  if (copies_ && !gpu_ && reduces) turn_scattered(kernel);
  pad_rows(group);
  // An operand that is turned is read otherwise in the next round; rows are read as often
  // as they are passed, but from the first cache.
  if (copies_ && !turned && group.rows.empty())
    add_lane_reads(kernel, group.root, s_.buffers, reads_);
}

} // namespace svod::select
