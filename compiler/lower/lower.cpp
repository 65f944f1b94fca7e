// Lowering walks from the root down with the index of the wanted element, one Index per
// axis. A view rewrites the index; a map asks its inputs at the same index; a stored
// value becomes a load. Conditions of pads on the way are kept with every load below
// them, so that memory outside a tensor is never touched.
#include "compiler/contraction/contraction.h"
#include "compiler/ir/build.h"
#include "compiler/lower/lowering.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::lower {

Index Lowering::make_dim(Dim dim, int64_t extent) {
  std::vector<int64_t> inner;
  if (auto found = spec_.splits.find(dim); found != spec_.splits.end())
    inner = found->second;
  int64_t product = 1;
  for (int64_t f : inner) product *= f;
  std::vector<int64_t> extents = {(extent + product - 1) / product};
  extents.insert(extents.end(), inner.begin(), inner.end());
  std::vector<AxisId>& axes = out_.axes[dim];
  bool fresh = axes.empty();
  Index index;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (fresh) axes.push_back(pool().add_axis(extents[i]));
    bool unroll = spec_.unrolled.count({dim, i}) != 0;
    if (unroll) out_.unrolled.insert(axes[i]);
    Index term =
        unroll ? IndexPool::constant(unrolled_at_[axes[i]]) : pool().axis(axes[i]);
    index = IndexPool::add(IndexPool::scale(index, extents[i]), term);
  }
  if (fresh && extents[0] * product > extent && index.terms.size() > 1)
    pool().limit(index, extent);
  return index;
}

bool Lowering::is_reduced(NodeId node, int64_t axis) const {
  const Payload& axes = g[node].payload;
  if (g[node].op == Op::ArgMin || g[node].op == Op::ArgMax) return axes[0] == axis;
  return is_reduce(g[node].op) && std::find(axes.begin(), axes.end(), axis) != axes.end();
}

At Lowering::make_dims(NodeId node, const Shape& shape) {
  At at(shape.size());
  for (size_t i = 0; i < shape.size();) {
    size_t end = i + 1;
    int64_t extent = shape[i];
    // A reduced axis of a reduction that is its own root: the name {node, i} belongs to
    // the positions that are summed, so the one position that stays has no axis.
    if (extent == 1 && is_reduced(node, static_cast<int64_t>(i))) {
      out_.axes[{node, static_cast<int64_t>(i)}];
      at[i++] = IndexPool::constant(0);
      continue;
    }
    while (spec_.merged.count(static_cast<int64_t>(end - 1)) != 0) extent *= shape[end++];
    Index rest = make_dim({node, static_cast<int64_t>(i)}, extent);
    size_t outermost = i;
    while (outermost + 1 < end && shape[outermost] == 1) ++outermost;
    for (size_t j = end; j-- > i;) {
      if (j != i) out_.axes[{node, static_cast<int64_t>(j)}];
      if (j < outermost) continue;
      at[j] = j == outermost ? rest : pool().mod(rest, shape[j]);
      if (j != outermost) rest = pool().div(rest, shape[j]);
    }
    i = end;
  }
  return at;
}

Bound normal_bound(const IndexPool& pool, Bound b) {
  if (b.low != 0 || b.index.constant != 0 || b.index.terms.size() != 1) return b;
  const Term& t = pool.term(b.index.terms[0].first);
  if (t.kind != Term::Kind::Div || b.index.terms[0].second != 1) return b;
  return normal_bound(pool, {t.of, 0, b.high * t.divisor});
}

// Conditions for positions that lie in the shape: an axis split with a remainder runs
// over.
std::vector<Bound> Lowering::overflow(const At& at, const Shape& shape) const {
  std::vector<Bound> bounds;
  for (size_t i = 0; i < at.size(); ++i) {
    Range r = out_.kernel.indices.range(at[i]);
    if (r.low < 0 || r.high >= shape[i])
      bounds.push_back(normal_bound(out_.kernel.indices, {at[i], 0, shape[i]}));
  }
  return bounds;
}

uint32_t Lowering::argument(Argument::Kind kind, uint32_t id, DType dtype, bool written) {
  for (uint32_t i = 0; i < k().arguments.size(); ++i) {
    Argument& a = k().arguments[i];
    if (a.kind != kind || a.id != id) continue;
    (written ? a.written : a.read) = true;
    return i;
  }
  k().arguments.push_back({kind, id, dtype, written, !written});
  return static_cast<uint32_t>(k().arguments.size() - 1);
}

