// What is known of a run's sizes along the kernels of a graph. Sizes are numbers in
// memory, which kernels compare with positions: a mask is true only below a size, what is
// selected by it is zero behind, and a place in memory may be a sum of what is below
// sizes each.
//
// An element's position along a dimension is its offset over a stride, modulo an extent:
// layouts are not asked for.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace svod::select {

// A size in memory: an i64 that some kernel, or the caller, writes.
struct Size {
  BufferId buffer = kNoBuffer;
  int64_t element = 0;
  auto operator<=>(const Size&) const = default;
};

// Elements of a buffer whose position along a dimension is below a size.
struct Part {
  int64_t stride = 1, extent = 1;
  Size size;
  auto operator<=>(const Part&) const = default;
};
using Parts = std::set<Part>;

// A position along a dimension: a sum of axes, each times its factor.
using Position = std::vector<std::pair<AxisId, int64_t>>;

// Positions below a size.
struct Below {
  Position position;
  Size size;
  auto operator<=>(const Below&) const = default;
};
using Facts = std::set<Below>;

// A term of a place in memory, so many times what is below a size.
struct Bounded {
  int64_t factor = 1;
  Size size;
  auto operator<=>(const Bounded&) const = default;
};

template <class T> std::set<T> common(const std::set<T>& a, const std::set<T>& b) {
  std::set<T> out;
  std::ranges::set_intersection(a, b, std::inserter(out, out.end()));
  return out;
}

// What is so of all that was met: of the first, all that is known.
inline void meet(std::optional<Parts>& of, const Parts& parts) {
  of = of ? common(*of, parts) : parts;
}

// The axis with the largest factor: so many neighbouring positions are one step of it, as
// of an axis of blocks. nullopt where the others reach beyond a step.
struct Steps {
  AxisId axis;
  int64_t each;
};
std::optional<Steps> steps_along(const IndexPool& pool, const Position& position);

// Positions at which an index is in those parts.
Facts facts_in(const ScheduledKernel& kernel, const Index& index,
               const std::optional<Parts>& parts);

// Whether a kernel stores and reduces and does nothing else.
bool is_plain(const ScheduledKernel& kernel);

class SizeFacts {
public:
  // Of what callers and regions write nothing is known.
  explicit SizeFacts(const FusedGraph& fused);
  // What a kernel's stores say, behind all that run before it.
  void learn(const ScheduledKernel& kernel);

  // What is so where the condition is true.
  Facts where_true(const ScheduledKernel& k, ExprId condition) const;
  // Where what is loaded is other than zero.
  Facts where_other_than_zero(const ScheduledKernel& k, const Expr& e) const;
  // The parts of an argument that an index reaches at such positions.
  Parts parts_below(const ScheduledKernel& k, uint32_t argument, const Index& index,
                    const Facts& facts) const;
  // What a size is a copy of, or itself.
  Size origin_of(const Size& size) const;
  // An extent that no run decides.
  bool is_constant(const Size& size) const { return constants_.contains(size); }

private:
  void forget(BufferId buffer);
  std::optional<Size> size_of(const ScheduledKernel& k, ExprId id) const;
  std::vector<Bounded> bounded_terms(const ScheduledKernel& k, ExprId id,
                                     int64_t factor) const;
  Parts parts_of_place(const ScheduledKernel& k, const Index& index) const;

  const FusedGraph& f_;
  std::map<Size, Size> copies_; // of sizes
  std::set<Size> constants_;
  // By buffer: what is true, or other than zero, lies in each of these; nullopt: nobody
  // has written it yet.
  std::vector<std::optional<Parts>> masks_, zeros_;
  // Of what all that is written is the sum, where it is places in memory.
  std::vector<std::optional<std::vector<Bounded>>> places_;
};

} // namespace svod::select
