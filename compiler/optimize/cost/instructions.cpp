// A kernel's loops as code generation writes them: whole tiles, remainders and ends apart
// are counted each, and in a tile every expression as often as its value differs there. A
// load of a nest that is written out counts once for all steps and positions that read
// the same element.
#include "compiler/optimize/cost/instructions.h"

#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/optimize/cost/pieces.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace svod::cost {

Instructions& Instructions::operator+=(const Instructions& o) {
  products += o.products, operations += o.operations, quotients += o.quotients;
  loads += o.loads, elements += o.elements, stored += o.stored, stores += o.stores;
  plain += o.plain, waited += o.waited, nests += o.nests, spills += o.spills;
  return *this;
}

Instructions operator*(Instructions a, double n) {
  a.products *= n, a.operations *= n, a.quotients *= n;
  a.loads *= n, a.elements *= n, a.stored *= n, a.stores *= n;
  a.plain *= n, a.waited *= n, a.nests *= n, a.spills *= n;
  return a;
}

Instructions work_of(Op op) {
  switch (op) {
#define WORK(name, p, o, q)                                                              \
  case Op::name:                                                                         \
    return {.products = p, .operations = o, .quotients = q};
#include "compiler/optimize/cost/op_work.def"
  default:
    return {.operations = 1};
  }
}

namespace {

// Instructions of the emitted form: a bound that a branch or a choice looks at; a lane
// that is taken or put one by one; a vector of which some lanes are read.
constexpr double kBound = 2, kLane = 2, kPartOfVector = 1.5;
// Of an index: a quotient or a remainder by a constant; an address.
constexpr double kIndexQuotient = 4, kAddress = 0.25;
// Of a loop's step, and of a running best's.
constexpr double kLoop = 2, kBest = 5;
// Vectors of sums whose lanes are summed: shuffles and sums, and of several at once.
constexpr double kAcross = 9, kAcrossTogether = 4;
// A row of a square that is turned in registers, and a vector narrowed to bytes.
constexpr double kSwap = 6, kNarrow = 5, kNarrowTogether = 1.5;
// Clocks, in those of a multiply-add, that a greatest or least waits for the last one,
// and a sum.
constexpr double kCompareWaits = 1.5, kSumWaits = 0.75;

int compute_bytes(DType dtype) {
  return byte_size(is_narrow_float(dtype) ? DType::F32 : dtype);
}

class TileCounter {
public:
  TileCounter(const ScheduledKernel& k, const LevelSchedule& how, const Level& level,
              const Dependence& dependence, const Piece& piece)
      : k_(k), how_(how), level_(level), dependence_(dependence), piece_(piece),
        seen_(k.exprs.size()) {}
  Instructions count();

private:
  struct Nest { // the loops of the stage that is counted
    const Stage* stage = nullptr;
    const StageSchedule* how = nullptr;
    std::vector<AxisId> loops; // outermost first, without lanes and dots
    bool written_out = false;
  };

  Nest nest_of(const Stage& s) const;
  double steps(const Nest& n) const;
  double registers(DType dtype) const;
  double parts_of(DType dtype, bool vector) const {
    return vector ? registers(dtype) : 1.0;
  }
  bool depends(ExprId id, AxisId a) const { return dependence_[id][a]; }
  bool vector(ExprId id) const { return k_.loops.lane && depends(id, *k_.loops.lane); }
  double times(const Nest& n, ExprId id) const;
  double distinct_loads(const Nest& n, const Expr& e, ExprId id) const;
  double hoisted(const Nest& n, ExprId id, double times);
  double bounds(const std::vector<Bound>& bounds, bool& on_lanes) const;
  Instructions one_load(const Expr& e) const;
  void expression(const Nest& n, ExprId id);
  void below(const Nest& n, ExprId id);
  void reduce(uint32_t number);
  void store(uint32_t number);
  void other(uint32_t number);
  void loops(const Nest& n);
  Instructions written(const Stage& s, ExprId value) const;
  double spilled(const Nest& n, double sums) const;
  double shared_by_stores() const;
  void spill(double registers, double times);

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  const Level& level_;
  const Dependence& dependence_;
  const Piece& piece_;
  std::vector<bool> seen_;
  double hoisted_ = 0; // registers that loops around the tile fill once
  Instructions total_;
};

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
  out.written_out = !unroll.off && written <= double(piece_.points() <= 2
                                                         ? unroll.small_nest
                                                         : unroll.nest);
  return out;
}

