#include "compiler/optimize/small_code.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <climits>

namespace svod::optimize {

namespace {

// Text of what follows the sums of a tile, in operations.
constexpr int kWrittenBehind = 64;
// Steps of a reduction times positions of its tile that are written out: a window of 3x3,
// or the 6x1 of a longer one, without a counter.
constexpr int kWrittenSteps = 36;
// What a copy may compute.
constexpr int kShortWork = 1;

bool is_long(Op op) {
  switch (op) {
  case Op::Div:
  case Op::Reciprocal:
  case Op::Gather:
  case Op::Descend:
    return false;
  default:
    return is_costly(op);
  }
}

bool has_bounds(const ScheduledKernel& k) {
  auto bounded = [](const Expr& e) { return !e.bounds.empty(); };
  return !k.stages[0].domain.empty() || std::ranges::any_of(k.exprs, bounded);
}

bool is_copy(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  int64_t apart = 0;
  return k.stages.size() == 1 && s.kind == StageKind::Store && !has_bounds(k) &&
         work_below(k, s.value).operations <= kShortWork &&
         k.indices.affine_in(s.index, *k.loops.lane, apart) && apart == 1;
}

} // namespace

Unroll small_unroll() { return {kWrittenSteps, kWrittenSteps, 0, 1, false}; }

bool drops_lanes(const ScheduledKernel& k, const Level& level) {
  return level.small && !level.has_vectors() && k.has_lane_axis() && !k.has_dot_axis() &&
         !sums_in_pairs(k, level) && !is_copy(k);
}

int most_points(const ScheduledKernel& k, const Level& level) {
  if (!level.small) return INT_MAX;
  int work = 1;
  for (const Stage& s : k.stages)
    if (s.kind != StageKind::Reduce) work += 1 + work_below(k, s.value).operations;
  const int lanes = level.has_vectors() ? 1 : k.loops.lanes;
  return std::max(1, kWrittenBehind / (work * lanes));
}

// A vector wider than a register would be passed through memory.
std::vector<ExprId> choose_called(const ScheduledKernel& k, const Level& level) {
  const bool fits = !k.has_lane_axis() ||
                    (level.has_vectors() && k.loops.lanes * 32 == level.register_bits);
  std::vector<ExprId> out;
  for (ExprId id = 0; level.small && fits && id < k.exprs.size(); ++id) {
    const Expr& e = k.exprs[id];
    if (e.kind == Expr::Kind::Map && is_long(e.op) && e.dtype == DType::F32)
      out.push_back(id);
  }
  return out;
}

} // namespace svod::optimize