ExprId Lowering::load(uint32_t argument, DType dtype, Index index,
                      std::vector<Bound> bounds) {
  bounds.insert(bounds.end(), conditions_.begin(), conditions_.end());
  std::vector<Bound> needed;
  for (Bound& b : bounds) {
    Range r = pool().range(b.index);
    bool holds = r.low >= b.low && r.high < b.high;
    if (!holds && std::find(needed.begin(), needed.end(), b) == needed.end())
      needed.push_back(std::move(b));
  }
  std::sort(needed.begin(), needed.end());
  Expr e{Expr::Kind::Load, dtype};
  e.argument = argument;
  e.index = std::move(index);
  e.bounds = std::move(needed);
  return k().add(std::move(e));
}

ExprId Lowering::load_stored(NodeId n, const At& at) {
  BufferId id = s_.buffer_of.at(n);
  const Buffer& b = s_.buffers[id];
  std::vector<Bound> bounds;
  for (size_t i = 0; i < at.size(); ++i) {
    Range there = physical_range(b.layout, b.shape, i), wanted = pool().range(at[i]);
    if (wanted.low < there.low || wanted.high > there.high)
      bounds.push_back(normal_bound(pool(), {at[i], 0, b.shape[i]}));
  }
  uint32_t arg = argument(Argument::Kind::Buffer, id, b.dtype, false);
  return load(arg, b.dtype, layout_offset(pool(), b.layout, b.shape, at), bounds);
}

uint32_t Lowering::dense_weight(NodeId n) {
  const Node& node = g[n];
  PackedWeight dense{n, node.dtype, {element_count(node.shape)}, {1}, 0, {}, 0};
  uint32_t id = 0;
  while (id < s_.packed.size() && !(s_.packed[id] == dense)) ++id;
  if (id == s_.packed.size()) s_.packed.push_back(dense);
  return argument(Argument::Kind::Packed, id, node.dtype, false);
}

ExprId Lowering::load_weight(NodeId n, const At& at) {
  const Node& node = g[n];
  uint32_t arg = dense_weight(n);
  Layout layout = row_major(node.shape.size());
  return load(arg, node.dtype, layout_offset(pool(), layout, node.shape, at),
              overflow(at, node.shape));
}

void Lowering::note_node(NodeId n) {
  if (std::find(k().nodes.begin(), k().nodes.end(), n) == k().nodes.end())
    k().nodes.push_back(n);
}

// The value of a node other than the root itself: a load where it is stored.
ExprId Lowering::value(NodeId n, const At& at) {
  auto key = std::make_tuple(n, at, conditions_);
  if (auto found = memo_.find(key); found != memo_.end()) return found->second;
  ExprId id =
      s_.grouping.stored[n] && n != group_.root ? load_stored(n, at) : compute(n, at);
  memo_.emplace(std::move(key), id);
  return id;
}

// What unpacking weights is made of: a few cheap instructions each.
static bool unpacks(Op op) {
  constexpr Op kUnpacking[] = {Op::Cast,      Op::Bitcast,    Op::And,      Op::Or,
                               Op::ShiftLeft, Op::ShiftRight, Op::Add,      Op::Sub,
                               Op::Mul,       Op::Iota,       Op::Constant, Op::Weight};
  return is_view(op) || std::ranges::find(kUnpacking, op) != std::end(kUnpacking);
}

// Bytes of the distinct weights that a known node is unpacked from; false when more than
// unpacking is done to them.
static bool packed_bytes(const Graph& g, NodeId n, std::set<NodeId>& seen,
                         int64_t& bytes) {
  if (!seen.insert(n).second) return true;
  if (!unpacks(g[n].op)) return false;
  if (g[n].op == Op::Weight) bytes += element_count(g[n].shape) * byte_size(g[n].dtype);
  return std::ranges::all_of(g[n].inputs,
                             [&](NodeId in) { return packed_bytes(g, in, seen, bytes); });
}

// Weights of few bits are kept as they are and decoded where they are used: a kernel that
// waits for memory has time for it, and the package is a fraction of the size.
bool Lowering::decodes(NodeId n) const {
  constexpr int64_t kSmall = 4096; // bytes that are not worth it
  // Bytes are unpacked many at once.
  const int64_t growth = byte_size(g[n].dtype) == 1 ? 2 : 4;
  if (!is_map(g[n].op) && g[n].op != Op::Cast) return false;
  int64_t bytes = element_count(g[n].shape) * byte_size(g[n].dtype), packed = 0;
  std::set<NodeId> seen;
  return bytes >= kSmall && packed_bytes(g, n, seen, packed) && bytes >= growth * packed;
}