double TileCounter::steps(const Nest& n) const { return positions_of(k_.indices, n.loops); }

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

static double quotients_in(const IndexPool& pool, const Index& index) {
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
  const bool lanes =
      k_.loops.lane && (on_lanes || gathers || k_.indices.depends_on(e.index, *k_.loops.lane));
  if (!lanes) {
    out.elements = 1;
    out.operations = converted;
    return out;
  }
  const bool affine = k_.indices.affine_in(e.index, *k_.loops.lane, step) && !gathers;
  const double parts = registers(dots ? DType::I32 : e.dtype);
  if (converted) out.operations += parts;
  int64_t together = 0;
  const bool in_fours = dots && k_.indices.affine_in(e.index, *k_.loops.dot, together) &&
                        together == 1;
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
    count = distinct_loads(n, e, id);
    break;
  case Expr::Kind::Map: {
    const DType operand = k_.exprs[e.inputs.back()].dtype;
    const double lanes = of_lanes ? k_.loops.lanes : 1;
    const double wide = parts_of(operand, of_lanes);
    each = work_of(e.op) * wide;
    each.quotients = work_of(e.op).quotients * lanes;
    if (!level_.fma) each.operations += each.products;
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
  double kept = level_.fma ? 1 : 2;
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

// Of values that several stages write, or make what they write of: those of the whole tile
// wait from the first of them to the last.
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
    if (!level_.fma || !is_float(s.dtype)) each.operations = parts;
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
  const bool fused = is_product && level_.fma && is_float(s.dtype);
  const double waits = fused ? 1 : s.op == Op::ReduceSum ? kSumWaits : kCompareWaits;
  total_.waited += level_.machine.latency * waits * all / ways;
  if (lanes_inside && !n.how->across)
    total_.operations += points * parts *
                         (points >= k_.loops.lanes ? kAcrossTogether : kAcross);
  loops(n);
}

// A value on its way to memory, once.
Instructions TileCounter::written(const Stage& s, ExprId value) const {
  Instructions out;
  const bool of_lanes = k_.loops.lane && (vector(value) || k_.indices.depends_on(
                                                               s.index, *k_.loops.lane));
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
  const auto number = static_cast<size_t>(&s - k_.stages.data());
  const bool turns = affine && number < how_.stages.size() &&
                     how_.stages[number].columns > 0 &&
                     neighbours_in(k_, s, *k_.loops.lane, k_.loops.lanes).points() >=
                         how_.stages[number].columns &&
                     piece_.points() >= how_.stages[number].columns;
  if (turns) {
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
    total_ += Instructions{.operations = 1, .elements = 1,
                           .stored = double(byte_size(s.dtype)), .stores = 1,
                           .plain = kLoop} *
              all;
  } else { // a sort: comparisons of words that lie in order more and more
    const double compared = all * std::log2(std::max(2.0, steps(n)));
    total_ += Instructions{.operations = 2, .elements = 2, .stored = 8, .stores = 1,
                           .plain = kBest} *
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
  total_ += Instructions{.loads = 1, .stored = level_.register_bits / 8.0, .stores = 1} *
            apart;
  // A sum that waits for itself lets the instructions of the next tile pass, as far as the
  // core looks ahead.
  const double ahead = level_.machine.window / std::max(1.0, total_.issued());
  total_.waited /= std::max(1.0, ahead);
  total_.plain += kLoop;
  return total_;
}

} // namespace

Instructions instructions_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                             const Level& level) {
  const Dependence dependence = dependence_of(kernel);
  Instructions out;
  for (const Piece& piece : pieces_of(kernel, how))
    out += TileCounter(kernel, how, level, dependence, piece).count() * piece.times;
  return out;
}

} // namespace svod::cost
