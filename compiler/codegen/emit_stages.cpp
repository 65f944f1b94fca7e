// Stages: the loops of each, what it does in a step, and what becomes of the result.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/stage_emitter.h"

#include <algorithm>

namespace svod::codegen {

// The sums that tiles have left in memory.
void StageEmitter::emit_tile_sums(uint32_t number) {
  for (const Point& p : points())
    locals_[{number, p}] = {
        declare(type(DType::I32, true), "load(" + tile_sums_at(p) + ")"), true};
}

void StageEmitter::emit_reduce(uint32_t number) {
  const Stage& s = k_.stages[number];
  if (how(s).tiles) return emit_tile_sums(number);
  const bool lane_inside = reduces_lanes(s) && !how(s).across,
             vector = lane_inside || (on_lanes(s.value) && !how(s).across);
  const std::vector<Point> all = points();
  const std::vector<std::string> names = open_sums(number, vector);
  open_ahead(s);
  fetch_picture(s);
  exchange_halves(s, names);
  emit_inner(s, 0, [&] {
    fetch_ahead();
    if (how(s).halves) open_shared(s);
    if (sums_.blocks) sums_.blocks->summed_at.clear();
    for (uint32_t nested : nested_below(k_, number)) {
      const Sums around = sums_;
      sums_ = {};
      emit_stage(nested);
      sums_ = around;
    }
    // Weights of four lanes at a time stay for all positions of the tile.
    const int quads = how(s).halves ? quads_stored(k_) : 1;
    for (sums_.quad = 0; sums_.quad < quads; ++sums_.quad)
      for (size_t i = 0; i < all.size(); ++i)
        accumulate(s, sums_.ways[sums_.way][i], all[i], vector);
  });
  if (!sums_.blocks) join_ways(combine_of(s.op) + "::of<" + sum_type(s, vector) + ">");
  exchange_halves(s, names);
  const bool shortened = sums_.lanes.has_value();
  sums_ = {};
  const std::vector<std::string> results = lane_inside ? across_lanes(s, names) : names;
  const std::optional<ExprId> sum = how(s).begins_with;
  for (size_t i = 0; i < all.size(); ++i) {
    std::string result = results[i];
    if (how(s).halves || how(s).paired || how(s).grouped)
      result = "whole_sums(" + result + ")";
    if (shortened) result = "lengthened<" + type(s.dtype, true) + ">(" + result + ")";
    result = rounded(s.dtype, result);
    bool still_vector = vector && !lane_inside;
    if (result != names[i]) result = declare(type(s.dtype, still_vector), result);
    if (sum)
      frames_.back()[{*sum, project(*sum, all[i])}] = {result, still_vector};
    else
      locals_[{number, all[i]}] = {result, still_vector};
  }
}

void StageEmitter::emit_arg_reduce(uint32_t number) {
  const Stage& s = k_.stages[number];
  bool vector = on_lanes(s.value);
  bool greater = s.op == Op::ArgMax;
  std::vector<Point> all = points();
  for (const Point& p : all) {
    std::string best = fresh("c"), at = fresh("c");
    line(type(s.dtype, vector) + " " + best + " = " + type(s.dtype, vector) + "(" +
         identity(s.op, s.dtype) + ");");
    line(type(DType::I64, vector) + " " + at + " = " + type(DType::I64, vector) + "(0);");
    emit_inner(s, 0, [&] {
      std::string guard = condition(s.domain, p, false);
      if (!guard.empty()) open("if (" + guard + ")");
      Value value = eval(s.value, p);
      std::string wins = fresh("t");
      line("const " + type(DType::Bool, vector) + " " + wins + " = beats(" + value.name +
           ", " + best + ", " + (greater ? "true" : "false") + ", " +
           (s.flag ? "true" : "false") + ");");
      line(best + " = pick(" + wins + ", " + value.name + ", " + best + ");");
      line(at + " = pick(" + wins + ", " + type(DType::I64, vector) + "(i64(" +
           index_text(s.position, p, false) + ")), " + at + ");");
      if (!guard.empty()) close();
    });
    locals_[{number, p}] = {at, vector};
  }
}

// As emit_arg_reduce, with the lane axis among the reduced ones: every lane has a best
// position of its own, kept without the lane's share, until the end.
void StageEmitter::emit_arg_reduce_lanes(uint32_t number) {
  const Stage& s = k_.stages[number];
  std::string which = std::string(s.op == Op::ArgMax ? "true" : "false") + ", " +
                      (s.flag ? "true" : "false");
  int64_t step = 0;
  k_.indices.affine_in(s.position, *k_.loops.lane, step);
  std::string vtype = type(s.dtype, true), positions = type(DType::I32, true);
  for (const Point& p : points()) {
    std::string best = fresh("c"), at = fresh("c");
    line(vtype + " " + best + " = " + vtype + "(" + identity(s.op, s.dtype) + ");");
    // A lane that meets no element must not be the last of equals.
    line(positions + " " + at + " = " + positions + "(" +
         (s.flag ? "kLowest<i32> / 2" : "0") + ");");
    emit_inner(s, 0, [&] {
      std::vector<Bound> uniform, by_lane;
      split_bounds(s.domain, p, uniform, by_lane);
      std::string guard = condition(uniform, p, false), count, wins = fresh("t");
      if (!guard.empty()) open("if (" + guard + ")");
      std::string value = splat(eval(s.value, p), s.dtype);
      line(type(DType::Bool, true) + " " + wins + " = beats(" + value + ", " + best +
           ", " + which + ");");
      if (!by_lane.empty() && first_lane_count(by_lane, p, count))
        line(wins + " = first_lanes(" + wins + ", " + type(DType::Bool, true) + "(0), " +
             count + ");");
      else if (!by_lane.empty())
        line("for (iptr l = 0; l < kLanes; ++l) if (!(" + condition(by_lane, p, true) +
             ")) " + wins + "[l] = 0;");
      line(best + " = pick(" + wins + ", " + value + ", " + best + ");");
      line(at + " = pick(" + wins + ", " + positions + "(i32(" +
           index_text(s.position, p, false) + ")), " + at + ");");
      if (!guard.empty()) close();
    });
    std::string all = at + " + lane_numbers<i32>() * " + std::to_string(step);
    locals_[{number, p}] = {
        declare(type(DType::I64, false),
                "i64(best_lane(" + best + ", " + all + ", " + which + "))"),
        false};
  }
}

void StageEmitter::emit_scan(uint32_t number) {
  const Stage& s = k_.stages[number];
  bool vector = on_lanes(s.value);
  const std::vector<Point> all = points();
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i) {
    names.push_back(fresh("c"));
    line(type(s.dtype, vector) + " " + names[i] + " = " + type(s.dtype, vector) + "(" +
         identity(s.op, s.dtype) + ");");
  }
  emit_inner(s, 0, [&] {
    for (size_t i = 0; i < all.size(); ++i) {
      Value value = eval(s.value, all[i]);
      line(names[i] + " = " + combine_of(s.op) + "::of<" + type(s.dtype, vector) + ">(" +
           names[i] + ", " + value.name + ");");
      emit_write(s, {names[i], vector}, all[i]);
    }
  });
}

