// Reductions become stages; the few that are over known numbers are written out as terms.
#include "compiler/contraction/contraction.h"
#include "compiler/ir/build.h"
#include "compiler/lower/lowering.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>

namespace svod::lower {

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
  stage.nested = n == group_.nested;
  stage.amplified = s_.grouping.sums.amplified.contains(n);
  stage.position = std::move(position);
  if (node.op == Op::ArgMin || node.op == Op::ArgMax) stage.flag = node.payload[1] != 0;
  k().stages.push_back(std::move(stage));
}

// A sum over a few known numbers, term by term: zeros vanish, ones cost nothing. While an
// index into the numbers is no constant, that axis is noted and the product's other
// factor stands in.
ExprId Lowering::unrolled_sum(NodeId n, const At& at) {
  const std::optional<Contraction> c = read_sum_of_products(g, n);
  SVOD_CHECK(c && c->right().known) << "an unrolled reduction over unknown numbers";
  int64_t axis = g[n].payload[0], extent = g[c->product].shape[axis];
  const NodeId other = c->left().views[0].node;
  const OwnAxes matrix = own_axes(g, *c, c->right());
  Shape strides = row_major_strides(g[matrix.node].shape);
  int64_t offset = 0, step = 0;
  std::vector<bool> used;
  bool outside = false;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t d = matrix.axes[i];
    if (d == axis) step = strides[i];
    if (d < 0 || d == axis) continue;
    outside |= never_holds({at[d], 0, g[matrix.node].shape[i]});
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
  // Beyond an axis, in a block that is stored as a whole: what is there is filled in.
  if (outside) return k().add({Expr::Kind::Constant, DType::F32});
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

// The loops over what a reduction takes in; merged axes are one.
void Lowering::make_inner_dims(NodeId n, const std::vector<int64_t>& axes,
                               const Shape& shape, At& at) {
  for (size_t i = 0; i < axes.size();) {
    size_t end = i + 1;
    int64_t extent = shape[axes[i]];
    while (end < axes.size() && spec_.merged_inner.count(axes[end - 1]) != 0)
      extent *= shape[axes[end++]];
    Index rest = make_dim({n, axes[i]}, extent);
    for (size_t j = end; j-- > i + 1;) {
      out_.axes[{n, axes[j]}];
      at[axes[j]] = pool().mod(rest, shape[axes[j]]);
      rest = pool().div(rest, shape[axes[j]]);
    }
    at[axes[i]] = rest;
    i = end;
  }
}

ExprId Lowering::reduce(NodeId n, const At& at) {
  if (s_.grouping.sums.unrolled.count(n) != 0) {
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
    SVOD_CHECK(row || n == group_.base || n == group_.nested)
        << "reduction " << n << " has no stage";
    const Shape& domain_shape = g[node.inputs[0]].shape;
    At input_at = at;
    std::vector<AxisId> inner;
    std::vector<Bound> domain;
    Index position;
    if (!row) make_inner_dims(n, axes, domain_shape, input_at);
    for (int64_t axis : axes) {
      if (row) input_at[axis] = root_at_[axis];
      for (AxisId a : out_.axes.at({row ? group_.root : n, axis})) inner.push_back(a);
      Range r = pool().range(input_at[axis]);
      if (r.high >= domain_shape[axis])
        domain.push_back(normal_bound(pool(), {input_at[axis], 0, domain_shape[axis]}));
      if (arg) position = input_at[axis];
    }
    reduce_stage(n, input_at, std::move(inner), std::move(domain), std::move(position));
    auto stage = static_cast<uint32_t>(k().stages.size() - 1);
    found = stage_of_.emplace(std::move(key), stage).first;
  }
  Expr e{Expr::Kind::Local, node.dtype};
  e.stage = found->second;
  return k().add(std::move(e));
}

} // namespace svod::lower
