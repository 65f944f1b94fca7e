#include "compiler/kernel/shared_elements.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod {

// Whether the load reads neighbouring floats in the steps of the loop, all of them or
// none, and the same ones for all lanes.
static bool reads_neighbours(const ScheduledKernel& k, const Expr& e, AxisId loop) {
  int64_t step = 0;
  const bool plain = e.kind == Expr::Kind::Load && e.dtype == DType::F32 &&
                     k.arguments[e.argument].dtype == DType::F32 &&
                     !k.indices.has_dynamic(e.index) &&
                     k.indices.affine_in(e.index, loop, step) && step == 1;
  return plain && !k.indices.depends_on(e.index, *k.loops.lane) &&
         std::ranges::none_of(e.bounds, [&](const Bound& b) {
           return k.indices.has_dynamic(b.index) || k.indices.depends_on(b.index, loop) ||
                  k.indices.depends_on(b.index, *k.loops.lane);
         });
}

std::optional<SharedElements> shared_elements(const ScheduledKernel& k, const Stage& s) {
  const bool sums = s.kind == StageKind::Reduce && s.op == Op::ReduceSum &&
                    s.dtype == DType::F32 && !s.keeps && s.domain.empty() &&
                    k.has_lane_axis();
  if (!sums || contains(k.inner(s), *k.loops.lane)) return std::nullopt;
  const Expr& product = k.exprs[s.value];
  if (product.kind != Expr::Kind::Map || product.op != Op::Mul) return std::nullopt;
  std::optional<AxisId> loop;
  for (AxisId a : k.inner(s))
    if (k.is_loop(a)) loop = a;
  if (!loop || k.indices.extent(*loop) < kElements) return std::nullopt;
  for (size_t i : {0, 1}) {
    const ExprId x = product.inputs[i];
    const std::vector<ExprId> others = loads_below(k, product.inputs[1 - i]);
    const bool by_lane = std::ranges::any_of(others, [&](ExprId id) {
      return k.indices.depends_on(k.exprs[id].index, *k.loops.lane);
    });
    if (by_lane && reads_neighbours(k, k.exprs[x], *loop))
      return SharedElements{x, *loop};
  }
  return std::nullopt;
}

} // namespace svod
