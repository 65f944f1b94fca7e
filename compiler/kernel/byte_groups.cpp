#include "compiler/kernel/byte_groups.h"

#include "compiler/kernel/byte_products.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace svod {

// Groups of a register, and its lanes.
static constexpr int kGroups = 4;

// How many steps of a loop that is too long are written out together: those of one
// register, where they divide it.
static int64_t steps_together(int64_t extent) {
  for (int64_t by : {kGroups, kGroups - 1, kGroups - 2})
    if (extent % by == 0) return by;
  return extent <= 2 * kGroups ? extent : 1;
}

WrittenSteps written_steps(const ScheduledKernel& k, int64_t points, int64_t nest) {
  const Stage& s = k.stages[0];
  const std::vector<AxisId>& inner = k.inner(s);
  int64_t all = points;
  WrittenSteps out{inner.size(), 1, {}};
  for (size_t d = inner.size(); d-- > 0;) {
    if (!k.is_loop(inner[d])) continue;
    if (out.depth == inner.size())
      out = {d, steps_together(k.indices.extent(inner[d])), {}};
    all *= std::min(k.indices.extent(inner[d]), nest + 1);
  }
  const bool whole = all <= nest && out.depth < inner.size();
  if (whole) {
    out.depth = 0;
    while (!k.is_loop(inner[out.depth])) ++out.depth;
    out.by = k.indices.extent(inner[out.depth]);
  }
  const Expr& x = *byte_operands(k, s).x;
  out.steps = {{}};
  for (size_t d = out.depth; d < inner.size(); ++d) {
    if (!k.is_loop(inner[d])) continue;
    int64_t apart = 0;
    SVOD_CHECK(k.indices.affine_in(x.index, inner[d], apart));
    const int64_t extent = d == out.depth ? out.by : k.indices.extent(inner[d]);
    std::vector<WrittenStep> longer;
    for (const WrittenStep& step : out.steps)
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(step);
        longer.back().at.emplace_back(inner[d], i);
        longer.back().offset += i * apart;
      }
    out.steps = std::move(longer);
  }
  return out;
}

GroupLoads cover_groups(const std::vector<int64_t>& offsets) {
  GroupLoads out;
  out.uses.resize(offsets.size());
  std::vector<size_t> order(offsets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return offsets[i]; });
  const int64_t first = offsets[order.front()], end = offsets[order.back()] + kDot;
  std::vector<bool> served(offsets.size());
  // The groups that a load from `at` on would hold, if it is taken.
  auto take = [&](size_t from, int64_t at, int groups, bool taken) {
    int distinct = 0;
    int64_t last = at - 1;
    for (size_t i = from; i < order.size() && offsets[order[i]] < at + kDot * groups;
         ++i) {
      const int64_t apart = offsets[order[i]] - at;
      if (served[order[i]] || apart < 0 || apart % kDot != 0) continue;
      distinct += offsets[order[i]] != last;
      last = offsets[order[i]];
      if (!taken) continue;
      served[order[i]] = true;
      out.uses[order[i]] = {out.loads.size(), static_cast<int>(apart / kDot)};
    }
    if (taken) out.loads.push_back({at, groups});
    return distinct;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    if (served[order[i]]) continue;
    // From the group on, or so far before it that the load ends with the last one.
    int64_t at = offsets[order[i]];
    const int64_t beyond = at + kDot * kGroups - end;
    if (beyond > 0) at -= (beyond + kDot - 1) / kDot * kDot;
    if (at >= first && take(i, at, kGroups, false) > 1)
      take(i, at, kGroups, true);
    else if (at = offsets[order[i]]; take(i, at, 2, false) > 1)
      take(i, at, 2, true);
    else
      take(i, at, 1, true);
  }
  return out;
}

GroupLoads cover_pairs(const std::vector<int64_t>& offsets) {
  GroupLoads out;
  std::map<int64_t, GroupUse> uses;
  for (int64_t at : offsets) uses.try_emplace(at, GroupUse{offsets.size(), 0});
  for (auto& [at, use] : uses) {
    if (use.load != offsets.size()) continue;
    use.load = out.loads.size();
    const auto next = uses.find(at + kDot);
    const bool pair = next != uses.end();
    if (pair) next->second = {use.load, 1};
    out.loads.push_back({at, pair ? 2 : 1});
  }
  for (int64_t at : offsets) out.uses.push_back(uses.at(at));
  return out;
}

bool reads_groups(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  const ByteOperands operands = byte_operands(k, s);
  if (!k.has_dot_axis() || operands.x == nullptr || !operands.x->bounds.empty() ||
      !s.domain.empty() || s.nested || s.keeps ||
      k.indices.has_dynamic(operands.x->index) || !contains(k.inner(s), *k.loops.dot))
    return false;
  int64_t apart = 0;
  if (!k.indices.affine_in(operands.x->index, *k.loops.dot, apart) || apart != 1)
    return false;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    if (!k.indices.affine_in(operands.x->index, a, apart)) return false;
  return k.has_lane_axis() && !k.indices.depends_on(operands.x->index, *k.loops.lane);
}

int quads_stored(const ScheduledKernel& k) {
  int64_t stored = 1;
  std::vector<Range> ranges;
  for (AxisId a = 0; a < k.indices.axis_count(); ++a)
    ranges.push_back({0, k.is_lane(a) ? 0 : k.indices.extent(a) - 1});
  for (size_t i = 1; i < k.stages.size(); ++i) {
    const Stage& s = k.stages[i];
    if (s.kind != StageKind::Store) return k.loops.lanes / kGroups;
    int64_t lanes = k.loops.lanes, step = 0;
    for (const Bound& b : s.domain)
      if (k.indices.affine_in(b.index, *k.loops.lane, step) && step == 1 &&
          !k.indices.has_dynamic(b.index))
        lanes = std::min(lanes, b.high - k.indices.range(b.index, ranges).low);
    stored = std::max(stored, lanes);
  }
  return static_cast<int>((stored + kGroups - 1) / kGroups);
}

} // namespace svod
