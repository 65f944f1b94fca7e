// Writes: vectors where lanes are neighbours, lane by lane where they lie apart, and,
// where the positions of the register tile are the neighbours instead, as many vectors at
// once with rows and columns swapped (a 768x768 transpose: 170 us lane by lane, 57 us
// so).
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/write_emitter.h"

#include <algorithm>

namespace svod::codegen {

void WriteEmitter::emit_lane_writes(const Stage& s, const Value& value, const Point& p,
                                    const std::string& condition) {
  std::string to =
      "a" + std::to_string(s.argument) + "[" + index_text(s.index, p, true) + "]";
  std::string stored = value.vector ? fresh("t") : value.name;
  if (value.vector)
    line("const v" + store_type(s.dtype) + " " + stored + " = " +
         to_store(s.dtype, value.name) + ";");
  std::string element = value.vector ? stored + "[l]" : to_store(s.dtype, stored);
  line("for (iptr l = 0; l < kLanes; ++l)" +
       (condition.empty() ? "" : " if (" + condition + ")") + " " + to + " = " + element +
       ";");
}

void WriteEmitter::emit_write(const Stage& s, const Value& value, const Point& p) {
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, p, uniform, by_lane);
  std::string guard = condition(uniform, p, false);
  if (!guard.empty()) open("if (" + guard + ")");
  std::string base = "a" + std::to_string(s.argument);
  int64_t step = 0;
  bool lanes = lane_dependent(s.index);
  std::string count;
  bool partial = !by_lane.empty() && first_lane_count(by_lane, p, count);
  if (!lanes) {
    line(base + "[" + index_text(s.index, p, false) +
         "] = " + to_store(s.dtype, value.name) + ";");
  } else if (k_.indices.affine_in(s.index, *k_.loops.lane, step) && step == 1 &&
             (by_lane.empty() || partial)) {
    std::string v = splat(value, s.dtype),
                address = base + " + " + index_text(s.index, p, false);
    if (partial && s.pad_lanes) {
      v = "first_lanes(" + v + ", " + type(s.dtype, true) + "(0), " + count + ")";
      partial = false;
    }
    v = to_store(s.dtype, v);
    line(partial ? "store_part(" + address + ", " + v + ", " + count + ");"
                 : "store(" + address + ", " + v + ");");
  } else {
    emit_lane_writes(s, value, p, condition(by_lane, p, true));
  }
  if (!guard.empty()) close();
}

// Whether the positions of the register tile are neighbours where the lanes lie apart:
// their vectors are the columns of what is written in rows.
bool WriteEmitter::writes_columns(const Stage& s, const std::vector<Point>& all) const {
  int64_t step = 0;
  const auto fewest = static_cast<size_t>(how(s).columns);
  if (fewest == 0 || all.size() < fewest || all.size() > size_t(k_.loops.lanes))
    return false;
  for (size_t n = 0; n < all.size(); ++n) {
    int64_t at = 0;
    for (size_t i = 0; i < how_.tile.size(); ++i) {
      if (!k_.indices.affine_in(s.index, how_.tile[i].axis, step)) return false;
      at += step * all[n][i];
    }
    if (at != static_cast<int64_t>(n)) return false;
  }
  auto fails_by_position = [&](const Point& p) {
    return std::ranges::any_of(s.domain, [&](const Bound& b) {
      return !holds(b, p) && !lane_dependent(b.index);
    });
  };
  return std::ranges::none_of(all, fails_by_position);
}

void WriteEmitter::emit_columns(const Stage& s, const std::vector<Point>& all) {
  // Rows of the square that nobody takes: any value will do. Zeros, which an initializer
  // without them leaves to the compiler, became a call of memset.
  std::string list, rows = fresh("t"), column;
  for (const Point& p : all) {
    column = to_store(s.dtype, splat(eval(s.value, p), s.dtype));
    list += (list.empty() ? "" : ", ") + column;
  }
  for (size_t i = all.size(); i < size_t(k_.loops.lanes); ++i) list += ", " + column;
  line("v" + store_type(s.dtype) + " " + rows + "[kLanes] = {" + list + "};");
  line("transpose_lanes(" + rows + ");");
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, all[0], uniform, by_lane);
  std::string wanted = condition(by_lane, all[0], true);
  std::string to =
      "a" + std::to_string(s.argument) + " + " + index_text(s.index, all[0], true);
  line("#pragma clang loop unroll(full)");
  line("for (iptr l = 0; l < kLanes; ++l)" +
       (wanted.empty() ? "" : " if (" + wanted + ")") +
       (int(all.size()) == k_.loops.lanes ? " store(" + to + ", " + rows + "[l]);"
                                          : " store_part(" + to + ", " + rows + "[l], " +
                                                std::to_string(all.size()) + ");"));
}

void WriteEmitter::emit_writes(const Stage& s, const std::vector<Point>& all) {
  if (write_neighbours(s, all)) return;
  if (writes_columns(s, all)) return emit_columns(s, all);
  if (emit_byte_rows(s, all)) return;
  for (const Point& p : all) emit_write(s, eval(s.value, p), p);
}

} // namespace svod::codegen
