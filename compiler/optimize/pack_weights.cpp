// Weights in the order a kernel reads them: the axes of its loops, lanes and dots last,
// so that one load after the other takes the next vector.
#include "compiler/optimize/choose.h"
#include "compiler/optimize/choose_products.h"

#include <algorithm>

namespace svod::optimize {

// The axes a packed weight is stored along, outermost first.
static std::vector<AxisId> packed_axes(const ScheduledKernel& k, const Stage& s,
                                       const Expr& load, std::optional<AxisId> nearest) {
  std::vector<bool> used(k.indices.axis_count());
  k.indices.collect_axes(load.index, used);
  for (const Bound& b : load.bounds) k.indices.collect_axes(b.index, used);
  std::vector<AxisId> order;
  auto take = [&](const std::vector<AxisId>& axes) {
    for (AxisId a : axes)
      if (used[a] && !k.is_lane(a) && !k.is_dot(a) && !contains(order, a))
        order.push_back(a);
  };
  take(loops_of(k, s));
  if (nearest && std::erase(order, *nearest) != 0) order.push_back(*nearest);
  if (k.has_lane_axis() && used[*k.loops.lane]) order.push_back(*k.loops.lane);
  if (k.has_dot_axis() && used[*k.loops.dot]) order.push_back(*k.loops.dot);
  return order;
}

static bool is_affine(const IndexPool& pool, const Index& index) {
  return std::all_of(index.terms.begin(), index.terms.end(), [&](const auto& t) {
    return pool.term(t.first).kind == Term::Kind::Axis;
  });
}

// Drops a reduction's condition when the weight factor is zero there anyway: the other
// factor reads padding lanes, which hold zeros. Loops may still end before them.
static void drop_covered_domain(ScheduledKernel& k, Stage& s, ExprId weight,
                                const std::vector<Bound>& bounds) {
  const Expr& v = k.exprs[s.value];
  bool product = s.op == Op::ReduceSum && v.kind == Expr::Kind::Map && v.op == Op::Mul;
  if (!product || s.kind != StageKind::Reduce) return;
  ExprId first = below_casts(k, v.inputs[0]), second = below_casts(k, v.inputs[1]);
  if (first != weight && second != weight) return;
  ExprId other = first == weight ? second : first;
  if (k.exprs[other].kind != Expr::Kind::Load) return;
  std::erase_if(s.domain, [&](const Bound& b) {
    const bool covered = std::ranges::find(bounds, b) != bounds.end();
    if (covered && std::ranges::find(s.useful, b) == s.useful.end())
      s.useful.push_back(b);
    return covered;
  });
}

static void pack_load(ScheduledKernel& k, Stage& s, ExprId id,
                      std::optional<AxisId> nearest, std::vector<PackedWeight>& packed) {
  Expr& load = k.exprs[id];
  const PackedWeight dense = packed[k.arguments[load.argument].id];
  bool is_dense = dense.strides == std::vector<int64_t>{1} && dense.offset == 0 &&
                  dense.limits.empty();
  if (!is_dense || load.bits != 0) return;
  bool affine = is_affine(k.indices, load.index);
  for (const Bound& b : load.bounds) affine &= is_affine(k.indices, b.index);
  if (!affine) return;
  std::vector<AxisId> axes = packed_axes(k, s, load, nearest);
  PackedWeight p{dense.source, dense.dtype, {}, {}, load.index.constant, {}, 0};
  for (AxisId a : axes) {
    p.extents.push_back(k.indices.extent(a));
    p.strides.push_back(k.indices.coefficient(load.index, a));
  }
  if (element_count(p.extents) > 2 * dense.extents[0] + 64 * k.loops.lanes) return;
  for (const Bound& b : load.bounds) {
    PackedWeight::Limit limit{b.index.constant, b.low, b.high, {}};
    for (AxisId a : axes) limit.coefficients.push_back(k.indices.coefficient(b.index, a));
    p.limits.push_back(std::move(limit));
  }
  auto found = std::find(packed.begin(), packed.end(), p);
  auto number = static_cast<uint32_t>(found - packed.begin());
  if (found == packed.end()) packed.push_back(p);
  k.arguments.push_back({Argument::Kind::Packed, number, p.dtype, false, true});
  Index index;
  for (size_t i = 0; i < axes.size(); ++i) {
    index = IndexPool::scale(index, p.extents[i]);
    index = IndexPool::add(index, k.indices.axis(axes[i]));
  }
  std::vector<Bound> bounds = std::move(load.bounds);
  load.bounds.clear();
  load.index = std::move(index);
  load.argument = static_cast<uint32_t>(k.arguments.size() - 1);
  drop_covered_domain(k, s, id, bounds);
}

// Arguments that no expression mentions any more go; the rest keeps its order.
static void drop_unused_arguments(ScheduledKernel& k) {
  std::vector<bool> used(k.arguments.size());
  for (const Expr& e : k.exprs) {
    bool descends = e.kind == Expr::Kind::Descend;
    if (e.kind == Expr::Kind::Load || descends) used[e.argument] = true;
    if (descends) used[e.table] = true;
  }
  for (const Stage& s : k.stages)
    if (s.kind != StageKind::Reduce) used[s.argument] = true;
  std::vector<uint32_t> number(k.arguments.size());
  std::vector<Argument> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    number[i] = static_cast<uint32_t>(kept.size());
    if (used[i]) kept.push_back(k.arguments[i]);
  }
  k.arguments = std::move(kept);
  for (Expr& e : k.exprs) {
    bool descends = e.kind == Expr::Kind::Descend;
    if (e.kind == Expr::Kind::Load || descends) e.argument = number[e.argument];
    if (descends) e.table = number[e.table];
  }
  for (Stage& s : k.stages)
    if (s.kind != StageKind::Reduce) s.argument = number[s.argument];
}

// Where each thread of a GPU computes positions of its own: the axis along which their
// neighbours are, if both factors of a sum of products depend on it.
static std::optional<AxisId> axis_of_neighbours(const ScheduledKernel& k) {
  const std::optional<ProductAxes> axes = product_axes(k);
  if (!axes || k.loops.outer.empty()) return std::nullopt;
  const AxisId nearest = by_distance(k, k.loops.outer).back();
  return contains(axes->others, nearest) ? std::optional(nearest) : std::nullopt;
}

void pack_weights(ScheduledKernel& k, std::vector<PackedWeight>& packed,
                  const Level& level) {
  const std::optional<AxisId> nearest =
      level.has_lanes() ? std::nullopt : axis_of_neighbours(k);
  for (Stage& s : k.stages)
    for (ExprId id : loads_below(k, s.value))
      if (k.arguments[k.exprs[id].argument].kind == Argument::Kind::Packed)
        pack_load(k, s, id, nearest, packed);
  drop_unused_arguments(k);
}

} // namespace svod::optimize
