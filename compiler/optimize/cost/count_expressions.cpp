// Expressions of a tile: each as often as its value differs there. A load of a nest that
// is written out counts once for all steps and positions that read the same element.
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/shared_elements.h"
#include "compiler/optimize/cost/tile_counter.h"

#include <algorithm>
#include <set>

namespace svod::cost {

double TileCounter::registers(DType dtype) const {
  const double bits = 8.0 * compute_bytes(dtype) * k_.loops.lanes;
  return std::max(1.0, bits / level_.register_bits);
}

TileCounter::Nest TileCounter::nest_of(const Stage& s) const {
  Nest out;
  out.stage = &s;
  const auto number = static_cast<size_t>(&s - k_.stages.data());
  static const StageSchedule kPlain;
  out.how = number < how_.stages.size() ? &how_.stages[number] : &kPlain;
  auto add = [&](const Stage& of) {
    for (AxisId a : k_.inner(of))
      if (k_.is_loop(a)) out.loops.push_back(a);
  };
  if (s.nested) add((&s)[1]);
  add(s);
  const double written = piece_.points() * steps(out);
  const Unroll& unroll = out.how->unroll;
  out.written_out =
      !unroll.off &&
      written <= double(piece_.points() <= 2 ? unroll.small_nest : unroll.nest);
  return out;
}

double TileCounter::steps(const Nest& n) const {
  return positions_of(k_.indices, n.loops);
}

// Values of an expression in one tile: what its loops and positions do not change is
// computed once.
double TileCounter::times(const Nest& n, ExprId id) const {
  double out = 1;
  for (const TileAxis& t : piece_.counts)
    if (depends(id, t.axis)) out *= t.count;
  double below = 1;
  for (AxisId a : n.loops) {
    below *= double(k_.indices.extent(a));
    if (depends(id, a)) out *= below, below = 1;
  }
  return out;
}

// Elements, or vectors of neighbours, of a nest that is written out.
double TileCounter::distinct_loads(const Nest& n, const Expr& e, ExprId id) const {
  const double all = times(n, id);
  if (!n.written_out || k_.indices.has_dynamic(e.index)) return all;
  std::set<int64_t> places = {0};
  auto walk = [&](AxisId a, int64_t count) {
    int64_t step = 0;
    if (!k_.indices.affine_in(e.index, a, step)) return false;
    if (step == 0) return true;
    std::set<int64_t> more;
    for (int64_t p : places)
      for (int64_t i = 0; i < count; ++i) more.insert(p + i * step);
    places = std::move(more);
    return true;
  };
  bool known = true;
  for (const TileAxis& t : piece_.counts) known = known && walk(t.axis, t.count);
  for (AxisId a : n.loops) known = known && walk(a, k_.indices.extent(a));
  return known ? std::min(all, double(places.size())) : all;
}

// What the innermost loop around the tile does not change stays in registers, where it is
// written out and there are registers left.
double TileCounter::hoisted(const Nest& n, ExprId id, double times) {
  if (!piece_.around || depends(id, piece_.around->axis)) return times;
  if (!n.written_out && !n.loops.empty()) return times;
  const double needed = times * parts_of(k_.exprs[id].dtype, vector(id));
  const double tile = piece_.points() * registers(k_.exprs[id].dtype);
  if (hoisted_ + needed > level_.registers - tile) return times;
  hoisted_ += needed;
  return times / piece_.around->trips;
}

// Instructions for conditions that some position may fail, beside those on lanes.
double TileCounter::bounds(const std::vector<Bound>& all, bool& on_lanes) const {
  double out = 0;
  for (const Bound& b : all) {
    const Range r = k_.indices.range(b.index, piece_.ranges);
    if (r.low >= b.low && r.high < b.high) continue;
    if (k_.loops.lane && k_.indices.depends_on(b.index, *k_.loops.lane))
      on_lanes = true;
    else
      out += kBound;
  }
  return out;
}

double quotients_in(const IndexPool& pool, const Index& index) {
  double out = 0;
  for (const auto& [term, coefficient] : index.terms)
    if (pool.term(term).kind == Term::Kind::Div ||
        pool.term(term).kind == Term::Kind::Mod)
      out += kIndexQuotient + quotients_in(pool, pool.term(term).of);
  return out;
}

// As choose_lane's vector_load_cost counts it.
Instructions TileCounter::one_load(const Expr& e) const {
  Instructions out;
  bool on_lanes = false;
  out.plain = kAddress + bounds(e.bounds, on_lanes) + quotients_in(k_.indices, e.index);
  const bool dots = k_.has_dot_axis() && k_.indices.depends_on(e.index, *k_.loops.dot);
  const bool converted = dots ? false : compute_bytes(e.dtype) != byte_size(e.dtype);
  std::vector<ExprId> dynamic;
  k_.indices.collect_dynamic(e.index, dynamic);
  const bool gathers = std::ranges::any_of(dynamic, [&](ExprId d) { return vector(d); });
  int64_t step = 0;
  const bool lanes = k_.loops.lane && (on_lanes || gathers ||
                                       k_.indices.depends_on(e.index, *k_.loops.lane));
  if (!lanes) {
    out.elements = 1;
    out.operations = converted;
    return out;
  }
  const bool affine = k_.indices.affine_in(e.index, *k_.loops.lane, step) && !gathers;
  const double parts = registers(dots ? DType::I32 : e.dtype);
  if (converted) out.operations += parts;
  int64_t together = 0;
  const bool in_fours =
      dots && k_.indices.affine_in(e.index, *k_.loops.dot, together) && together == 1;
  if (affine && dots) {
    out.loads = in_fours ? parts : 4 * parts;
    if (!in_fours) out.operations += 3 * parts;
  } else if (affine && step == 1) {
    out.loads = parts;
    if (on_lanes) out.plain += kPartOfVector * parts;
  } else if (affine && step > 1 && step <= how_.near_lanes) {
    out.loads = double(step) * parts;
    out.operations += double(step - 1) * parts;
    if (on_lanes) out.plain += kPartOfVector * double(step) * parts;
  } else if (!affine && !on_lanes && shuffled_lanes(k_, e)) {
    out.loads = parts;
    out.operations += parts;
  } else if (affine && step == 0) {
    out.elements = 1;
    out.operations += on_lanes ? 2 * parts : 0;
  } else {
    out.elements = k_.loops.lanes;
    out.operations += k_.loops.lanes;
    out.plain += (on_lanes ? kLane : 0.5) * k_.loops.lanes;
  }
  return out;
}

void TileCounter::below(const Nest& n, ExprId id) {
  const Expr& e = k_.exprs[id];
  for (ExprId in : e.inputs) expression(n, in);
  std::vector<ExprId> dynamic;
  k_.indices.collect_dynamic(e.index, dynamic);
  for (const Bound& b : e.bounds) k_.indices.collect_dynamic(b.index, dynamic);
  for (ExprId d : dynamic) expression(n, d);
}

void TileCounter::expression(const Nest& n, ExprId id) {
  if (seen_[id]) return;
  seen_[id] = true;
  const Expr& e = k_.exprs[id];
  const bool of_lanes = vector(id);
  const double parts = parts_of(e.dtype, of_lanes);
  Instructions each;
  double count = times(n, id);
  switch (e.kind) {
  case Expr::Kind::Constant:
  case Expr::Kind::Local:
    return;
  case Expr::Kind::Load:
    each = one_load(e);
    if (n.how->elements > 1 && id == shared_elements(k_, *n.stage)->load)
      each.elements = 0, each.loads = 1.0 / n.how->elements;
    count = distinct_loads(n, e, id);
    break;
  case Expr::Kind::Map: {
    const DType operand = k_.exprs[e.inputs.back()].dtype;
    const double lanes = of_lanes ? k_.loops.lanes : 1;
    const double wide = parts_of(operand, of_lanes);
    each = work_of(e.op) * wide;
    each.quotients = work_of(e.op).quotients * lanes;
    if (!level_.fma()) each.operations += each.products;
    if (std::ranges::count(how_.tables, id) != 0) each = {.elements = lanes};
    if (std::ranges::count(how_.looped, id) != 0) each.loads += wide, each.stores += wide;
    if (std::ranges::count(how_.called, id) != 0) each.plain += 2 * kLane;
    if (!is_float(operand) && each.quotients > 0) each.plain += kLane * lanes;
    break;
  }
  case Expr::Kind::Cast:
    each.operations = std::max(parts, parts_of(k_.exprs[e.inputs[0]].dtype, of_lanes));
    if (e.dtype == DType::I8 || e.dtype == DType::U8) each.operations += kNarrow - 1;
    break;
  case Expr::Kind::Guard: {
    bool on_lanes = false;
    each.plain = bounds(e.bounds, on_lanes);
    if (on_lanes) each.operations = kLane * k_.loops.lanes;
    break;
  }
  case Expr::Kind::Position:
  case Expr::Kind::Bitcast:
    each.operations = parts;
    break;
  case Expr::Kind::Checked:
    each.operations = kBound * parts;
    break;
  case Expr::Kind::Descend:
    // A walk waits for two loads and a comparison in every step.
    each.elements = 3.0 * double(e.limit) * (of_lanes ? k_.loops.lanes : 1);
    each.plain = double(kStepWork * e.limit) * (of_lanes ? k_.loops.lanes : 1);
    each.waited = 3.0 * level_.machine.latency * double(e.limit) *
                  (of_lanes ? k_.loops.lanes : 1) / std::max(1, piece_.points());
    break;
  }
  count = hoisted(n, id, count);
  total_ += each * count;
  below(n, id);
}

} // namespace svod::cost