// Weights, and views of them: anything else known is evaluated when packing.
bool Lowering::known_through_views(NodeId n) const {
  return s_.grouping.known[n] && !is_view(g[n].op) && g[n].op != Op::Iota &&
         g[n].op != Op::Constant && !widens_where_read(g, n) && !decodes(n);
}

ExprId Lowering::compute(NodeId n, const At& at) {
  const Node& node = g[n];
  if (known_through_views(n)) return load_weight(n, at);
  if (!s_.grouping.known[n]) note_node(n);
  if (is_view(node.op)) return view(n, at);
  if (is_reduce(node.op)) return reduce(n, at);
  Expr e{Expr::Kind::Map, node.dtype};
  e.op = node.op;
  switch (node.op) {
  case Op::Constant:
    e.kind = Expr::Kind::Constant;
    e.bits = static_cast<uint64_t>(node.payload[0]);
    break;
  case Op::Iota:
    e.kind = Expr::Kind::Position;
    e.index = at[node.payload[0]];
    break;
  case Op::Concat:
    return concat(n, at);
  case Op::Gather:
    return gather(n, at);
  case Op::Descend:
    return descend(n, at);
  case Op::Cast:
    e.kind = Expr::Kind::Cast;
    break;
  case Op::Bitcast:
    e.kind = Expr::Kind::Bitcast;
    break;
  default:
    SVOD_CHECK(is_map(node.op)) << "cannot inline " << info(node.op).text;
  }
  for (NodeId in : node.inputs) e.inputs.push_back(value(in, at));
  if (e.kind != Expr::Kind::Map) e.op = Op::Add;
  return k().add(std::move(e));
}

void Lowering::write_to(Stage& stage, const At& at) {
  BufferId id = s_.buffer_of.at(group_.target);
  const Buffer& b = s_.buffers[id];
  At to = at;
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = IndexPool::add(at[i], IndexPool::constant(group_.target_start[i]));
  stage.argument = argument(Argument::Kind::Buffer, id, b.dtype, true);
  stage.index = layout_offset(pool(), b.layout, b.shape, to);
  stage.domain = overflow(at, g[group_.root].shape);
  stage.pad_lanes = true;
  for (size_t i = 0; i < to.size(); ++i) {
    Range there = physical_range(b.layout, b.shape, i), wanted = pool().range(to[i]);
    int64_t end = group_.target_start[i] + g[group_.root].shape[i];
    // Lanes beyond the part are zeros of the buffer only where the buffer itself ends.
    bool in_border = b.layout.fill != 0 && wanted.high >= b.shape[i] &&
                     static_cast<int64_t>(i) != b.layout.block_axis;
    if (wanted.high > there.high || (wanted.high >= end && end != b.shape[i]) ||
        in_border)
      stage.pad_lanes = false;
  }
}

void Lowering::store_stage(StageKind kind, ExprId v, std::vector<AxisId> inner,
                           const At& at) {
  Stage stage;
  stage.kind = kind;
  stage.value = v;
  stage.dtype = k().exprs[v].dtype;
  stage.inner = std::move(inner);
  write_to(stage, at);
  if (spec_.whole_blocks) fill_block(stage, at);
  k().stages.push_back(std::move(stage));
}

// What lies beyond the last channel is there, and zero.
void Lowering::fill_block(Stage& stage, const At& at) {
  const auto axis =
      static_cast<size_t>(s_.buffers[s_.buffer_of.at(group_.root)].layout.block_axis);
  const int64_t channels = g[group_.root].shape[axis];
  if (pool().range(at[axis]).high < channels) return;
  Expr guard{Expr::Kind::Guard, stage.dtype};
  guard.bounds = {normal_bound(pool(), {at[axis], 0, channels})};
  guard.inputs = {stage.value};
  std::erase(stage.domain, guard.bounds[0]);
  stage.value = k().add(std::move(guard));
}

