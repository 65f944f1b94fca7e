// What views, concats and gathers do to an index on its way down.
#include "compiler/ir/build.h"
#include "compiler/kernel/lane_pads.h"
#include "compiler/lower/lowering.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::lower {

// Position in `from` as position in `to`, group by group of axes with equal products, so
// that axes that stay apart never meet in one quotient.
static At reshape_at(IndexPool& pool, const At& at, const Shape& from, const Shape& to) {
  At out(to.size());
  if (element_count(from) == 0) return out;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= from[i++];
      else
        b *= to[j++];
    }
    Index linear;
    for (size_t x = i0; x < i; ++x)
      linear = IndexPool::add(IndexPool::scale(linear, from[x]), at[x]);
    linear = pool.recombine(std::move(linear));
    // Axes of one position ahead stay at it, also for lanes beyond the last element.
    while (j0 + 1 < j && to[j0] == 1) ++j0;
    for (size_t x = j; x-- > j0;) {
      out[x] = x == j0 ? linear : pool.mod(linear, to[x]);
      if (x != j0) linear = pool.div(linear, to[x]);
    }
  }
  return out;
}

ExprId Lowering::view(NodeId n, const At& at) {
  const Node& node = g[n];
  NodeId in = node.inputs[0];
  const Shape& shape = g[in].shape;
  At inner(shape.size());
  switch (node.op) {
  case Op::Reshape:
    inner = reshape_at(pool(), at, node.shape, shape);
    break;
  case Op::Permute:
    for (size_t i = 0; i < at.size(); ++i) inner[node.payload[i]] = at[i];
    break;
  case Op::Expand:
    for (size_t i = 0; i < at.size(); ++i)
      if (shape[i] == node.shape[i]) inner[i] = at[i];
    break;
  case Op::Slice:
    for (size_t i = 0; i < at.size(); ++i) {
      Index start = IndexPool::constant(node.payload[i]);
      inner[i] =
          IndexPool::add(start, IndexPool::scale(at[i], node.payload[at.size() + i]));
    }
    break;
  case Op::Window: {
    int64_t axis = node.payload[0], stride = node.payload[2], dilation = node.payload[3];
    for (size_t i = 0; i < shape.size(); ++i) inner[i] = at[i];
    inner[axis] = IndexPool::add(IndexPool::scale(at[axis], stride),
                                 IndexPool::scale(at.back(), dilation));
    break;
  }
  case Op::Pad:
    return pad(n, at);
  default:
    SVOD_CHECK(false) << "no view: " << info(node.op).text;
  }
  return value(in, inner);
}

// What always lies outside is no place of a tensor: its value is not asked for.
bool Lowering::never_holds(const Bound& bound) {
  const Range r = pool().range(bound.index);
  return r.high < bound.low || r.low >= bound.high;
}

const Buffer* Lowering::stored_buffer(NodeId n) const {
  const auto found = s_.buffer_of.find(n);
  const bool stored = s_.grouping.stored[n] && found != s_.buffer_of.end();
  return stored ? &s_.buffers[found->second] : nullptr;
}

// The value below a pad that asks for no more than the zeros that end its last block.
NodeId Lowering::below_lane_pads(NodeId n) const {
  if (g[n].op != Op::Pad || s_.grouping.stored[n]) return n;
  const NodeId in = g[n].inputs[0];
  const Buffer* b = stored_buffer(in);
  return b != nullptr && pads_lanes(g[n], b->layout, b->shape) ? in : n;
}

ExprId Lowering::pad(NodeId n, const At& at) {
  const Node& node = g[n];
  NodeId in = node.inputs[0];
  const Shape& shape = g[in].shape;
  size_t rank = at.size();
  uint64_t bits = static_cast<uint64_t>(node.payload[2 * rank]);
  At inner(rank);
  std::vector<Bound> conditions;
  const NodeId below = below_lane_pads(in);
  const Buffer* b = stored_buffer(below);
  bool in_border = b != nullptr;
  std::vector<Bound> border; // conditions without those of the last block's lanes
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = node.payload[i], high = node.payload[rank + i];
    inner[i] = IndexPool::add(at[i], IndexPool::constant(-low));
    const bool any = low != 0 || high != 0;
    if (any) conditions.push_back({inner[i], 0, shape[i]});
    if (!in_border) continue;
    const bool lanes = static_cast<int64_t>(i) == b->layout.block_axis;
    if (any && !lanes) border.push_back(conditions.back());
    Range there = physical_range(b->layout, b->shape, i), wanted = pool().range(inner[i]);
    in_border = wanted.low >= there.low && wanted.high <= there.high &&
                (!any || bits == (lanes ? 0 : b->layout.fill));
  }
  if (in_border) {
    ExprId child = value(in, inner);
    if (bits == 0) zero_outside_[child] = std::move(border);
    return child;
  }
  if (std::ranges::any_of(conditions, [&](const Bound& b) { return never_holds(b); })) {
    Expr outside{Expr::Kind::Constant, node.dtype};
    outside.bits = bits;
    return k().add(std::move(outside));
  }
  size_t before = conditions_.size();
  conditions_.insert(conditions_.end(), conditions.begin(), conditions.end());
  ExprId child = value(in, inner);
  conditions_.resize(before);
  const Expr& c = k().exprs[child];
  bool covered = c.kind == Expr::Kind::Load && c.bits == 0 && before == 0;
  if (covered && bits == 0) return child;
  // The load knows where the tensor ends: it gives the pad's value there itself.
  if (covered && !c.bounds.empty()) {
    Expr padded = c;
    padded.bits = bits;
    return k().add(std::move(padded));
  }
  Expr e{Expr::Kind::Guard, node.dtype};
  for (Bound& b : conditions) {
    Range r = pool().range(b.index);
    if (r.low < b.low || r.high >= b.high) e.bounds.push_back(std::move(b));
  }
  if (e.bounds.empty()) return child;
  e.bits = bits;
  e.inputs = {child};
  return k().add(std::move(e));
}

