// Index arithmetic of kernels: integer expressions over loop axes in a normal form.
//
// An Index is  constant + sum of coefficient * term.  A term is a loop axis, a quotient
// or remainder of an Index by a constant, or a value read at run time (gather). Terms are
// interned in an IndexPool, which also knows the extent of every axis; so ranges are
// exact enough for (16 * a + b) / 16 to become a, which is how reshapes and blocked
// layouts cost nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace svod {

using AxisId = uint32_t;
using TermId = uint32_t;
using ExprId = uint32_t;

struct Index {
  int64_t constant = 0;
  std::vector<std::pair<TermId, int64_t>>
      terms; // by ascending TermId, no zero coefficient

  auto operator<=>(const Index&) const = default;
  bool is_constant() const { return terms.empty(); }
};

struct Term {
  enum class Kind : uint8_t { Axis, Div, Mod, Dynamic } kind;
  uint32_t id = 0; // Axis: the axis; Dynamic: the expression that yields it
  int64_t divisor = 0;
  Index of;                  // Div, Mod
  int64_t low = 0, high = 0; // inclusive range

  bool operator==(const Term&) const = default;
};

struct Range {
  int64_t low, high; // inclusive
};

class IndexPool {
public:
  AxisId add_axis(int64_t extent);
  // What a dimension was cut into ends before the axes do: only positions below the
  // extent mean something, and quotients and remainders are right for those alone.
  void limit(const Index& position, int64_t extent);
  int64_t extent(AxisId axis) const { return extents_[axis]; }
  size_t axis_count() const { return extents_.size(); }
  const Term& term(TermId id) const { return terms_[id]; }

  Index axis(AxisId axis);
  // A checked run-time value in [0, extent).
  Index dynamic(ExprId expr, int64_t extent);
  static Index constant(int64_t value) { return {value, {}}; }
  static Index add(const Index& a, const Index& b);
  static Index scale(const Index& a, int64_t factor);
  // Quotient and remainder rounding towards minus infinity; divisor > 0.
  Index div(const Index& a, int64_t divisor);
  Index mod(const Index& a, int64_t divisor);

  // Merges  k*c * (x / c) + k * (x mod c)  into  k * x, as often as it occurs; x may be a
  // quotient itself.
  Index recombine(Index a);

  Range range(const Index& a) const;
  // As above with the range of axis i narrowed to narrowed[i] where that is given.
  Range range(const Index& a, const std::vector<Range>& narrowed) const;
  // Coefficient of an axis when the index is affine in it; otherwise false.
  bool affine_in(const Index& a, AxisId axis, int64_t& coefficient) const;
  int64_t coefficient(const Index& a, AxisId axis) const; // of its own term, or 0
  bool depends_on(const Index& a, AxisId axis) const;     // dynamic terms aside
  bool has_dynamic(const Index& a) const;
  // Marks every axis the index depends on, dynamic terms aside.
  void collect_axes(const Index& a, std::vector<bool>& used) const;
  // Expressions of the dynamic terms inside.
  void collect_dynamic(const Index& a, std::vector<ExprId>& out) const;

  // All that it consists of, for byte_form.h.
  template <class Visit> void with_parts(Visit&& visit) {
    visit(extents_, terms_, limits_);
  }
  template <class Visit> void with_parts(Visit&& visit) const {
    visit(extents_, terms_, limits_);
  }

private:
  // Positions of a dimension that its axes run beyond.
  struct Limit {
    Index position;
    int64_t extent;
  };
  TermId intern(Term term);
  Range meant_range(const Index& a) const;
  std::optional<std::pair<Index, Index>> split_nearest(const Index& a,
                                                       int64_t divisor) const;
  bool term_depends_on(const Term& term, AxisId axis) const;
  std::vector<int64_t> extents_;
  std::vector<Term> terms_;
  std::vector<Limit> limits_;
};

} // namespace svod
