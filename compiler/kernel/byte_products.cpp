// A sum of products of bytes multiplies an unsigned byte with a signed one; one of them
// is a weight in most cases, whole or taken apart from fewer bits.
#include "compiler/kernel/byte_products.h"

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
    if (!is_byte(bytes.dtype)) return {};
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
  if (out.x == nullptr || out.w == nullptr || unsigned_ones > 1) return {};
  const bool packed = k.arguments[out.w->argument].kind == Argument::Kind::Packed;
  out.both_signed = unsigned_ones == 0;
  return out.both_signed && !packed ? ByteOperands{} : out;
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

} // namespace svod
