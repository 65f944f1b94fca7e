// Stages of a tile: what each step of a sum does and waits for, what is written, and what
// registers have no room for.
#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/optimize/cost/tile_counter.h"

#include <algorithm>
#include <cmath>

namespace svod::cost {

// Each loop but the innermost one is left and entered again; that one is written out a
// few steps at a time.
void TileCounter::loops(const Nest& n) {
  if (n.loops.empty() || n.written_out) return;
  double entered = 1;
  for (size_t i = 0; i < n.loops.size(); ++i) {
    const auto extent = double(k_.indices.extent(n.loops[i]));
    const bool last = i + 1 == n.loops.size();
    const Unroll& u = n.how->unroll;
    const double by = last && !u.off && extent >= u.by ? u.by : 1;
    total_.plain += kLoop * entered * extent / by;
    if (last) total_.nests += entered;
    entered *= extent;
  }
}

// Registers beyond those of the level are stored and loaded again in every step.
double TileCounter::spilled(const Nest& n, double sums) const {
  const Expr& v = k_.exprs[n.stage->value];
  double kept = level_.fma() ? 1 : 2;
  // Positions of the last axis follow each other: a factor that an earlier one does not
  // change comes again, and waits for that.
  auto waiting = [&](ExprId id) {
    double out = 0;
    for (const TileAxis& t : how_.tile) {
      const int count = tile_count(piece_.counts, t.axis);
      if (count == 1) continue;
      if (!depends(id, t.axis) && out == 0) out = parts_of(v.dtype, vector(id));
      if (depends(id, t.axis)) out *= count;
    }
    return out;
  };
  if (v.kind == Expr::Kind::Map && v.op == Op::Mul)
    kept += waiting(v.inputs[0]) + waiting(v.inputs[1]);
  return std::max(0.0, sums + kept - level_.registers);
}

// Of values that several stages write, or make what they write of: those of the whole
// tile wait from the first of them to the last.
double TileCounter::shared_by_stores() const {
  std::vector<int> readers(k_.exprs.size());
  for (const Stage& s : k_.stages) {
    if (s.kind != StageKind::Store || !k_.inner(s).empty()) continue;
    std::vector<ExprId> open = {s.value};
    std::vector<bool> met(k_.exprs.size());
    while (!open.empty()) {
      const ExprId id = open.back();
      open.pop_back();
      if (met[id]) continue;
      met[id] = true;
      ++readers[id];
      open.insert(open.end(), k_.exprs[id].inputs.begin(), k_.exprs[id].inputs.end());
    }
  }
  double out = 0;
  for (ExprId id = 0; id < k_.exprs.size(); ++id) {
    const Expr& e = k_.exprs[id];
    if (readers[id] < 2 || e.kind == Expr::Kind::Constant) continue;
    double each = parts_of(e.dtype, vector(id));
    for (const TileAxis& t : piece_.counts)
      if (depends(id, t.axis)) each *= t.count;
    out += each;
  }
  return out;
}

// What the first of them cost, others partly do beside them.
void TileCounter::spill(double registers, double times) {
  total_.spills += std::sqrt(registers) * times;
}

// Registers of products, of four bytes for each lane.
static Instructions dot_work(const Level& level) {
  switch (level.dots) {
  case ByteProducts::Pairs:
    return {.products = 2, .operations = 1};
  case ByteProducts::Halves:
    return {.products = 1, .operations = 1};
  case ByteProducts::Matrices:
    return {.products = 0.5, .operations = 0.5};
  case ByteProducts::Words:
    return {.products = 2, .operations = 2};
  case ByteProducts::Widened:
  case ByteProducts::Single:
  case ByteProducts::SingleWords:
  case ByteProducts::Paired:
    return {.products = 4, .operations = 4};
  default:
    return {.products = 1};
  }
}

void TileCounter::reduce(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Nest n = nest_of(s);
  const Expr& v = k_.exprs[s.value];
  const bool lanes_inside = k_.loops.lane && contains(k_.inner(s), *k_.loops.lane);
  const bool of_lanes = lanes_inside || vector(s.value);
  const double points = piece_.points(), all = steps(n);
  const double parts = parts_of(s.dtype, of_lanes);
  const bool dots = k_.has_dot_axis() && contains(k_.inner(s), *k_.loops.dot);
  const bool is_product = s.op == Op::ReduceSum && v.kind == Expr::Kind::Map &&
                          v.op == Op::Mul && !s.keeps && s.dtype == v.dtype;
  Instructions each;
  if (dots) {
    each = dot_work(level_) * parts;
    for (ExprId in : v.inputs) expression(n, below_casts(k_, in));
  } else if (is_product) {
    each.products = parts;
    if (!level_.fma() || !is_float(s.dtype)) each.operations = parts;
    below(n, s.value);
  } else {
    expression(n, s.value);
    const bool compares = s.op == Op::ReduceMax || s.op == Op::ReduceMin;
    each.operations = parts * (compares ? 3 : 1);
    // The position goes along, as 64 bits.
    if (is_arg_reduce(s))
      each.operations = kBest * parts + 3 * parts_of(DType::I64, of_lanes);
  }
  bool on_lanes = false;
  each.plain += bounds(s.domain, on_lanes);
  if (on_lanes) each.plain += kPartOfVector * parts;
  total_ += each * (points * all);
  if (s.keeps) total_ += written(s, s.value) * (points * all);
  double innermost = n.loops.empty() ? 1 : double(k_.indices.extent(n.loops.back()));
  double ways = std::max(1.0, std::floor(double(n.how->sums) / points));
  if (innermost < double(n.how->rounds) * ways || is_arg_reduce(s)) ways = 1;
  if (of_lanes) spill(spilled(n, points * parts * ways), all);
  const bool fused = is_product && level_.fma() && is_float(s.dtype);
  const double waits = fused ? 1 : s.op == Op::ReduceSum ? kSumWaits : kCompareWaits;
  total_.waited += level_.machine.latency * waits * all / ways;
  if (lanes_inside && !n.how->across)
    total_.operations +=
        points * parts * (points >= k_.loops.lanes ? kAcrossTogether : kAcross);
  loops(n);
}

// Whether the tile has neighbours where the lanes lie apart, as many as make a square.
// (Four heads of a tile are no neighbours: keys that were turned lane by lane for them
// took 34 us, as squares 2.7.)
bool TileCounter::turns(const Stage& s) const {
  const auto number = static_cast<size_t>(&s - k_.stages.data());
  const int fewest = number < how_.stages.size() ? how_.stages[number].columns : 0;
  const int64_t columns = columns_of_tile(k_, s, piece_.counts);
  return fewest != 0 && columns >= fewest && columns <= k_.loops.lanes;
}

// A value on its way to memory, once.
Instructions TileCounter::written(const Stage& s, ExprId value) const {
  Instructions out;
  const bool of_lanes =
      k_.loops.lane && (vector(value) || k_.indices.depends_on(s.index, *k_.loops.lane));
  bool on_lanes = false;
  out.plain = kAddress + bounds(s.domain, on_lanes) + quotients_in(k_.indices, s.index);
  const double bytes = byte_size(s.dtype);
  if (!of_lanes) {
    out.stores = 1, out.stored = bytes;
    return out;
  }
  int64_t step = 0;
  const bool affine = k_.indices.affine_in(s.index, *k_.loops.lane, step);
  const double parts = std::max(1.0, 8 * bytes * k_.loops.lanes / level_.register_bits);
  if (affine && step == 1) {
    out.stores = parts, out.stored = bytes * k_.loops.lanes;
    if (on_lanes) out.plain += kPartOfVector * parts;
    return out;
  }
  if (affine && turns(s)) {
    out.operations = kSwap * parts, out.stores = parts;
    out.stored = bytes * k_.loops.lanes;
    return out;
  }
  out.stores = k_.loops.lanes, out.stored = bytes * k_.loops.lanes;
  out.operations = k_.loops.lanes;
  if (on_lanes) out.plain += kLane * k_.loops.lanes;
  return out;
}

void TileCounter::store(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Nest n = nest_of(s);
  expression(n, s.value);
  total_ += written(s, s.value) * (piece_.points() * steps(n));
  loops(n);
}

void TileCounter::other(uint32_t number) {
  const Stage& s = k_.stages[number];
  const Nest n = nest_of(s);
  const double all = piece_.points() * steps(n);
  expression(n, s.value);
  if (s.kind == StageKind::Scan) {
    total_.operations += all * parts_of(s.dtype, vector(s.value));
    total_.waited += level_.machine.latency * steps(n);
    total_ += written(s, s.value) * all;
  } else if (s.kind == StageKind::Scatter) {
    std::vector<ExprId> dynamic;
    k_.indices.collect_dynamic(s.index, dynamic);
    for (ExprId d : dynamic) expression(n, d);
    total_ += Instructions{.operations = 1,
                           .elements = 1,
                           .stored = double(byte_size(s.dtype)),
                           .stores = 1,
                           .plain = kLoop} *
              all;
  } else { // a sort: comparisons of words that lie in order more and more
    const double compared = all * std::log2(std::max(2.0, steps(n)));
    total_ +=
        Instructions{
            .operations = 2, .elements = 2, .stored = 8, .stores = 1, .plain = kBest} *
        compared;
  }
  loops(n);
}

Instructions TileCounter::count() {
  for (uint32_t number = 0; number < k_.stages.size(); ++number) {
    const Stage& s = k_.stages[number];
    // Stages that are written out side by side share what they compute.
    if (s.kind != StageKind::Store || !k_.inner(s).empty())
      seen_.assign(seen_.size(), false);
    if (s.kind == StageKind::Reduce)
      reduce(number);
    else if (s.kind == StageKind::Store)
      store(number);
    else
      other(number);
  }
  const double apart = std::max(0.0, shared_by_stores() - level_.registers);
  total_ +=
      Instructions{.loads = 1, .stored = level_.register_bits / 8.0, .stores = 1} * apart;
  // A sum that waits for itself lets the instructions of the next tile pass, as far as
  // the core looks ahead.
  const double ahead = level_.machine.window / std::max(1.0, total_.issued());
  total_.waited /= std::max(1.0, ahead);
  total_.plain += kLoop;
  return total_;
}

} // namespace svod::cost
