// Stages: accumulators for every position of the register tile, the loops of the stage,
// then what becomes of the result.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/ir/build.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace svod::codegen {

namespace {
// Per reduction: the struct of the prelude that combines, and how the identity is
// written.
struct ReduceRow {
  Op op;
  const char* combine;
};
constexpr ReduceRow kReduceRows[] = {
    {Op::ReduceSum, "SumOf"},    {Op::ScanSum, "SumOf"},   {Op::ReduceProd, "ProductOf"},
    {Op::ScanProd, "ProductOf"}, {Op::ReduceMin, "MinOf"}, {Op::ScanMin, "MinOf"},
    {Op::ReduceMax, "MaxOf"},    {Op::ScanMax, "MaxOf"},   {Op::ArgMin, "MinOf"},
    {Op::ArgMax, "MaxOf"},
};
} // namespace

static std::string combine_of(Op op) {
  for (const ReduceRow& row : kReduceRows)
    if (row.op == op) return row.combine;
  SVOD_CHECK(false) << "no reduction: " << info(op).text;
  return "";
}

static std::string lowest(DType dtype, bool highest) {
  if (is_float(dtype)) {
    std::string inf = dtype == DType::F64 ? "kInf<f64>" : "kInf<f32>";
    return highest ? inf : "-" + inf;
  }
  if (dtype == DType::Bool) return highest ? "u8(1)" : "u8(0)";
  std::string t = compute_type(dtype);
  return (highest ? "kHighest<" : "kLowest<") + t + ">";
}

static std::string identity(Op op, DType dtype) {
  std::string combine = combine_of(op);
  if (combine == "SumOf") return compute_type(dtype) + "(0)";
  if (combine == "ProductOf") return compute_type(dtype) + "(1)";
  return lowest(dtype, combine == "MinOf");
}

// The weights of a dot product; of a window that begins inside the vector of another one,
// which `at` becomes, moved up by as many bytes.
KernelEmitter::Value KernelEmitter::moved_dots(const Stage& s, ExprId x, ExprId w,
                                               Point& at) {
  const Value whole = eval(w, at);
  if (k_.exprs[x].kind != Expr::Kind::Load) return whole;
  for (size_t i = 0; i < at.size(); ++i) {
    const AxisId axis = how_.tile[i].axis;
    const int moved = at[i] % windows_together(k_, s, k_.exprs[x], axis);
    if (moved == 0 || depends(w, axis)) continue;
    at[i] -= moved;
    Point key = project(w, at);
    key[i] = moved;
    Frame& frame = frames_.back();
    if (auto found = frame.find({w, key}); found != frame.end()) return found->second;
    const std::string up = whole.name + " << " + std::to_string(8 * moved);
    return frame[{w, key}] = {declare("vi32", up), true};
  }
  return whole;
}

