// Indices and their bounds as C++: sums of loop variables at a position of the register
// tile, and the conditions that are not true for all of them.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/expression_emitter.h"

#include <algorithm>

namespace svod::codegen {

// Axes are x0, x1, ..: i8 and i32 are types.
std::string ExpressionEmitter::term_text(const Term& t, const Point& p, bool lanewise) {
  switch (t.kind) {
  case Term::Kind::Axis: {
    if (k_.has_lane_axis() && t.id == *k_.loops.lane) return "l";
    int offset = offset_of(t.id, p);
    std::string name = "x" + std::to_string(t.id);
    return offset == 0 ? name : "(" + name + " + " + std::to_string(offset) + ")";
  }
  case Term::Kind::Dynamic: {
    Value v = eval(t.id, p);
    return "iptr(" + v.name + (v.vector ? "[l]" : "") + ")";
  }
  case Term::Kind::Div:
  case Term::Kind::Mod:
    break;
  }
  bool div = t.kind == Term::Kind::Div;
  std::string of = index_text(t.of, p, lanewise), by = std::to_string(t.divisor);
  if (k_.indices.range(t.of).low < 0)
    return std::string(div ? "floor_div(" : "floor_mod(") + of + ", " + by + ")";
  return "iptr(uptr(" + of + ") " + (div ? "/ " : "% ") + by + ")";
}

// The index as text; the lane axis is the variable l in lanewise text and absent
// otherwise.
std::string ExpressionEmitter::index_text(const Index& index, const Point& p,
                                          bool lanewise) {
  if (marks_) return marked_index_text(index, p, lanewise);
  int64_t constant = index.constant;
  std::string text;
  for (auto [id, coefficient] : index.terms) {
    const Term& t = k_.indices.term(id);
    bool lane =
        t.kind == Term::Kind::Axis && k_.has_lane_axis() && t.id == *k_.loops.lane;
    if (lane && !lanewise) continue;
    if (t.kind == Term::Kind::Axis && k_.is_dot(t.id)) continue; // starts at 0
    std::string term;
    if (t.kind == Term::Kind::Axis && !lane) {
      constant += coefficient * offset_of(t.id, p);
      term = "x" + std::to_string(t.id);
    } else {
      term = term_text(t, p, lanewise);
    }
    if (coefficient != 1) term += " * " + std::to_string(coefficient);
    text += (text.empty() ? "" : " + ") + term;
  }
  if (text.empty()) return std::to_string(constant);
  if (constant != 0)
    text += (constant < 0 ? " - " : " + ") + std::to_string(std::abs(constant));
  return text;
}

// The same with its coefficients and constants marked. What the position within the tile
// adds stays a multiple of its coefficient, which is one number for all of the tile.
std::string ExpressionEmitter::marked_index_text(const Index& index, const Point& p,
                                                 bool lanewise) {
  std::vector<MarkedTerm> constant{{1, index.constant}};
  std::string text;
  for (auto [id, coefficient] : index.terms) {
    const Term& t = k_.indices.term(id);
    const bool axis = t.kind == Term::Kind::Axis;
    const bool lane = axis && k_.has_lane_axis() && t.id == *k_.loops.lane;
    if (lane && !lanewise) continue;
    if (axis && k_.is_dot(t.id)) continue; // starts at 0
    if (const int offset = axis && !lane ? offset_of(t.id, p) : 0; offset != 0)
      constant.push_back({offset, coefficient});
    text += (text.empty() ? "" : " + ") +
            (axis && !lane ? "x" + std::to_string(t.id) : term_text(t, p, lanewise)) +
            marked(NumberForm::Factor, {{1, coefficient}});
  }
  return text + marked(text.empty() ? NumberForm::Plain : NumberForm::Addend, constant);
}

// Bounds that do not hold for certain, as C++; empty when all do.
std::string ExpressionEmitter::condition(const std::vector<Bound>& bounds, const Point& p,
                                         bool lanewise) {
  std::string text;
  std::vector<Range> ranges = ranges_at(p);
  for (const Bound& b : bounds) {
    Range r = k_.indices.range(b.index, ranges);
    std::string index = index_text(b.index, p, lanewise);
    auto require = [&](const std::string& what) {
      text += (text.empty() ? "" : " && ") + what;
    };
    if (r.low < b.low) require("(" + index + ") >= " + number(b.low));
    if (r.high >= b.high) require("(" + index + ") < " + number(b.high));
  }
  return text;
}

void ExpressionEmitter::split_bounds(const std::vector<Bound>& bounds, const Point& p,
                                     std::vector<Bound>& uniform,
                                     std::vector<Bound>& by_lane) const {
  for (const Bound& b : bounds)
    if (!holds(b, p)) (lane_dependent(b.index) ? by_lane : uniform).push_back(b);
}

bool ExpressionEmitter::first_lane_count(const std::vector<Bound>& bounds, const Point& p,
                                         std::string& count) {
  if (bounds.size() != 1) return false;
  const Bound& b = bounds[0];
  int64_t step = 0;
  if (!k_.indices.affine_in(b.index, *k_.loops.lane, step) || step != 1) return false;
  if (k_.indices.has_dynamic(b.index)) return false;
  std::vector<Range> ranges = ranges_at(p);
  if (k_.indices.range(b.index, ranges).low < b.low) return false;
  ranges[*k_.loops.lane] = {0, 0};
  Range first = k_.indices.range(b.index, ranges);
  count = first.low == first.high
              ? std::to_string(b.high - first.low)
              : std::to_string(b.high) + " - (" + index_text(b.index, p, false) + ")";
  return true;
}

bool ExpressionEmitter::lane_range(const std::vector<Bound>& bounds, const Point& p,
                                   std::string& low, std::string& high) {
  low = "0", high = "kLanes";
  std::vector<Range> ranges = ranges_at(p);
  for (const Bound& b : bounds) {
    int64_t step = 0;
    if (!k_.indices.affine_in(b.index, *k_.loops.lane, step) || step <= 0) return false;
    if (k_.indices.has_dynamic(b.index)) return false;
    Range r = k_.indices.range(b.index, ranges);
    std::string first = index_text(b.index, p, false);
    // The first lane whose index is not below the limit.
    auto lane_at = [&](int64_t limit) {
      std::string distance = std::to_string(limit) + " - (" + first + ")";
      return step == 1 ? distance
                       : "ceil_div(" + distance + ", " + std::to_string(step) + ")";
    };
    if (r.low < b.low) {
      if (low != "0") return false;
      low = lane_at(b.low);
    }
    if (r.high >= b.high) {
      if (high != "kLanes") return false;
      high = lane_at(b.high);
    }
  }
  return true;
}

} // namespace svod::codegen
