// Lowering walks from the root down with the index of the wanted element, one Index per
// axis. A view rewrites the index; a map asks its inputs at the same index; a stored
// value becomes a load. Conditions of pads on the way are kept with every load below
// them, so that memory outside a tensor is never touched.
#include "compiler/fuse/lower.h"

#include "compiler/fuse/assign_layouts.h"
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace svod {

namespace {

using At = std::vector<Index>;

class Lowering {
public:
  Lowering(const Group& group, const LowerSpec& spec, Stored& stored)
      : group_(group), spec_(spec), s_(stored), g(stored.graph) {}
  Lowered run();

private:
  At make_dims(NodeId node, const Shape& shape);
  bool is_reduced(NodeId node, int64_t axis) const;
  Index make_dim(Dim dim, int64_t extent);
  std::vector<Bound> overflow(const At& at, const Shape& shape) const;
  ExprId value(NodeId n, const At& at);
  ExprId compute(NodeId n, const At& at);
  ExprId view(NodeId n, const At& at);
  ExprId pad(NodeId n, const At& at);
  ExprId concat(NodeId n, const At& at);
  ExprId gather(NodeId n, const At& at);
  ExprId reduce(NodeId n, const At& at);
  ExprId unrolled_sum(NodeId n, const At& at);
  bool next_unrolled();
  ExprId load_stored(NodeId n, const At& at);
  ExprId load_weight(NodeId n, const At& at);
  ExprId load(uint32_t argument, DType dtype, Index index, std::vector<Bound> bounds);
  uint32_t argument(Argument::Kind kind, uint32_t id, DType dtype, bool written);
  bool known_through_views(NodeId n) const;
  void reduce_stage(NodeId n, const At& input_at, std::vector<AxisId> inner,
                    std::vector<Bound> domain, Index position);
  void store_stage(StageKind kind, ExprId value, std::vector<AxisId> inner, const At& at);
  std::vector<Bound> useful_bounds(ExprId product) const;
  void write_to(Stage& stage, const At& at);
  void lower_special(NodeId root);
  void note_node(NodeId n);

  Kernel& k() { return out_.kernel; }
  IndexPool& pool() { return out_.kernel.indices; }

  const Group& group_;
  const LowerSpec& spec_;
  Stored& s_;
  const Graph& g;
  Lowered out_;
  At root_at_;
  std::vector<Bound> conditions_; // of the pads above
  std::map<std::tuple<NodeId, At, std::vector<Bound>>, ExprId> memo_;
  std::map<std::pair<NodeId, At>, uint32_t> stage_of_;
  std::map<AxisId, int64_t> unrolled_at_;
  std::map<NodeId, Tensor> matrices_; // known factors of unrolled reductions
  std::map<ExprId, std::vector<Bound>> zero_outside_; // loads that reach into a border
};

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

// 0 <= x / c < n  is  0 <= x < n * c: keeps conditions on merged axes affine.
static Bound normal_bound(const IndexPool& pool, Bound b) {
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

ExprId Lowering::load_weight(NodeId n, const At& at) {
  const Node& node = g[n];
  PackedWeight dense{n, node.dtype, {element_count(node.shape)}, {1}, 0, {}, 0};
  uint32_t id = 0;
  while (id < s_.packed.size() && !(s_.packed[id] == dense)) ++id;
  if (id == s_.packed.size()) s_.packed.push_back(dense);
  uint32_t arg = argument(Argument::Kind::Packed, id, node.dtype, false);
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

// Weights, and views of them: anything else known is evaluated when packing.
bool Lowering::known_through_views(NodeId n) const {
  return s_.grouping.known[n] && !is_view(g[n].op) && g[n].op != Op::Iota &&
         g[n].op != Op::Constant;
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

static At reshape_at(IndexPool& pool, const At& at, const Shape& from, const Shape& to);

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
    for (size_t x = j; x-- > j0;) {
      out[x] = x == j0 ? linear : pool.mod(linear, to[x]);
      if (x != j0) linear = pool.div(linear, to[x]);
    }
  }
  return out;
}

ExprId Lowering::pad(NodeId n, const At& at) {
  const Node& node = g[n];
  NodeId in = node.inputs[0];
  const Shape& shape = g[in].shape;
  size_t rank = at.size();
  uint64_t bits = static_cast<uint64_t>(node.payload[2 * rank]);
  At inner(rank);
  std::vector<Bound> conditions;
  bool in_border = bits == 0 && s_.grouping.stored[in];
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = node.payload[i], high = node.payload[rank + i];
    inner[i] = IndexPool::add(at[i], IndexPool::constant(-low));
    if (low != 0 || high != 0) conditions.push_back({inner[i], 0, shape[i]});
    if (!in_border) continue;
    const Buffer& b = s_.buffers[s_.buffer_of.at(in)];
    Range there = physical_range(b.layout, b.shape, i), wanted = pool().range(inner[i]);
    in_border = wanted.low >= there.low && wanted.high <= there.high;
  }
  if (in_border) {
    ExprId child = value(in, inner);
    zero_outside_[child] = std::move(conditions);
    return child;
  }
  size_t before = conditions_.size();
  conditions_.insert(conditions_.end(), conditions.begin(), conditions.end());
  ExprId child = value(in, inner);
  conditions_.resize(before);
  const Expr& c = k().exprs[child];
  bool covered = c.kind == Expr::Kind::Load && c.bits == 0 && before == 0;
  if (covered && bits == 0) return child;
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

ExprId Lowering::gather(NodeId n, const At& at) {
  const Node& node = g[n];
  int64_t axis = node.payload[0];
  int64_t extent = g[node.inputs[0]].shape[axis];
  Expr checked{Expr::Kind::Checked, g[node.inputs[1]].dtype};
  checked.inputs = {value(node.inputs[1], at)};
  checked.limit = extent;
  At inner = at;
  inner[axis] = pool().dynamic(k().add(std::move(checked)), extent);
  return value(node.inputs[0], inner);
}

static StageKind stage_kind(Op op) {
  OpClass c = info(op).op_class;
  return c == OpClass::Scan ? StageKind::Scan : StageKind::Reduce;
}

// Where a factor of the product is a load that is zero outside some bounds.
std::vector<Bound> Lowering::useful_bounds(ExprId product) const {
  std::vector<Bound> useful;
  const std::vector<Expr>& exprs = out_.kernel.exprs;
  for (ExprId factor : exprs[product].inputs) {
    while (exprs[factor].kind == Expr::Kind::Cast) factor = exprs[factor].inputs[0];
    const Expr& load = exprs[factor];
    if (load.kind != Expr::Kind::Load) continue;
    if (load.bits == 0)
      useful.insert(useful.end(), load.bounds.begin(), load.bounds.end());
    if (auto found = zero_outside_.find(factor); found != zero_outside_.end())
      useful.insert(useful.end(), found->second.begin(), found->second.end());
  }
  return useful;
}

void Lowering::reduce_stage(NodeId n, const At& input_at, std::vector<AxisId> inner,
                            std::vector<Bound> domain, Index position) {
  const Node& node = g[n];
  std::vector<Bound> outside = std::move(conditions_);
  conditions_ = {};
  Stage stage;
  stage.kind = stage_kind(node.op);
  stage.op = node.op;
  stage.value = value(node.inputs[0], input_at);
  conditions_ = std::move(outside);
  stage.inner = std::move(inner);
  stage.dtype = g[node.inputs[0]].dtype;
  stage.domain = std::move(domain);
  const Expr& v = k().exprs[stage.value];
  if (stage.op == Op::ReduceSum && v.kind == Expr::Kind::Map && v.op == Op::Mul)
    stage.useful = useful_bounds(stage.value);
  stage.position = std::move(position);
  if (node.op == Op::ArgMin || node.op == Op::ArgMax) stage.flag = node.payload[1] != 0;
  k().stages.push_back(std::move(stage));
}

// A sum over a few known numbers, term by term: zeros vanish, ones cost nothing. While an
// index into the numbers is no constant, that axis is noted and the product's other
// factor stands in.
ExprId Lowering::unrolled_sum(NodeId n, const At& at) {
  NodeId product = g[n].inputs[0];
  int64_t axis = g[n].payload[0], extent = g[product].shape[axis];
  size_t which = s_.grouping.known[g[product].inputs[0]] ? 0 : 1;
  NodeId other = g[product].inputs[1 - which];
  Factor matrix = factor_of(g, product, which);
  Shape strides = row_major_strides(g[matrix.node].shape);
  int64_t offset = 0, step = 0;
  std::vector<bool> used;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t d = matrix.domain_axis[i];
    if (d == axis) step = strides[i];
    if (d < 0 || d == axis) continue;
    offset += at[d].constant * strides[i];
    pool().collect_axes(at[d], used);
  }
  At there = at;
  if (std::find(used.begin(), used.end(), true) != used.end()) {
    for (AxisId a = 0; a < used.size(); ++a)
      if (used[a]) out_.to_unroll.insert(a);
    there[axis] = make_dim({n, axis}, extent);
    return value(other, there);
  }
  auto [found, fresh] = matrices_.try_emplace(matrix.node);
  if (fresh) found->second = evaluate_known(g, matrix.node);
  ExprId sum = 0;
  bool empty = true;
  for (int64_t i = 0; i < extent; ++i) {
    float number = 0;
    std::memcpy(&number, found->second.bytes.data() + 4 * (offset + i * step), 4);
    if (number == 0) continue;
    there[axis] = IndexPool::constant(i);
    ExprId term = value(other, there);
    bool negative = number == -1 && !empty;
    if (number != 1 && !negative) {
      Expr factor{Expr::Kind::Constant, DType::F32};
      factor.bits = scalar_bits(DType::F32, number);
      Expr scaled{Expr::Kind::Map, DType::F32, Op::Mul};
      scaled.inputs = {k().add(std::move(factor)), term};
      term = k().add(std::move(scaled));
    }
    if (!empty) {
      Expr more{Expr::Kind::Map, DType::F32, negative ? Op::Sub : Op::Add};
      more.inputs = {sum, term};
      term = k().add(std::move(more));
    }
    sum = term, empty = false;
  }
  SVOD_CHECK(!empty) << "a row of zeros in an unrolled reduction";
  return sum;
}

ExprId Lowering::reduce(NodeId n, const At& at) {
  if (s_.grouping.unrolled.count(n) != 0) {
    note_node(n);
    return unrolled_sum(n, at);
  }
  const Node& node = g[n];
  bool arg = node.op == Op::ArgMin || node.op == Op::ArgMax;
  std::vector<int64_t> axes(node.payload.begin(),
                            arg ? node.payload.begin() + 1 : node.payload.end());
  auto key = std::make_pair(n, at);
  auto found = stage_of_.find(key);
  if (found == stage_of_.end()) {
    note_node(n);
    bool row = group_.rows.count(n) != 0;
    SVOD_CHECK(row || n == group_.base) << "reduction " << n << " has no stage";
    const Shape& domain_shape = g[node.inputs[0]].shape;
    At input_at = at;
    std::vector<AxisId> inner;
    std::vector<Bound> domain;
    Index position;
    for (int64_t axis : axes) {
      Dim dim{row ? group_.root : n, axis};
      input_at[axis] = row ? root_at_[axis] : make_dim(dim, domain_shape[axis]);
      for (AxisId a : out_.axes.at(dim)) inner.push_back(a);
      Range r = pool().range(input_at[axis]);
      if (r.high >= domain_shape[axis])
        domain.push_back(normal_bound(pool(), {input_at[axis], 0, domain_shape[axis]}));
      position = input_at[axis];
    }
    reduce_stage(n, input_at, std::move(inner), std::move(domain), std::move(position));
    auto stage = static_cast<uint32_t>(k().stages.size() - 1);
    found = stage_of_.emplace(std::move(key), stage).first;
  }
  Expr e{Expr::Kind::Local, node.dtype};
  e.stage = found->second;
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
    if (wanted.high > there.high || (wanted.high >= end && end != b.shape[i]))
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
  k().stages.push_back(std::move(stage));
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
      // Keys of up to 8 bytes and two lists of 4-byte positions.
      int64_t n = (node.shape[node.payload[0]] + 1) & ~int64_t(1);
      k().scratch_bytes = (16 * n + 63) / 64 * 64 + 64;
    }
    stage.flag = node.op == Op::ArgSort && node.payload[1] != 0;
    stage.inner = axis_of(node.payload[0]);
    stage.value = value(node.inputs[0], root_at_);
    write_to(stage, root_at_);
  }
  k().stages.push_back(std::move(stage));
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
  root_at_ = make_dims(root, g[root].shape);
  bool special = info(g[root].op).op_class == OpClass::Scan ||
                 g[root].op == Op::ArgSort || g[root].op == Op::Scatter;
  bool own = special && group_.target == root;
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
      ExprId v = copy ? load_stored(root, root_at_) : compute(root, root_at_);
      store_stage(StageKind::Store, v, inner, root_at_);
    } while (next_unrolled());
  }
  if (spec_.lane) {
    k().has_lane_axis = true;
    k().lane_axis = out_.axes.at(spec_.lane->first)[spec_.lane->second];
    k().lanes = static_cast<int>(pool().extent(k().lane_axis));
  }
  return std::move(out_);
}

} // namespace