void StageEmitter::emit_store(const Stage& s) {
  emit_inner(s, 0, [&] {
    const std::vector<Point> all = points();
    std::vector<Bound> uniform, by_lane;
    split_bounds(s.domain, all[0], uniform, by_lane);
    // What is not written is not computed either; tiles share values and look later.
    std::string guard = all.size() == 1 ? condition(uniform, all[0], false) : "";
    if (!guard.empty()) open("if (" + guard + ")");
    emit_writes(s, all);
    if (!guard.empty()) close();
  });
}

std::string StageEmitter::combined(const Stage& s, const std::string& at,
                                   const std::string& update) {
  static const char* combines[] = {"", "SumOf", "ProductOf", "MinOf", "MaxOf"};
  const std::string t = type(s.dtype, false);
  return declare(t, std::string(combines[s.combiner]) + "::of<" + t + ">(" +
                        from_store(s.dtype, at) + ", " + update + ")");
}

void StageEmitter::emit_scatter(const Stage& s) {
  emit_inner(s, 0, [&] {
    Point p(counts_.size(), 0);
    Value value = eval(s.value, p);
    if (s.combiner != 0)
      value.name = combined(
          s, "a" + std::to_string(s.argument) + "[" + index_text(s.index, p, false) + "]",
          value.name);
    emit_write(s, value, p);
  });
}

void StageEmitter::emit_stage(uint32_t number) {
  const Stage& s = k_.stages[number];
  switch (s.kind) {
  case StageKind::Reduce:
    if (s.op != Op::ArgMin && s.op != Op::ArgMax) return emit_reduce(number);
    return reduces_lanes(s) ? emit_arg_reduce_lanes(number) : emit_arg_reduce(number);
  case StageKind::Scan:
    return emit_scan(number);
  case StageKind::Sort:
    return emit_sort(number);
  case StageKind::Store:
    return emit_store(s);
  case StageKind::Scatter:
    return emit_scatter(s);
  }
}

} // namespace svod::codegen
