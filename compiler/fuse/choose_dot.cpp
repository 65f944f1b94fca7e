// Sums of products of bytes, four at a time. The instruction multiplies four neighbouring
// unsigned bytes of x, the same for all lanes, with four signed bytes per lane; so the
// axis that is summed must step over neighbours in x. Weights are packed to fit.
#include "compiler/fuse/choose.h"

#include <algorithm>

namespace svod {

ByteOperands byte_operands(const Kernel& k, const Stage& s) {
  const Expr& v = k.exprs[s.value];
  bool sum = s.kind == StageKind::Reduce && s.op == Op::ReduceSum &&
             s.dtype == DType::I32 && v.kind == Expr::Kind::Map && v.op == Op::Mul;
  if (!sum) return {};
  ByteOperands out;
  for (ExprId factor : v.inputs) {
    const Expr& load = k.exprs[below_casts(k, factor)];
    if (load.kind != Expr::Kind::Load) return {};
    bool weight = k.arguments[load.argument].kind == Argument::Kind::Packed;
    if (weight && load.dtype == DType::I8) out.w = &load;
    if (!weight && load.dtype == DType::U8) out.x = &load;
  }
  return out.x == nullptr || out.w == nullptr ? ByteOperands{} : out;
}

// One x for all lanes, a w for each.
static ByteOperands dot_operands(const Kernel& k) {
  ByteOperands out = byte_operands(k, k.stages[0]);
  if (out.x == nullptr || !k.has_lane_axis) return {};
  int64_t stride = 0;
  bool broadcast = !k.indices.depends_on(out.x->index, k.lane_axis);
  bool vector = k.indices.affine_in(out.w->index, k.lane_axis, stride) && stride != 0;
  return broadcast && vector ? out : ByteOperands{};
}

std::optional<std::pair<Dim, size_t>> choose_dot(const Lowered& lowered) {
  const Kernel& k = lowered.kernel;
  ByteOperands operands = dot_operands(k);
  if (operands.x == nullptr) return std::nullopt;
  const std::vector<AxisId>& inner = k.stages[0].inner;
  for (const auto& [dim, axes] : lowered.axes)
    for (size_t place = 0; place < axes.size(); ++place) {
      AxisId axis = axes[place];
      if (std::find(inner.begin(), inner.end(), axis) == inner.end()) continue;
      int64_t stride = 0, extent = k.indices.extent(axis);
      bool neighbours =
          k.indices.affine_in(operands.x->index, axis, stride) && stride == 1;
      // Only the outermost axis of a dimension may run over its end.
      bool whole = extent % kDot == 0 || (place == 0 && extent > 2);
      if (neighbours && whole && !k.is_lane(axis)) return {{dim, place}};
    }
  return std::nullopt;
}

bool dot_works(const Kernel& k) {
  ByteOperands operands = dot_operands(k);
  if (operands.x == nullptr || k.indices.extent(k.dot_axis) != kDot) return false;
  int64_t x = 0, w = 0;
  bool affine = k.indices.affine_in(operands.x->index, k.dot_axis, x) && x == 1 &&
                k.indices.affine_in(operands.w->index, k.dot_axis, w) && w == 1;
  auto untouched = [&](const std::vector<Bound>& bounds) {
    return std::none_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return k.indices.depends_on(b.index, k.dot_axis);
    });
  };
  return affine && operands.x->bits == 0 && operands.w->bounds.empty() &&
         untouched(operands.x->bounds) && untouched(k.stages[0].domain);
}

} // namespace svod
