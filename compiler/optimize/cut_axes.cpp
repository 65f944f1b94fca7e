// Lowering makes one axis of each dimension. Where an index takes a quotient of it, two
// axes say the same without a division; positions that known numbers depend on are
// written out; neighbours that every access crosses as one are one loop. Each step asks
// for the kernel again and looks at what came.
#include "compiler/optimize/cut_axes.h"

#include <algorithm>
#include <numeric>

namespace svod::optimize {

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

// Adjacent root axes that every access crosses as one: looping over them together makes
// long vectors of short rows.
static std::set<int64_t> find_merges(const Group& group, const Lowered& lowered,
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

// The same among the axes that the base reduces.
static std::set<int64_t> find_inner_merges(const Graph& g, const Group& group,
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

// Finds an axis whose quotient or remainder by a constant is used. Where a quotient steps
// within a block of the axis, as that of (i + 8) / 16 does, and `shifted` ones count,
// what has the greatest common divisor of both is within one step.
static bool find_split(const IndexPool& pool, const Index& index, bool shifted,
                       AxisId& axis, int64_t& divisor) {
  for (auto [id, coefficient] : index.terms) {
    const Term& t = pool.term(id);
    if (t.kind != Term::Kind::Div && t.kind != Term::Kind::Mod) continue;
    if (find_split(pool, t.of, shifted, axis, divisor)) return true;
    for (auto [inner, factor] : t.of.terms) {
      const Term& a = pool.term(inner);
      if (a.kind != Term::Kind::Axis || t.divisor % factor != 0 || factor <= 0) continue;
      int64_t split = t.divisor / factor;
      if (shifted && split >= pool.extent(a.id) && t.of.constant % factor == 0)
        split = std::gcd(split, t.of.constant / factor);
      if (split <= 1 || split >= pool.extent(a.id)) continue;
      axis = a.id, divisor = split;
      return true;
    }
  }
  return false;
}

// What lies behind the end of the last block would be sorted, too.
static bool is_sorted(const Kernel& kernel, AxisId axis) {
  return std::ranges::any_of(kernel.stages, [&](const Stage& s) {
    return s.kind == StageKind::Sort && std::ranges::count(s.inner, axis) != 0;
  });
}

// What is moved from one place to another, each position by itself.
static bool is_copy(const Kernel& kernel) {
  return kernel.stages.size() == 1 && kernel.stages[0].kind == StageKind::Store &&
         kernel.exprs[kernel.stages[0].value].kind == Expr::Kind::Load;
}

// One more split that turns quotients and remainders of a single axis into plain axes;
// false when there is none left.
static bool refine_splits(const Lowered& lowered, LowerSpec& spec) {
  const Kernel& kernel = lowered.kernel;
  const bool shifted = lowered.to_unroll.empty() && is_copy(kernel);
  for (const Index* index : all_indices(kernel)) {
    AxisId axis = 0;
    int64_t divisor = 0;
    if (!find_split(kernel.indices, *index, shifted, axis, divisor)) continue;
    for (const auto& [dim, axes] : lowered.axes) {
      auto at = std::find(axes.begin(), axes.end(), axis);
      if (at == axes.end()) continue;
      int64_t extent = kernel.indices.extent(axis);
      std::vector<int64_t>& inner = spec.splits[dim];
      size_t position = at - axes.begin();
      // Only the outermost piece may end within a step of what is cut off it, and is cut
      // so only where each step is a body of its own.
      const bool ends_within =
          (axes.size() == 1 || !lowered.to_unroll.empty()) && !is_sorted(kernel, axis);
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

namespace {

// Positions of a kernel's result that are written out: a tile of a fast form has up to
// 8 x 8, of which neighbouring pieces may each have their own code.
constexpr int64_t kMostCopies = 256;

class AxisCutter {
public:
  AxisCutter(const Group& group, const Graph& graph, const Lower& lower)
      : group_(group), g(graph), lower_(lower), spec_(cut_as_read(group)),
        lowered_(lower(spec_)) {}
  CutKernel run();

private:
  static LowerSpec cut_as_read(const Group& group);
  void lower_again() { lowered_ = lower_(spec_); }
  void refine();
  bool is_position(Dim dim) const;
  void write_out();
  void merge();

  const Group& group_;
  const Graph& g;
  const Lower& lower_;
  LowerSpec spec_;
  Lowered lowered_;
};

LowerSpec AxisCutter::cut_as_read(const Group& group) {
  LowerSpec out;
  for (const auto& [axis, extents] : group.read_as)
    out.splits[{group.root, axis}].assign(extents.begin() + 1, extents.end());
  return out;
}

void AxisCutter::refine() {
  for (int i = 0; i < 16 && refine_splits(lowered_, spec_); ++i) lower_again();
}

// Of the result; the other axes of a root that is a sum are summed.
bool AxisCutter::is_position(Dim dim) const {
  return dim.node == group_.root &&
         g[group_.root].shape[static_cast<size_t>(dim.axis)] > 1;
}

// Axes that known numbers depend on get a copy of the body for each position.
void AxisCutter::write_out() {
  for (int i = 0; i < 4 && !lowered_.to_unroll.empty(); ++i) {
    LowerSpec written = spec_;
    int64_t copies = 1;
    for (const auto& [dim, axes] : lowered_.axes)
      for (size_t a = 0; a < axes.size(); ++a) {
        if (lowered_.to_unroll.count(axes[a]) != 0) written.unrolled.insert({dim, a});
        if (is_position(dim) && written.unrolled.count({dim, a}) != 0)
          copies *= lowered_.kernel.indices.extent(axes[a]);
      }
    if (copies > kMostCopies) break;
    spec_ = std::move(written);
    lower_again();
    refine();
  }
}

void AxisCutter::merge() {
  const bool scatter = g[group_.root].op == Op::Scatter && group_.target == group_.root;
  if (scatter || !spec_.unrolled.empty()) return;
  // A loop ends where a run needs no more of one dimension.
  if (!has_open_sizes(g))
    spec_.merged = find_merges(group_, lowered_, g[group_.root].shape);
  spec_.merged_inner = find_inner_merges(g, group_, lowered_);
  if (spec_.merged.empty() && spec_.merged_inner.empty()) return;
  lower_again();
  refine();
}

CutKernel AxisCutter::run() {
  refine();
  write_out();
  merge();
  return {std::move(spec_), std::move(lowered_)};
}

} // namespace

CutKernel cut_axes(const Group& group, const Graph& graph, const Lower& lower) {
  return AxisCutter(group, graph, lower).run();
}

} // namespace svod::optimize