void KernelEmitter::accumulate(const Stage& s, const std::string& acc, const Point& p,
                               bool vector) {
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, p, uniform, by_lane);
  std::string guard = condition(uniform, p, false), count;
  if (!guard.empty()) open("if (" + guard + ")");
  const Expr& v = k_.exprs[s.value];
  bool fused = !s.keeps && s.op == Op::ReduceSum && v.kind == Expr::Kind::Map &&
               v.op == Op::Mul && is_float(s.dtype) && s.dtype == v.dtype &&
               by_lane.empty() && !is_narrow_float(v.dtype);
  bool dots = k_.has_dot_axis() && std::find(k_.inner(s).begin(), k_.inner(s).end(),
                                             *k_.loops.dot) != k_.inner(s).end();
  if (dots) {
    ExprId plain = below_casts(k_, v.inputs[0]), with_sign = below_casts(k_, v.inputs[1]);
    if (k_.exprs[plain].dtype == DType::I8) std::swap(plain, with_sign);
    Point at = p;
    const Value w = moved_dots(s, plain, with_sign, at);
    line(acc + " = dot_(" + acc + ", " + summand(splat(eval(plain, at), DType::I32)) +
         ", " + summand(splat(w, DType::I32)) + ");");
  } else if (blocks_ && !blocks_->how.held.empty()) {
    std::vector<ExprId> beside = blocks_->how.summed;
    const ExprId last = beside.back();
    beside.pop_back();
    const std::string x = product(beside, p, vector), y = product({last}, p, vector);
    if (blocks_->how.offset && blocks_->summed_at.insert(sum_beside(p)).second)
      line(sum_beside(p) + " = " + sum_beside(p) + " + " + x + ";");
    line(acc + " = " +
         (x.empty() ? acc + " + " + y : "ma_(" + x + ", " + y + ", " + acc + ")") + ";");
  } else if (fused) {
    Value a = eval(v.inputs[0], p), b = eval(v.inputs[1], p);
    std::string x = vector ? splat(a, v.dtype) : a.name,
                y = vector ? splat(b, v.dtype) : b.name;
    line(acc + " = ma_(" + summand(x) + ", " + summand(y) + ", " + acc + ");");
  } else {
    Value value = eval(s.value, p);
    if (s.keeps) emit_write(s, value, p);
    std::string x = vector ? splat(value, s.dtype) : value.name;
    std::string none = type(s.dtype, true) + "(" + identity(s.op, s.dtype) + ")";
    if (!by_lane.empty() && first_lane_count(by_lane, p, count)) {
      x = "first_lanes(" + x + ", " + none + ", " + count + ")";
    } else if (!by_lane.empty()) {
      std::string kept = fresh("t");
      line(type(s.dtype, true) + " " + kept + " = " + x + ";");
      line("for (iptr l = 0; l < kLanes; ++l) if (!(" + condition(by_lane, p, true) +
           ")) " + kept + "[l] = " + identity(s.op, s.dtype) + ";");
      x = kept;
    }
    line(acc + " = " + combine_of(s.op) + "::of<" + sum_type(s.dtype, vector) + ">(" +
         acc + ", " + summand(x) + ");");
  }
  if (!guard.empty()) close();
}

// How many steps of the innermost loop have sums of their own.
size_t KernelEmitter::count_ways(const Stage& s) const {
  const auto tile = static_cast<int64_t>(points().size());
  const int64_t ways = how(s).sums / tile;
  int64_t innermost = 1;
  for (AxisId a : k_.inner(s))
    if (k_.is_loop(a)) innermost = k_.indices.extent(a);
  return innermost < how(s).rounds * ways ? 1 : std::max<size_t>(1, size_t(ways));
}

// The accumulators of all ways become the first's.
void KernelEmitter::join_ways(const std::string& combine) {
  for (size_t way = 1; way < ways_.size(); ++way)
    for (size_t i = 0; i < ways_[0].size(); ++i)
      line(ways_[0][i] + " = " + combine + "(" + ways_[0][i] + ", " + ways_[way][i] +
           ");");
}

// What is added to the result of a stage.
ExprId KernelEmitter::start_of(ExprId sum, uint32_t number) const {
  const std::vector<ExprId>& terms = k_.exprs[sum].inputs;
  const Expr& first = k_.exprs[terms[0]];
  return terms[first.kind == Expr::Kind::Local && first.stage == number ? 1 : 0];
}