Lowered lower(const Group& group, const LowerSpec& spec, Stored& stored) {
  return Lowering(group, spec, stored).run();
}

Kernel lower_border(BufferId id, const Buffer& buffer) {
  Kernel kernel;
  const Layout& layout = buffer.layout;
  kernel.arguments.push_back({Argument::Kind::Buffer, id, buffer.dtype, true, false});
  kernel.nodes = {buffer.node};
  ExprId zero = kernel.add(Expr{Expr::Kind::Constant, buffer.dtype});
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    int64_t sides[2][2] = {{-layout.low[axis], layout.low[axis]},
                           {buffer.shape[axis], layout.high[axis]}};
    for (auto [start, extent] : sides) {
      if (extent == 0) continue;
      Stage stage;
      stage.value = zero;
      stage.dtype = buffer.dtype;
      At at(buffer.shape.size());
      for (int64_t i : layout.order) {
        Range there = physical_range(layout, buffer.shape, i);
        bool is_side = i == static_cast<int64_t>(axis);
        // Earlier axes' borders are already written: stay inside them.
        bool earlier = i < static_cast<int64_t>(axis);
        int64_t from = is_side ? start : earlier ? 0 : there.low;
        int64_t count = is_side   ? extent
                        : earlier ? buffer.shape[i]
                                  : there.high - from + 1;
        if (earlier && i == layout.block_axis) count = there.high + 1;
        AxisId a = kernel.indices.add_axis(i == layout.block_axis ? count / layout.block
                                                                  : count);
        stage.inner.push_back(a);
        at[i] = IndexPool::add(IndexPool::constant(from), kernel.indices.axis(a));
        if (i == layout.block_axis) at[i] = IndexPool::scale(at[i], layout.block);
      }
      if (layout.block_axis >= 0) {
        AxisId lane = kernel.indices.add_axis(layout.block);
        stage.inner.push_back(lane);
        Index& block = at[layout.block_axis];
        block = IndexPool::add(block, kernel.indices.axis(lane));
      }
      stage.index = layout_offset(kernel.indices, layout, buffer.shape, at);
      kernel.stages.push_back(std::move(stage));
    }
  }
  return kernel;
}

