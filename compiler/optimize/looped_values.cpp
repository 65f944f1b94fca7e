// The activation behind a tile, or behind all outputs of a transform. Sixteen
// exponentials one after another are 400 instructions, most of such a kernel and of the
// time to compile it. Where registers do not hold the values at once they lie in memory
// anyway, and a loop over an array is faster: transforms of Winograd's products with an
// activation behind took 30 % less on AVX2. Where they do, the array costs 10 to 20 %.
#include "compiler/kernel/stage_work.h"
#include "compiler/optimize/choose.h"

#include <algorithm>

namespace svod::optimize {

namespace {

class CostlyValues {
public:
  explicit CostlyValues(const ScheduledKernel& k)
      : k_(k), dependence_(dependence_of(k)) {}

  // Those that `id` is made of, and which are made of none. Says whether there are any.
  bool collect(ExprId id) {
    const Expr& e = k_.exprs[id];
    if (e.kind != Expr::Kind::Map) return false;
    if (const auto at = known_.find(id); at != known_.end()) return at->second;
    bool below = false;
    for (ExprId in : e.inputs) below |= collect(in);
    // What is loaded occupies no register before.
    if (!below && is_costly(e.op) && e.inputs.size() == 1 && e.dtype == DType::F32 &&
        dependence_[id][*k_.loops.lane] && k_.exprs[e.inputs[0]].kind != Expr::Kind::Load)
      found.push_back(id);
    return known_[id] = below || is_costly(e.op);
  }

  std::vector<ExprId> found;

private:
  const ScheduledKernel& k_;
  const Dependence dependence_;
  std::map<ExprId, bool> known_;
};

} // namespace

std::vector<ExprId> choose_looped(const ScheduledKernel& k, const Level& level,
                                  const std::vector<TileAxis>& tile) {
  if (!k.has_lane_axis() || level.register_bits == 0) return {};
  CostlyValues costly(k);
  for (const Stage& s : k.stages)
    if (s.kind == StageKind::Store && !s.nested && k.inner(s).empty())
      costly.collect(s.value);
  const int64_t parts = std::max(1, k.loops.lanes * 32 / level.register_bits);
  if (parts * std::ssize(costly.found) * tile_points(tile) <= level.registers) return {};
  std::ranges::sort(costly.found);
  return costly.found;
}

} // namespace svod::optimize
