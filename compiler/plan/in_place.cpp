// The addition of a residual reads an element and writes the sum there; a softmax reads a
// row and then writes it. Both may write to what they read, in whatever order elements or
// rows follow each other, since no result depends on an element that another result has
// replaced. That is read off the indices alone:
//
//   element   the first stage that writes loads r[i] and writes w[i]: the same index
//   row       sums before it load r[o + j] over all j, and it writes w[o + i] for as many
//             i: the same outer axes, and inner axes of equal extents and steps
//
// A stage that writes meets every element of the result once, so rows of different outer
// positions have no element in common. What is written a second time, as a softmax does
// with its powers, is the same row.
#include "compiler/plan/in_place.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <functional>

namespace svod::plan {

namespace {

// An index and the axes that its stage runs over for each position of the outer ones.
struct Row {
  const Index& index;
  const std::vector<AxisId>& inner;
};

class Places {
public:
  Places(const ScheduledKernel& k, uint32_t read, uint32_t written)
      : k_(k), read_(read), written_(written) {}
  bool run();

private:
  bool writes(const Stage& s) const;
  bool find_writer();
  bool only_loads(ExprId below, const std::function<bool(const Index&)>& fits) const;
  using Steps = std::vector<std::pair<int64_t, int64_t>>; // step and extent of an axis
  std::optional<Steps> steps(const Row& row) const;
  bool same_row(const Row& a, const Row& b) const;

  const ScheduledKernel& k_;
  const uint32_t read_, written_;
  size_t writer_ = 0; // the first of the stages that write
};

bool Places::writes(const Stage& s) const {
  return (s.kind != StageKind::Reduce || s.keeps) && s.argument == written_;
}

bool Places::find_writer() {
  const Argument &from = k_.arguments[read_], &to = k_.arguments[written_];
  if (from.written || to.read || byte_size(from.dtype) != byte_size(to.dtype))
    return false;
  const auto first =
      std::ranges::find_if(k_.stages, [&](const Stage& s) { return writes(s); });
  if (first == k_.stages.end()) return false;
  writer_ = static_cast<size_t>(first - k_.stages.begin());
  return std::all_of(first, k_.stages.end(), [&](const Stage& s) {
    if (!writes(s)) return true;
    const bool once = s.kind == StageKind::Store || s.kind == StageKind::Scan || s.keeps;
    return once && !s.nested && !k_.indices.has_dynamic(s.index) &&
           (&s == &*first || same_row({s.index, s.inner}, {first->index, first->inner}));
  });
}

// Whether the indices of all loads of what is read fit.
bool Places::only_loads(ExprId below,
                        const std::function<bool(const Index&)>& fits) const {
  const auto descends = [&](ExprId id) {
    return k_.exprs[id].argument == read_ || k_.exprs[id].table == read_;
  };
  return std::ranges::none_of(descents_below(k_, below), descends) &&
         std::ranges::all_of(loads_below(k_, below), [&](ExprId id) {
           return k_.exprs[id].argument != read_ || fits(k_.exprs[id].index);
         });
}

// Of the inner axes; none where the index is no sum of axes, or of others.
std::optional<Places::Steps> Places::steps(const Row& row) const {
  Steps out;
  if (k_.indices.has_dynamic(row.index)) return std::nullopt;
  for (AxisId axis = 0; axis < k_.indices.axis_count(); ++axis) {
    int64_t by = 0;
    if (!k_.indices.affine_in(row.index, axis, by)) return std::nullopt;
    const bool inner = std::ranges::find(row.inner, axis) != row.inner.end();
    const bool outer = std::ranges::find(k_.outer, axis) != k_.outer.end();
    if (by != 0 && !inner && !outer) return std::nullopt;
    if (inner && k_.indices.extent(axis) != 1)
      out.emplace_back(by, k_.indices.extent(axis));
  }
  std::ranges::sort(out);
  return out;
}

bool Places::same_row(const Row& a, const Row& b) const {
  const auto same = [&](AxisId axis) {
    return k_.indices.coefficient(a.index, axis) == k_.indices.coefficient(b.index, axis);
  };
  if (a.index.constant != b.index.constant || !std::ranges::all_of(k_.outer, same))
    return false;
  const auto first = steps(a), second = steps(b);
  return first && second && *first == *second;
}

bool Places::run() {
  if (k_.call() || k_.sequence() || !find_writer()) return false;
  const Stage& writer = k_.stages[writer_];
  for (size_t i = 0; i < k_.stages.size(); ++i) {
    const Stage& s = k_.stages[i];
    const bool whole = s.kind == StageKind::Reduce && !s.nested && i < writer_;
    const auto fits = [&](const Index& index) {
      if (i == writer_) return index == writer.index;
      return whole && same_row({index, s.inner}, {writer.index, writer.inner});
    };
    if (!only_loads(s.value, fits)) return false;
    // What decides where a stage writes is read at any time.
    std::vector<ExprId> dynamic;
    k_.indices.collect_dynamic(s.index, dynamic);
    k_.indices.collect_dynamic(s.position, dynamic);
    for (const Bound& b : s.domain) k_.indices.collect_dynamic(b.index, dynamic);
    for (const ExprId id : dynamic)
      if (!only_loads(id, [](const Index&) { return false; })) return false;
  }
  return true;
}

} // namespace

bool may_take_place(const ScheduledKernel& kernel, uint32_t read, uint32_t written) {
  return !kernel.ends_at(read) && Places(kernel, read, written).run();
}

} // namespace svod::plan