static std::vector<const Index*> all_indices(const Kernel& kernel) {
  std::vector<const Index*> all;
  for (const Expr& e : kernel.exprs) {
    all.push_back(&e.index);
    for (const Bound& b : e.bounds) all.push_back(&b.index);
  }
  for (const Stage& s : kernel.stages) {
    all.push_back(&s.index);
    all.push_back(&s.position);
    for (const Bound& b : s.domain) all.push_back(&b.index);
  }
  return all;
}

std::set<int64_t> find_merges(const Group& group, const Lowered& lowered,
                              const Shape& shape) {
  const Kernel& kernel = lowered.kernel;
  std::set<int64_t> merged;
  auto is_row = [&](int64_t axis) {
    return !group.rows.empty() && std::find(group.row_axes.begin(), group.row_axes.end(),
                                            axis) != group.row_axes.end();
  };
  for (const Stage& s : kernel.stages)
    if (s.kind != StageKind::Reduce && s.kind != StageKind::Store) return merged;
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(shape.size()); ++i) {
    const auto& first = lowered.axes.at({group.root, i});
    const auto& second = lowered.axes.at({group.root, i + 1});
    if (first.size() != 1 || second.size() != 1 || is_row(i) != is_row(i + 1)) continue;
    bool fits = true;
    for (const Index* index : all_indices(kernel)) {
      int64_t a = 0, b = 0;
      fits &= kernel.indices.affine_in(*index, first[0], a) &&
              kernel.indices.affine_in(*index, second[0], b);
      bool trivial = shape[i] == 1 || shape[i + 1] == 1;
      fits &= trivial || a == b * shape[i + 1];
    }
    if (fits) merged.insert(i);
  }
  return merged;
}