// Only where a concat is not stored: each part where the position lies in it.
ExprId Lowering::concat(NodeId n, const At& at) {
  const Node& node = g[n];
  int64_t axis = node.payload[0], start = 0;
  ExprId result = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    NodeId part = node.inputs[i];
    At inner = at;
    inner[axis] = IndexPool::add(at[axis], IndexPool::constant(-start));
    int64_t extent = g[part].shape[axis];
    size_t before = conditions_.size();
    conditions_.push_back({inner[axis], 0, extent});
    ExprId child = value(part, inner);
    conditions_.resize(before);
    if (i != 0) {
      Expr inside{Expr::Kind::Guard, DType::Bool};
      inside.bounds = {{inner[axis], 0, extent}};
      Expr yes{Expr::Kind::Constant, DType::Bool};
      yes.bits = 1;
      inside.inputs = {k().add(yes)};
      Expr pick{Expr::Kind::Map, node.dtype, Op::Select};
      pick.inputs = {k().add(inside), child, result};
      child = k().add(pick);
    }
    result = child;
    start += extent;
  }
  return result;
}

// Lanes beyond an axis and the side of a join or a pad that is not chosen compute an
// index from nothing: it is 0 there, so that it is not taken for one out of range.
ExprId Lowering::index_where_needed(NodeId index, const At& at) {
  Expr guard{Expr::Kind::Guard, g[index].dtype};
  guard.bounds = overflow(at, g[index].shape);
  for (const Bound& b : conditions_) {
    Range r = pool().range(b.index);
    if (r.low < b.low || r.high >= b.high) guard.bounds.push_back(b);
  }
  ExprId child = value(index, at);
  // A load has these bounds itself.
  if (guard.bounds.empty() || k().exprs[child].kind == Expr::Kind::Load) return child;
  guard.inputs = {child};
  return k().add(std::move(guard));
}

// Known positions, as those of a resize, are checked here and never again.
bool Lowering::known_below(NodeId index, int64_t limit) const {
  auto keeps_values = [](Op op) {
    return op == Op::Expand || op == Op::Reshape || op == Op::Permute;
  };
  while (keeps_values(g[index].op)) index = g[index].inputs[0];
  if (!is_known(g, index)) return false;
  const std::optional<std::vector<int64_t>> positions = known_ints(g, index);
  return positions && std::ranges::all_of(
                          *positions, [&](int64_t at) { return at >= 0 && at < limit; });
}

static void note_dynamic(const IndexPool& pool, const Index& index,
                         std::vector<ExprId>& out) {
  for (const auto& [id, coefficient] : index.terms) {
    const Term& term = pool.term(id);
    if (term.kind == Term::Kind::Dynamic) out.push_back(term.id);
    if (term.kind == Term::Kind::Div || term.kind == Term::Kind::Mod)
      note_dynamic(pool, term.of, out);
  }
}

// Whether the value is computed from the other one, as an operand or in an index.
static bool depends_on(const Kernel& k, ExprId value, ExprId other) {
  std::vector<ExprId> open{value};
  std::set<ExprId> seen;
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (id == other) return true;
    if (!seen.insert(id).second) continue;
    const Expr& e = k.exprs[id];
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
    note_dynamic(k.indices, e.index, open);
    for (const Bound& bound : e.bounds) note_dynamic(k.indices, bound.index, open);
  }
  return false;
}

// What is picked may be the same wherever it is picked from. That the index is in range
// is still to be checked, as a condition whose answer is no matter.
ExprId Lowering::with_check(ExprId picked, ExprId position) {
  if (k().exprs[position].kind != Expr::Kind::Checked ||
      depends_on(k(), picked, position))
    return picked;
  Expr zero{Expr::Kind::Constant, k().exprs[position].dtype};
  Expr test{Expr::Kind::Map, DType::Bool, Op::Equal};
  test.inputs = {position, k().add(zero)};
  Expr either{Expr::Kind::Map, k().exprs[picked].dtype, Op::Select};
  either.inputs = {k().add(test), picked, picked};
  return k().add(either);
}

ExprId Lowering::gather(NodeId n, const At& at) {
  const Node& node = g[n];
  int64_t axis = node.payload[0];
  int64_t extent = g[node.inputs[0]].shape[axis];
  ExprId position = index_where_needed(node.inputs[1], at);
  if (!known_below(node.inputs[1], extent)) {
    Expr checked{Expr::Kind::Checked, g[node.inputs[1]].dtype};
    checked.inputs = {position};
    checked.limit = extent;
    position = k().add(std::move(checked));
  }
  At inner = at;
  inner[axis] = pool().dynamic(position, extent);
  return with_check(value(node.inputs[0], inner), position);
}

} // namespace svod::lower
