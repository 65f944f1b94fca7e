// Sums of products of bytes, four at a time. The instruction multiplies four neighbouring
// bytes of x, the same for all lanes, with four bytes per lane, unsigned ones with signed
// ones; so the axis that is summed must step over neighbours in x. Weights are packed to
// fit, and those of few bits are taken apart in vectors of bytes.
#include "compiler/optimize/choose.h"

#include <algorithm>

namespace svod {

// The load that bytes of weights are made from, each by itself; null where they are made
// of more.
static const Expr* packed_load(const ScheduledKernel& k, ExprId id) {
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Load)
    return k.arguments[e.argument].kind == Argument::Kind::Packed ? &e : nullptr;
  const bool unpacks =
      e.kind == Expr::Kind::Map && (e.op == Op::And || e.op == Op::ShiftRight);
  // The other operand is the same for all bytes.
  if (!unpacks || !loads_below(k, e.inputs[1]).empty()) return nullptr;
  return packed_load(k, e.inputs[0]);
}

ByteOperands byte_operands(const ScheduledKernel& k, const Stage& s) {
  const Expr& v = k.exprs[s.value];
  bool sum = s.kind == StageKind::Reduce && s.op == Op::ReduceSum &&
             s.dtype == DType::I32 && v.kind == Expr::Kind::Map && v.op == Op::Mul;
  if (!sum) return {};
  ByteOperands out;
  const Expr* signed_load = nullptr;
  int unsigned_ones = 0;
  for (ExprId factor : v.inputs) {
    const ExprId id = below_casts(k, factor);
    const Expr& bytes = k.exprs[id];
    if (bytes.dtype != DType::U8 && bytes.dtype != DType::I8) return {};
    unsigned_ones += bytes.dtype == DType::U8;
    if (const Expr* load = packed_load(k, id)) {
      out.w = load;
      out.decoded = bytes.kind == Expr::Kind::Load ? std::nullopt : std::optional(id);
    } else if (bytes.kind == Expr::Kind::Load) {
      (bytes.dtype == DType::U8 || out.w != nullptr ? out.x : signed_load) = &bytes;
    }
  }
  // Both vary: the signed ones lie as weights do (Assigner::dot_layout). Beside weights
  // they are what is the same for all lanes.
  if (signed_load != nullptr) (out.w == nullptr ? out.w : out.x) = signed_load;
  bool complete = out.x != nullptr && out.w != nullptr && unsigned_ones == 1;
  return complete ? out : ByteOperands{};
}

// A w for each lane and one x for all, or vectors of x whose lanes are neighbours.
static ByteOperands dot_operands(const ScheduledKernel& k) {
  ByteOperands out = byte_operands(k, k.stages[0]);
  if (out.x == nullptr || !k.has_lane_axis()) return {};
  int64_t x = 0, w = 0;
  bool near = k.indices.affine_in(out.x->index, *k.loops.lane, x) && (x == 0 || x == 1);
  bool vector = k.indices.affine_in(out.w->index, *k.loops.lane, w) && w != 0;
  for (const Bound& b : out.x->bounds)
    near = near && (x == 0 || !k.indices.depends_on(b.index, *k.loops.lane));
  return near && vector ? out : ByteOperands{};
}

// How far the four bytes of x lie apart: next to each other, or, where lanes are
// neighbours, in vectors that follow each other and are interleaved when loaded.
static int64_t dot_stride(const ScheduledKernel& k, const Expr& x) {
  return k.indices.depends_on(x.index, *k.loops.lane) ? k.loops.lanes : 1;
}

// How many of the four products count, from the first on.
static int64_t dot_taps(const ScheduledKernel& k, const Stage& s) {
  int64_t taps = kDot, step = 0;
  for (const Bound& b : s.useful) {
    std::vector<bool> used(k.indices.axis_count());
    k.indices.collect_axes(b.index, used);
    if (std::ranges::count(used, true) == 1 &&
        k.indices.affine_in(b.index, *k.loops.dot, step) && step == 1 && b.low == 0 &&
        k.indices.range(b.index).low == 0)
      taps = std::clamp<int64_t>(b.high, 1, taps);
  }
  return taps;
}

int windows_together(const ScheduledKernel& k, const Stage& s, const Expr& x,
                     AxisId axis) {
  int64_t step = 0, dot = 0;
  const bool slides =
      k.has_dot_axis() && k.has_lane_axis() && x.bounds.empty() && s.domain.empty() &&
      k.indices.affine_in(x.index, *k.loops.dot, dot) && dot == k.loops.lanes &&
      k.indices.depends_on(x.index, *k.loops.lane) &&
      k.indices.affine_in(x.index, axis, step) && step == dot;
  return slides ? static_cast<int>(kDot - dot_taps(k, s) + 1) : 1;
}

std::optional<std::pair<Dim, size_t>> choose_dot(const Lowered& lowered) {
  const ScheduledKernel& k = lowered.kernel;
  ByteOperands operands = dot_operands(k);
  if (operands.x == nullptr) return std::nullopt;
  const std::vector<AxisId>& inner = k.loops.inner[0];
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = 0; place < axes.size(); ++place) {
      AxisId axis = axes[place];
      if (std::find(inner.begin(), inner.end(), axis) == inner.end()) continue;
      int64_t stride = 0, extent = k.indices.extent(axis);
      bool neighbours = k.indices.affine_in(operands.x->index, axis, stride) &&
                        stride == dot_stride(k, *operands.x);
      // Only the outermost axis of a dimension may run over its end.
      bool whole = extent % kDot == 0 || (place == 0 && extent > 2);
      if (neighbours && whole && !k.is_lane(axis)) return {{dim, place}};
    }
  return std::nullopt;
}

// What bytes of weights are taken apart with.
static bool same_for_dots(const ScheduledKernel& k, ExprId id) {
  std::vector<ExprId> open{id};
  while (!open.empty()) {
    const Expr& e = k.exprs[open.back()];
    open.pop_back();
    if (e.kind == Expr::Kind::Load) continue;
    if (k.indices.depends_on(e.index, *k.loops.dot) ||
        k.indices.depends_on(e.index, *k.loops.lane))
      return false;
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return true;
}

bool dot_works(const ScheduledKernel& k) {
  ByteOperands operands = dot_operands(k);
  if (operands.x == nullptr || k.indices.extent(*k.loops.dot) != kDot) return false;
  int64_t x = 0, w = 0;
  bool affine = k.indices.affine_in(operands.x->index, *k.loops.dot, x) &&
                x == dot_stride(k, *operands.x) &&
                k.indices.affine_in(operands.w->index, *k.loops.dot, w) && w == 1;
  int64_t lanes = 0;
  const bool lies_packed =
      k.arguments[operands.w->argument].kind == Argument::Kind::Packed ||
      (k.indices.affine_in(operands.w->index, *k.loops.lane, lanes) && lanes == kDot);
  auto untouched = [&](const std::vector<Bound>& bounds) {
    return std::none_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return k.indices.depends_on(b.index, *k.loops.dot);
    });
  };
  return affine && lies_packed && operands.x->bits == 0 && operands.w->bounds.empty() &&
         untouched(operands.x->bounds) && untouched(k.stages[0].domain) &&
         (!operands.decoded || same_for_dots(k, *operands.decoded));
}

} // namespace svod