// Finds an axis whose quotient or remainder by a constant is used.
static bool find_split(const IndexPool& pool, const Index& index, AxisId& axis,
                       int64_t& divisor) {
  for (auto [id, coefficient] : index.terms) {
    const Term& t = pool.term(id);
    if (t.kind != Term::Kind::Div && t.kind != Term::Kind::Mod) continue;
    if (find_split(pool, t.of, axis, divisor)) return true;
    for (auto [inner, factor] : t.of.terms) {
      const Term& a = pool.term(inner);
      if (a.kind != Term::Kind::Axis || t.divisor % factor != 0 || factor <= 0) continue;
      int64_t split = t.divisor / factor;
      if (split <= 1 || split >= pool.extent(a.id)) continue;
      axis = a.id, divisor = split;
      return true;
    }
  }
  return false;
}

bool refine_splits(const Lowered& lowered, LowerSpec& spec) {
  const Kernel& kernel = lowered.kernel;
  for (const Index* index : all_indices(kernel)) {
    AxisId axis = 0;
    int64_t divisor = 0;
    if (!find_split(kernel.indices, *index, axis, divisor)) continue;
    for (const auto& [dim, axes] : lowered.axes) {
      auto at = std::find(axes.begin(), axes.end(), axis);
      if (at == axes.end()) continue;
      int64_t extent = kernel.indices.extent(axis);
      bool whole = extent % divisor == 0;
      if (!whole && axes.size() != 1) break;
      std::vector<int64_t>& inner = spec.splits[dim];
      size_t position = at - axes.begin();
      if (position == 0) {
        inner.insert(inner.begin(), divisor);
      } else {
        inner[position - 1] = extent / divisor;
        inner.insert(inner.begin() + position, divisor);
      }
      return true;
    }
  }
  return false;
}

} // namespace svod
