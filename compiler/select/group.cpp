// The cut, one pass over the nodes, readers before what they read. Each value not stored
// joins the groups of its readers. Softmax keeps its two reductions with their reader
// (rows), a convolution takes bias, activation and residual that follow it (base and
// epilogue), an elementwise chain is one kernel. What decides is how often a value would
// be evaluated.
#include "compiler/select/group.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/select/read_as.h"

#include <algorithm>
#include <map>

namespace svod::select {

// More inlined nodes than this would make kernels that compile slowly and spill.
static constexpr int kMaxGroupNodes = 64;

std::set<NodeId> fixed_layouts(const Graph& g) {
  std::set<NodeId> fixed;
  for (const GraphInput& input : g.inputs()) fixed.insert(input.node);
  for (const GraphOutput& output : g.outputs()) fixed.insert(output.node);
  for (NodeId n : g.live_nodes()) {
    if (!is_opaque(g[n].op) && g[n].op != Op::Result) continue;
    fixed.insert(n);
    if (g[n].op != Op::Result) fixed.insert(g[n].inputs.begin(), g[n].inputs.end());
  }
  return fixed;
}

namespace {

class Grouper {
public:
  Grouper(const Graph& graph, const std::set<NodeId>& forced, const FormSums& sums,
          const CutDecisions& decisions)
      : g(graph), forced_(forced), decisions_(decisions) {
    out_.sums = sums;
    for (NodeId n : sums.unrolled) in_place_.insert(g[n].inputs[0]);
    in_place_.insert(sums.unrolled.begin(), sums.unrolled.end());
  }
  Grouping run();

private:
  void find_users();
  void visit(NodeId n);
  void visit_region(NodeId n);
  void visit_reduce(NodeId n);
  bool joins_rows(NodeId n, Group& group) const;
  bool joins_base(NodeId n, const Group& group) const;
  bool nests(NodeId n, const Group& group) const;
  bool finishes_row(NodeId n, const Group& group) const;
  std::optional<StoreReason> needed_whole(NodeId n) const;
  bool spreads_rows(NodeId n, NodeId user) const;
  std::optional<StoreReason> not_inlined(NodeId n) const;
  double slices_of(NodeId n) const;
  bool repeats_numbers(NodeId n) const;
  bool is_costly_chain(NodeId n) const;
  bool can_unroll(NodeId n) const;
  bool part_of_one_concat(NodeId n) const;
  bool decided(NodeId n, bool by_rule);
  void store(NodeId n, StoreReason reason);
  void write_parts(NodeId concat, NodeId target, Shape start);
  Group& group_at(NodeId root) { return groups_.at(root); }
  int64_t count(NodeId n) const { return element_count(g[n].shape); }