void KernelEmitter::emit_reduce(uint32_t number) {
  const Stage& s = k_.stages[number];
  bool lane_inside = k_.has_lane_axis() &&
                     std::find(k_.inner(s).begin(), k_.inner(s).end(), *k_.loops.lane) !=
                         k_.inner(s).end();
  bool vector = lane_inside || on_lanes(s.value);
  std::vector<Point> all = points();
  blocks_.reset();
  if (how(s).blocks) blocks_.emplace().how = *how(s).blocks;
  const bool blocks = blocks_.has_value();
  const int summed = lanes_summed(number);
  if (summed < k_.loops.lanes) short_sums_ = summed;
  const std::string sums = sum_type(s.dtype, vector),
                    none = sums + "(" + identity(s.op, s.dtype) + ")";
  const std::optional<ExprId> sum = how(s).begins_with;
  auto names_of = [&](bool declared, bool started = false) {
    std::vector<std::string> names;
    for (const Point& p : all) {
      const std::string from =
          started ? summand(splat(eval(start_of(*sum, number), p), s.dtype)) : none;
      names.push_back(fresh("c"));
      if (declared) line(sums + " " + names.back() + " = " + from + ";");
    }
    return names;
  };
  const std::vector<std::string> names = names_of(true, sum.has_value());
  const size_t ways = count_ways(s);
  ways_ = {blocks ? names_of(false) : names};
  while (ways_.size() < ways) ways_.push_back(names_of(!blocks));
  if (blocks) blocks_->type = sums, blocks_->totals = names;
  ahead_ = find_ahead(s);
  if (ahead_) open_ahead();
  fetch_picture(s);
  emit_inner(s, 0, [&] {
    if (ahead_) fetch_ahead();
    if (blocks_) blocks_->summed_at.clear();
    if (number > 0 && k_.stages[number - 1].nested) {
      const auto around = std::tuple(blocks_, ways_, way_, ahead_, short_sums_);
      short_sums_.reset();
      emit_stage(number - 1);
      std::tie(blocks_, ways_, way_, ahead_, short_sums_) = around;
    }
    for (size_t i = 0; i < all.size(); ++i) accumulate(s, ways_[way_][i], all[i], vector);
  });
  if (!blocks) join_ways(combine_of(s.op) + "::of<" + sums + ">");
  blocks_.reset();
  short_sums_.reset();
  ways_.clear();
  ahead_.reset();
  auto lanes = static_cast<size_t>(k_.loops.lanes);
  size_t together = lane_inside && lanes >= 4 ? all.size() / lanes * lanes : 0;
  std::vector<std::string> results = names;
  for (size_t i = 0; i < together; i += lanes) {
    std::string group = fresh("t"), list;
    for (size_t j = 0; j < lanes; ++j) {
      list += (j != 0 ? ", " : "") + names[i + j];
      results[i + j] = group + "[0][" + std::to_string(j) + "]";
    }
    line(type(s.dtype, true) + " " + group + "[kLanes] = {" + list + "};");
    line("across_each<" + combine_of(s.op) + ", kLanes>(" + group + ");");
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::string result = results[i];
    if (lane_inside && i >= together)
      result = "across<" + combine_of(s.op) + ">(" + result + ")";
    if (summed < k_.loops.lanes)
      result = "lengthened<" + type(s.dtype, true) + ">(" + result + ")";
    result = rounded(s.dtype, result);
    bool still_vector = vector && !lane_inside;
    if (result != names[i]) result = declare(type(s.dtype, still_vector), result);
    if (sum)
      frames_.back()[{*sum, project(*sum, all[i])}] = {result, still_vector};
    else
      locals_[{number, all[i]}] = {result, still_vector};
  }
}

void KernelEmitter::emit_arg_reduce(uint32_t number) {
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
void KernelEmitter::emit_arg_reduce_lanes(uint32_t number) {
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

void KernelEmitter::emit_scan(uint32_t number) {
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

void KernelEmitter::emit_stage(uint32_t number) {
  const Stage& s = k_.stages[number];
  switch (s.kind) {
  case StageKind::Reduce:
    if (s.op == Op::ArgMin || s.op == Op::ArgMax)
      return k_.has_lane_axis() &&
                     std::ranges::find(k_.inner(s), *k_.loops.lane) != k_.inner(s).end()
                 ? emit_arg_reduce_lanes(number)
                 : emit_arg_reduce(number);
    return emit_reduce(number);
  case StageKind::Scan:
    return emit_scan(number);
  case StageKind::Sort:
    return emit_sort(number);
  case StageKind::Store:
    emit_inner(s, 0, [&] {
      std::vector<Point> all = points();
      std::vector<Bound> uniform, by_lane;
      split_bounds(s.domain, all[0], uniform, by_lane);
      // What is not written is not computed either; tiles share values and look later.
      std::string guard = all.size() == 1 ? condition(uniform, all[0], false) : "";
      if (!guard.empty()) open("if (" + guard + ")");
      if (writes_columns(s, all))
        emit_columns(s, all);
      else if (!emit_byte_rows(s, all))
        for (const Point& p : all) emit_write(s, eval(s.value, p), p);
      if (!guard.empty()) close();
    });
    return;
  case StageKind::Scatter:
    break;
  }
  emit_inner(s, 0, [&] {
    Point p(counts_.size(), 0);
    Value value = eval(s.value, p);
    static const char* combines[] = {"", "SumOf", "ProductOf", "MinOf", "MaxOf"};
    if (s.combiner != 0) {
      std::string t = type(s.dtype, false);
      std::string at =
          "a" + std::to_string(s.argument) + "[" + index_text(s.index, p, false) + "]";
      value.name = declare(t, std::string(combines[s.combiner]) + "::of<" + t + ">(" +
                                  from_store(s.dtype, at) + ", " + value.name + ")");
    }
    emit_write(s, value, p);
  });
}

} // namespace svod::codegen
