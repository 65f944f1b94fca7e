// Writes: vectors where lanes are neighbours, lane by lane where they lie apart, and,
// where the positions of the register tile are the neighbours instead, as many vectors at
// once with rows and columns swapped (a 768x768 transpose: 170 us lane by lane, 57 us
// so).
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/write_emitter.h"

#include <algorithm>
#include <bit>

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

// What of a store's conditions hangs on lanes, at a position where all others hold.
std::optional<std::string> WriteEmitter::lanes_condition(const Stage& s, const Point& p) {
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, p, uniform, by_lane);
  if (!uniform.empty()) return std::nullopt;
  return condition(by_lane, p, true);
}

// The positions of the register tile in runs that are neighbours where the lanes lie
// apart: their vectors are the columns of what is written in rows. No runs where they are
// too short, or a condition tells the positions of one from each other.
std::vector<WriteEmitter::Columns>
WriteEmitter::columns_of(const Stage& s, const std::vector<Point>& all) {
  const int64_t fewest = how(s).columns;
  if (fewest == 0) return {};
  std::vector<TileAxis> tile = how_.tile;
  for (TileAxis& t : tile) {
    t.count = 1;
    for (const Point& p : all) t.count = std::max(t.count, offset_of(t.axis, p) + 1);
  }
  const int64_t run = columns_of_tile(k_, s, tile);
  if (run < fewest || run > k_.loops.lanes) return {};
  std::vector<Point> sorted = all;
  std::ranges::stable_sort(sorted, {}, [&](const Point& p) {
    int64_t at = 0, step = 0;
    for (const TileAxis& t : tile)
      if (k_.indices.affine_in(s.index, t.axis, step)) at += step * offset_of(t.axis, p);
    return at;
  });
  std::vector<Columns> out;
  for (auto first = sorted.begin(); first != sorted.end(); first += run) {
    const std::optional<std::string> wanted = lanes_condition(s, *first);
    Columns columns{{first, first + run}, wanted.value_or("")};
    const bool alike = wanted && std::ranges::all_of(columns.points, [&](const Point& p) {
                         return lanes_condition(s, p) == wanted;
                       });
    if (!alike) return {};
    out.push_back(std::move(columns));
  }
  return out;
}

void WriteEmitter::emit_columns(const Stage& s, const Columns& columns) {
  const auto& [points, wanted] = columns;
  std::string list, column;
  for (const Point& p : points) {
    column = to_store(s.dtype, splat(eval(s.value, p), s.dtype));
    list += (list.empty() ? "" : ", ") + column;
  }
  // Rows of the square that nobody takes: any value will do. Zeros, which an initializer
  // without them leaves to the compiler, became a call of memset.
  const size_t square = std::bit_ceil(points.size());
  for (size_t i = points.size(); i < square; ++i) list += ", " + column;
  const std::string vectors = fresh("t");
  line("v" + store_type(s.dtype) + " " + vectors + "[" + std::to_string(square) +
       "] = {" + list + "};");
  line("store_columns<" + std::to_string(points.size()) + ">(" + vectors +
       ", [&](iptr l) { return a" + std::to_string(s.argument) + " + " +
       index_text(s.index, points[0], true) +
       "; }, [&]([[maybe_unused]] iptr l) { return " +
       (wanted.empty() ? "true" : wanted) + "; });");
}

void WriteEmitter::emit_writes(const Stage& s, const std::vector<Point>& all) {
  if (write_neighbours(s, all)) return;
  if (const std::vector<Columns> runs = columns_of(s, all); !runs.empty()) {
    for (const Columns& run : runs) emit_columns(s, run);
    return;
  }
  if (emit_byte_rows(s, all)) return;
  for (const Point& p : all) emit_write(s, eval(s.value, p), p);
}

} // namespace svod::codegen