  const Graph& g;
  const std::set<NodeId>& forced_;
  const CutDecisions& decisions_;
  std::set<NodeId> in_place_; // unrolled reductions and their products
  Grouping out_;
  std::vector<std::vector<NodeId>> users_; // live, unknown users
  std::vector<bool> is_output_;
  std::vector<bool> picked_; // inlined where a gather reads it, at positions of the run
  std::vector<bool>
      over_unrolled_; // computed from an unrolled reduction by maps and views
  // Of a node that is inlined (or a root): the roots whose kernels evaluate it, how
  // often, and whether its index there is the root's own (aligned) or a rearrangement of
  // it (bijective).
  std::vector<std::vector<NodeId>> roots_;
  std::vector<int64_t> evaluations_;
  std::vector<bool> aligned_, bijective_, is_root_;
  std::map<NodeId, Group> groups_;
  std::map<NodeId, int> sizes_;
};

void Grouper::find_users() {
  size_t n = g.size();
  users_.resize(n), roots_.resize(n), evaluations_.assign(n, 0);
  aligned_.assign(n, false), bijective_.assign(n, false), is_root_.assign(n, false);
  is_output_.assign(n, false), over_unrolled_.assign(n, false);
  picked_.assign(n, false);
  out_.live.assign(n, false), out_.known.assign(n, false), out_.stored.assign(n, false);
  for (NodeId id : g.live_nodes()) {
    const Node& node = g[id];
    out_.live[id] = true;
    bool passes = is_map(node.op) || is_view(node.op) || node.op == Op::Cast;
    over_unrolled_[id] = in_place_.count(id) != 0;
    for (NodeId in : node.inputs)
      if (passes && forced_.count(id) == 0 && over_unrolled_[in])
        over_unrolled_[id] = true;
    out_.known[id] = !g.depends_on_input(id);
    if (!out_.known[id])
      for (NodeId in : node.inputs)
        if (!out_.known[in]) users_[in].push_back(id);
  }
  for (const GraphOutput& output : g.outputs()) is_output_[output.node] = true;
}

void Grouper::store(NodeId n, StoreReason reason) {
  out_.stored[n] = true;
  out_.reasons.emplace(n, reason);
  is_root_[n] = true;
  roots_[n] = {n};
  evaluations_[n] = count(n);
  aligned_[n] = bijective_[n] = true;
  if (g[n].op == Op::Input) return;
  Group group(n, n, Shape(g[n].shape.size(), 0));
  // A concat is written by its parts' kernels; none of its own takes a reduction in.
  if (g[n].op == Op::Concat) group.target = kNoNode, group.base = n;
  groups_[n] = std::move(group);
}

bool Grouper::part_of_one_concat(NodeId n) const {
  if (users_[n].size() != 1 || is_output_[n]) return false;
  const Node& user = g[users_[n][0]];
  return user.op == Op::Concat &&
         std::count(user.inputs.begin(), user.inputs.end(), n) == 1;
}

bool Grouper::joins_rows(NodeId n, Group& group) const {
  const Node& reduce = g[n];
  if (group.base != kNoNode || group.unrolled || is_contraction(g, n)) return false;
  if (reduce.op == Op::ArgMin || reduce.op == Op::ArgMax) return false;
  if (g[reduce.inputs[0]].shape != g[group.root].shape) return false;
  if (!group.rows.empty() && group.row_axes != reduce.payload) return false;
  for (NodeId user : users_[n]) {
    Op op = g[user].op;
    bool keeps_index =
        is_map(op) || op == Op::Cast || op == Op::Expand || group.rows.count(user) != 0;
    if (!aligned_[user] || !keeps_index) return false;
  }
  return true;
}

bool Grouper::joins_base(NodeId n, const Group& group) const {
  if (group.base != kNoNode || group.unrolled || !group.rows.empty()) return false;
  if (count(n) != count(group.root)) return false;
  for (NodeId user : users_[n]) {
    Op op = g[user].op;
    bool rearranges = is_map(op) || op == Op::Cast || op == Op::Bitcast ||
                      op == Op::Reshape || op == Op::Permute;
    if (!bijective_[user] || !rearranges) return false;
  }
  return true;
}

// Whether n is summed on by the group's reduction, block by block: weights that differ
// from block to block, and nothing between the two sums but maps.
bool Grouper::nests(NodeId n, const Group& group) const {
  if (group.base == kNoNode || group.nested != kNoNode || group.unrolled) return false;
  if (g[group.base].op != Op::ReduceSum || g[n].dtype != DType::I32 ||
      evaluations_[n] != count(n))
    return false;
  const std::optional<Contraction> c = read_contraction(g, n);
  if (!c || !c->right().known) return false;
  const OwnAxes weights = own_axes(g, *c, c->right());
  if (byte_size(g[weights.node].dtype) != 1) return false;
  for (int64_t axis : g[group.base].payload)
    if (!weights.varies_along(axis)) return false;
  for (NodeId at = n; at != group.base; at = users_[at][0]) {
    bool maps = is_map(g[at].op) || g[at].op == Op::Cast || at == n;
    if (!maps || users_[at].size() != 1 || is_output_[at]) return false;
  }
  return true;
}

// Notes that n may be cut either way, and asks which: whether it is stored.
bool Grouper::decided(NodeId n, bool by_rule) {
  const auto elements = double(std::max<int64_t>(count(n), 1));
  const double evaluations = double(evaluations_[n]) * double(roots_[n].size());
  const bool stored =
      by_rule ? decisions_.inlined.count(n) == 0 : decisions_.stored.count(n) != 0;
  out_.choices.push_back({n, stored, evaluations / elements});
  return stored;
}

void Grouper::visit_reduce(NodeId n) {
  if (roots_[n].size() == 1 && !is_root_[n]) {
    Group& group = group_at(roots_[n][0]);
    const bool rows = joins_rows(n, group), base = !rows && joins_base(n, group);
    const bool nested = !rows && !base && nests(n, group);
    // What only maps come after is better off in their kernel: it is in registers there.
    const bool open = rows || nested || (base && !aligned_[n]);
    const bool apart = open && decided(n, false);
    if (apart) store(n, StoreReason::Searched);
    if (!apart && rows) {
      group.rows.insert(n);
      group.row_axes = g[n].payload;
      aligned_[n] = true;
      return;
    }
    if (!apart && base) {
      group.base = n;
      return;
    }
    if (!apart && nested) {
      group.nested = n;
      return;
    }
  }
  if (!is_root_[n]) store(n, StoreReason::Reduction);
  group_at(n).base = n;
}

// Written-out loops are over positions of the result: a reduction has none of its own.
bool Grouper::can_unroll(NodeId n) const {
  if (roots_[n].size() != 1) return false;
  const Group& group = groups_.at(roots_[n][0]);
  return group.base == kNoNode && group.rows.empty();
}

// Whether a row's reduction, which is visited after n, ends in n: 1 / sum of a softmax.
// It depends on no inner axis, so the compiler keeps it outside the inner loop.
bool Grouper::finishes_row(NodeId n, const Group& group) const {
  std::set<NodeId> seen; // values meet again behind several paths
  std::vector<NodeId> open{n};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    for (NodeId in : g[at].inputs) {
      if (out_.known[in] || g[in].shape != g[at].shape || !seen.insert(in).second)
        continue;
      if (is_reduce(g[in].op) && !is_contraction(g, in) &&
          g[g[in].inputs[0]].shape == g[group.root].shape)
        return true;
      if (is_map(g[in].op) || g[in].op == Op::Cast) open.push_back(in);
    }
  }
  return false;
}

// Whether evaluating n takes a costly function, of its own or of a map below it. Of
// x * sigmoid(x) with two readers the product is stored, in the kernel that makes x: x
// and its sigmoid, stored each, would take a kernel and two passes more.
bool Grouper::is_costly_chain(NodeId n) const {
  constexpr int kMostNodes = 16;
  std::vector<NodeId> open{n};
  for (int looked = 0; !open.empty() && looked < kMostNodes; ++looked) {
    const Node& node = g[open.back()];
    open.pop_back();
    if (is_costly(node.op)) return true;
    if (!is_map(node.op) && node.op != Op::Cast) continue;
    for (NodeId in : node.inputs)
      if (!out_.known[in] && !out_.stored[in]) open.push_back(in);
  }
  return false;
}

// How often all slices of n together would evaluate it: each kernel that reads one does.
double Grouper::slices_of(NodeId n) const {
  double evaluations = 0;
  for (NodeId user : users_[n])
    if (g[user].op == Op::Slice)
      evaluations += double(evaluations_[user]) * double(roots_[user].size());
  return evaluations / double(std::max<int64_t>(count(n), 1));
}

// Whether n is a row of numbers, several for each one that is computed, which are read
// again and again, as those of a group are by its channels. Computed where it is read, a
// number's place takes a quotient of the channel, which blocks of channels do not divide.
bool Grouper::repeats_numbers(NodeId n) const {
  constexpr int64_t kOften = 8;
  const Node& node = g[n];
  if (node.op != Op::Reshape || g[node.inputs[0]].op != Op::Expand) return false;
  const Shape& shape = node.shape;
  if (shape.size() < 3 || shape[0] * shape[1] != count(n)) return false;
  const Node& repeated = g[node.inputs[0]];
  const Shape& once = g[repeated.inputs[0]].shape;
  const bool inner = repeated.shape.size() == 3 && repeated.shape[0] == shape[0] &&
                     once[1] > 1 && once[2] == 1 && repeated.shape[2] > 1;
  return inner && evaluations_[n] >= kOften * count(n);
}

// Why n is not worth inlining: an inlined value is evaluated again for every position
// that reads it.
std::optional<StoreReason> Grouper::not_inlined(NodeId n) const {
  if (roots_[n].size() == 1 && sizes_.count(roots_[n][0]) != 0 &&
      sizes_.at(roots_[n][0]) >= kMaxGroupNodes)
    return StoreReason::Large;
  double repeats = double(evaluations_[n]) / double(std::max<int64_t>(count(n), 1));
  const Group* group = roots_[n].size() == 1 ? &groups_.at(roots_[n][0]) : nullptr;
  bool per_row = group != nullptr && aligned_[n] && group->base == kNoNode &&
                 (!group->rows.empty() || finishes_row(n, *group));
  if (per_row) return std::nullopt; // evaluated once per row, outside the inner loop
  if (roots_[n].size() > 1) {
    const bool twice = std::max(repeats * double(roots_[n].size()), slices_of(n)) <= 2;
    if (twice && !is_costly_chain(n)) return std::nullopt;
    return StoreReason::ManyReaders;
  }
  if (repeats <= 1.01 || (!is_costly(g[n].op) && repeats <= 2)) return std::nullopt;
  return StoreReason::Often;
}

// Whether n says of whole rows where a scatter puts them: an expansion of one number for
// each. Read where it is used, the number of a row is the same for all its elements,
// which are then added as vectors. (5000 rows of 128: 230 us to store their numbers and
// 830 to add them one by one, 129 together.)
bool Grouper::spreads_rows(NodeId n, NodeId user) const {
  const Node& scatter = g[user];
  return scatter.op == Op::Scatter && g[n].op == Op::Expand && scatter.inputs[1] == n &&
         scatter.inputs[0] != n && scatter.inputs[2] != n;
}

// Why n lies in memory whatever that costs, if it has to.
std::optional<StoreReason> Grouper::needed_whole(NodeId n) const {
  const Node& node = g[n];
  if (node.op == Op::Input) return StoreReason::Input;
  if (is_output_[n]) return StoreReason::Output;
  if (is_opaque(node.op)) return StoreReason::Call;
  if (node.op == Op::Scatter || node.op == Op::ArgSort ||
      info(node.op).op_class == OpClass::Scan)
    return StoreReason::MadeWhole;
  for (NodeId user : users_[n]) {
    const Op op = g[user].op;
    if (spreads_rows(n, user)) continue;
    if (op == Op::Scatter || op == Op::ArgSort || op == Op::Descend)
      return StoreReason::ReadWhole;
    if (op == Op::Call) return StoreReason::Call;
    if (has_body(op)) return StoreReason::Region;
    if (is_view(node.op)) continue;
    if (op == Op::Gather && g[user].inputs[0] == n) return StoreReason::Picked;
    if (op == Op::Concat && !part_of_one_concat(n)) return StoreReason::Part;
  }
  // What is joined on is a part of the larger join, unless its parts may begin within a
  // block of channels there.
  if (node.op == Op::Concat && (node.payload[0] == 1 || !part_of_one_concat(n)))
    return StoreReason::Joined;
  if (forced_.count(n) != 0) return StoreReason::Requested;
  return std::nullopt;
}

// Results of a region are written by it. Of the node itself only a loop's count is read.
void Grouper::visit_region(NodeId n) {
  store(n, is_output_[n] ? StoreReason::Output : StoreReason::Region);
  groups_.erase(n);
  if (!has_body(g[n].op)) return;
  groups_[n] = Group(n);
  out_.stored[n] = is_output_[n] || std::ranges::any_of(users_[n], [&](NodeId user) {
                     return g[user].op != Op::Result;
                   });
}

void Grouper::visit(NodeId n) {
  const Node& node = g[n];
  if (info(node.op).op_class == OpClass::Region) return visit_region(n);
  std::set<NodeId> roots;
  bool aligned = true, bijective = true;
  for (NodeId user : users_[n]) {
    Op op = g[user].op;
    if (op == Op::Scatter && !spreads_rows(n, user)) continue;
    roots.insert(roots_[user].begin(), roots_[user].end());
    if (op == Op::Gather ? g[user].inputs[0] == n : !is_root_[user] && picked_[user])
      picked_[n] = true;
    int64_t there = is_reduce(op) ? count(n) : evaluations_[user];
    evaluations_[n] = std::max(evaluations_[n], there);
    bool row = is_reduce(op) && !is_root_[user] && aligned_[user];
    bool keeps = is_map(op) || op == Op::Cast || op == Op::Expand;
    aligned = aligned && aligned_[user] && (keeps || row);
    bool moves = is_map(op) || op == Op::Cast || op == Op::Bitcast || op == Op::Reshape ||
                 op == Op::Permute;
    bijective = bijective && bijective_[user] && moves;
  }
  roots_[n].assign(roots.begin(), roots.end());
  aligned_[n] = aligned, bijective_[n] = bijective;

  const std::optional<StoreReason> whole = needed_whole(n);
  if (whole) store(n, *whole);
  if (!whole && part_of_one_concat(n)) {
    is_root_[n] = true;
    roots_[n] = {n};
    evaluations_[n] = count(n);
    aligned_[n] = bijective_[n] = true;
    groups_[n] = Group(n);
  }
  if (in_place_.count(n) != 0) {
    aligned_[n] = bijective_[n] = false;
    // Which of its numbers a sum takes is known where positions are.
    if (!is_root_[n] && (picked_[n] || !can_unroll(n))) store(n, StoreReason::WrittenOut);
    if (!is_root_[n]) group_at(roots_[n][0]).unrolled = true;
    return;
  }
  if (is_reduce(node.op)) return visit_reduce(n);
  if (!is_root_[n] && repeats_numbers(n)) return store(n, StoreReason::Often);
  if (is_root_[n] || is_view(node.op) || widens_where_read(g, n)) return;
  // The product of a contraction stays with its sum; its factors are asked in their turn.
  bool product = std::any_of(users_[n].begin(), users_[n].end(), [&](NodeId user) {
    return is_reduce(g[user].op) && is_contraction(g, user);
  });
  bool written_out = over_unrolled_[n] && !product && !can_unroll(n);
  const auto why = not_inlined(n);
  const bool by_rule = why && stored_by(*why) == StoredBy::Rule;
  if (why && !by_rule) return store(n, *why);
  if (written_out) return store(n, by_rule ? *why : StoreReason::WrittenOut);
  // What is evaluated once is not worth a store and a load.
  const bool again = roots_[n].size() > 1 || evaluations_[n] > count(n);
  if (by_rule || (again && !product))
    if (decided(n, by_rule)) return store(n, by_rule ? *why : StoreReason::Searched);
  for (NodeId root : roots_[n]) ++sizes_[root];
}

// Kernels that write the parts of `concat` into `target`, from `start` on.
void Grouper::write_parts(NodeId concat, NodeId target, Shape start) {
  const int64_t axis = g[concat].payload[0];
  for (NodeId part : g[concat].inputs) {
    auto own = groups_.find(part);
    const bool written = own != groups_.end() && !out_.stored[part];
    if (written && g[part].op == Op::Concat) {
      write_parts(part, target, start);
    } else {
      Group group(part, target, start);
      if (written) {
        group.base = own->second.base;
        group.nested = own->second.nested;
        group.rows = own->second.rows;
        group.row_axes = own->second.row_axes;
      }
      out_.groups.push_back(std::move(group));
    }
    start[axis] += g[part].shape[axis];
  }
}

Grouping Grouper::run() {
  find_users();
  std::vector<NodeId> order = g.live_nodes();
  for (size_t i = order.size(); i-- > 0;) {
    NodeId n = order[i];
    if (!out_.known[n]) visit(n);
    if (out_.known[n] && is_output_[n]) store(n, StoreReason::Output);
  }
  for (NodeId n : order) {
    if (g[n].op == Op::Concat && out_.stored[n] && !out_.known[n]) {
      write_parts(n, n, Shape(g[n].shape.size(), 0));
    } else if (has_body(g[n].op)) {
      out_.groups.push_back(groups_.at(n));
    } else if (groups_.count(n) != 0 && groups_.at(n).target != kNoNode) {
      // A scatter combines into a copy of its first input.
      if (g[n].op == Op::Scatter && !out_.known[n])
        out_.groups.emplace_back(g[n].inputs[0], n, Shape(g[n].shape.size(), 0));
      out_.groups.push_back(groups_.at(n));
    }
  }
  if (has_open_sizes(g))
    for (Group& group : out_.groups) group.read_as = read_as(g, users_, group);
  return std::move(out_);
}

} // namespace

Users users_of(const Graph& g) {
  Users users(g.size());
  for (NodeId n : g.live_nodes())
    for (NodeId in : g[n].inputs) users[in].push_back(n);
  return users;
}

Grouping group_nodes(const Graph& g, const std::set<NodeId>& forced, const FormSums& sums,
                     const CutDecisions& decisions) {
  return Grouper(g, forced, sums, decisions).run();
}

} // namespace svod::select
