// What a lowered kernel says about better axes: where a quotient asks for a split, and
// which neighbours are crossed as one.
#include "compiler/optimize/refine.h"

#include <algorithm>

namespace svod {

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

// Whether a step along the first axis leads where a walk along all of the second ends.
// Where one of them has a single position, any index that is affine in both will do.
static bool crossed_as_one(const Kernel& kernel, AxisId first, AxisId second,
                           bool trivial) {
  return std::ranges::all_of(all_indices(kernel), [&](const Index* index) {
    int64_t a = 0, b = 0;
    return kernel.indices.affine_in(*index, first, a) &&
           kernel.indices.affine_in(*index, second, b) &&
           (trivial || a == b * kernel.indices.extent(second));
  });
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
  int64_t run = 0; // the axis nearest to the left that is longer than 1
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(shape.size()); ++i) {
    if (shape[i] != 1 || merged.count(i - 1) == 0) run = i;
    const auto& first = lowered.axes.at({group.root, run});
    const auto& second = lowered.axes.at({group.root, i + 1});
    if (first.size() != 1 || second.size() != 1 || is_row(i) != is_row(i + 1)) continue;
    const bool trivial = shape[run] == 1 || shape[i + 1] == 1;
    if (crossed_as_one(kernel, first[0], second[0], trivial)) merged.insert(i);
  }
  return merged;
}

std::set<int64_t> find_inner_merges(const Graph& g, const Group& group,
                                    const Lowered& lowered) {
  std::set<int64_t> merged;
  if (group.base == kNoNode || !is_reduce(g[group.base].op)) return merged;
  const Op op = g[group.base].op;
  if (op == Op::ArgMin || op == Op::ArgMax) return merged;
  const Payload& axes = g[group.base].payload;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    const auto& first = lowered.axes.at({group.base, axes[i]});
    const auto& second = lowered.axes.at({group.base, axes[i + 1]});
    if (first.size() == 1 && second.size() == 1 &&
        crossed_as_one(lowered.kernel, first[0], second[0], false))
      merged.insert(axes[i]);
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
      std::vector<int64_t>& inner = spec.splits[dim];
      size_t position = at - axes.begin();
      // Only the outermost piece may end within a step of what is cut off it, and is cut
      // so only where each step is a body of its own.
      const bool ends_within = axes.size() == 1 || !lowered.to_unroll.empty();
      if (extent % divisor != 0 && (position != 0 || !ends_within)) break;
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