// Roots that are no plain expression: running reductions, scatter, sort.
void Lowering::lower_special(NodeId root) {
  const Node& node = g[root];
  note_node(root);
  auto axis_of = [&](int64_t axis) { return out_.axes.at({root, axis}); };
  Stage stage;
  stage.op = node.op;
  stage.dtype = g[node.inputs[0]].dtype;
  if (node.op == Op::Scatter) {
    // The target already holds a copy of input 0; updates run over their own shape.
    out_.axes.clear();
    k().indices = IndexPool();
    At at = make_dims(root, g[node.inputs[1]].shape);
    k().outer.clear();
    Expr checked{Expr::Kind::Checked, g[node.inputs[1]].dtype};
    checked.inputs = {value(node.inputs[1], at)};
    checked.limit = node.shape[node.payload[0]];
    stage.value = value(node.inputs[2], at);
    At to = at;
    to[node.payload[0]] = pool().dynamic(k().add(checked), checked.limit);
    stage.kind = StageKind::Scatter;
    stage.combiner = node.payload[1];
    for (size_t i = 0; i < at.size(); ++i)
      for (AxisId a : axis_of(static_cast<int64_t>(i))) stage.inner.push_back(a);
    write_to(stage, to);
    stage.domain.clear();
    k().arguments[stage.argument].read = true;
  } else {
    bool sort = node.op == Op::ArgSort;
    stage.kind = sort ? StageKind::Sort : StageKind::Scan;
    if (sort) {
      stage.dtype = DType::I64;
      stage.flag = node.payload[1] != 0;
      stage.count = node.payload[2];
      const Node& keys = g[node.inputs[0]];
      k().scratch_bytes =
          SortRoom(keys.shape[node.payload[0]], stage.count, keys.dtype).end;
    }
    stage.inner = axis_of(node.payload[0]);
    stage.value = value(node.inputs[0], root_at_);
    write_to(stage, root_at_);
  }
  k().stages.push_back(std::move(stage));
}

// An unrolled axis that was split with a remainder runs over: there is nothing to compute
// there, but for a block that is stored as a whole.
bool Lowering::stores_nothing(const At& at) {
  const int64_t whole = spec_.whole_blocks
                            ? s_.buffers[s_.buffer_of.at(group_.root)].layout.block_axis
                            : -1;
  for (size_t i = 0; i < at.size(); ++i)
    if (static_cast<int64_t>(i) != whole &&
        never_holds({at[i], 0, g[group_.root].shape[i]}))
      return true;
  return false;
}

// The next position of the unrolled axes; false after the last.
bool Lowering::next_unrolled() {
  for (auto axis = out_.unrolled.rbegin(); axis != out_.unrolled.rend(); ++axis) {
    if (++unrolled_at_[*axis] < pool().extent(*axis)) return true;
    unrolled_at_[*axis] = 0;
  }
  return false;
}

Lowered Lowering::run() {
  NodeId root = group_.root;
  bool special = info(g[root].op).op_class == OpClass::Scan ||
                 g[root].op == Op::ArgSort || g[root].op == Op::Scatter;
  bool own = special && group_.target == root;
  // A sort runs over what it sorts; writing ends earlier.
  NodeId shaped = own && g[root].op == Op::ArgSort ? g[root].inputs[0] : root;
  root_at_ = make_dims(root, g[shaped].shape);
  std::set<int64_t> rows(group_.row_axes.begin(), group_.row_axes.end());
  if (group_.rows.empty()) rows.clear();
  if (own && g[root].op != Op::Scatter) rows.insert(g[root].payload[0]);
  std::vector<AxisId> inner;
  for (size_t i = 0; i < root_at_.size(); ++i) {
    auto axis = static_cast<int64_t>(i);
    std::vector<AxisId>& to = rows.count(axis) != 0 ? inner : k().outer;
    for (AxisId a : out_.axes[{root, axis}])
      if (out_.unrolled.count(a) == 0) to.push_back(a);
  }
  if (own) {
    lower_special(root);
  } else {
    // A part that is stored anyway is copied into the concat.
    bool copy = group_.target != root && s_.grouping.stored[root];
    do {
      root_at_ = make_dims(root, g[root].shape);
      if (stores_nothing(root_at_)) continue;
      ExprId v = copy ? load_stored(root, root_at_) : compute(root, root_at_);
      store_stage(StageKind::Store, v, inner, root_at_);
    } while (next_unrolled());
  }
  Loops& loops = out_.kernel.loops = plain_loops(k());
  if (spec_.lane) {
    loops.lane = out_.axes.at(spec_.lane->first)[spec_.lane->second];
    loops.lanes = static_cast<int>(pool().extent(*loops.lane));
  }
  if (spec_.dot) loops.dot = out_.axes.at(spec_.dot->first)[spec_.dot->second];
  return std::move(out_);
}

Lowered lower(const Group& group, const LowerSpec& spec, Stored& stored) {
  return Lowering(group, spec, stored).run();
}

} // namespace svod::lower
