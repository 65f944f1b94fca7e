// Reductions that add up, or combine likewise: accumulators for every position of the
// register tile, their blocks and ways, and how they come together.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/sum_emitter.h"
#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <utility>

namespace svod::codegen {

// Positions of the tile at which the factors beside y are the same share one sum(x).
std::string& SumEmitter::sum_beside(Point p) {
  for (size_t i = 0; i < p.size(); ++i) {
    bool varies = false;
    for (size_t f = 0; f + 1 < sums_.blocks->how.summed.size(); ++f)
      varies |= dependence_[sums_.blocks->how.summed[f]][axes_[i]];
    if (!varies) p[i] = 0;
  }
  return sums_.blocks->beside[p];
}

void SumEmitter::open_block() {
  std::vector<std::string> names;
  for (const auto& way : sums_.ways) names.insert(names.end(), way.begin(), way.end());
  if (sums_.blocks->how.offset) {
    for (const Point& p : points()) sum_beside(p) = "";
    for (auto& [p, name] : sums_.blocks->beside) names.push_back(name = fresh("c"));
  }
  for (const std::string& name : names)
    line(sums_.blocks->type + " " + name + " = " + sums_.blocks->type + "(0);");
}

void SumEmitter::close_block() {
  const std::vector<Point> all = points();
  join_ways("SumOf::of<" + sums_.blocks->type + ">");
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string &total = sums_.blocks->totals[i], &part = sums_.ways[0][i];
    if (sums_.blocks->how.offset)
      line(part + " = ma_(-" + product({*sums_.blocks->how.offset}, all[i], true) + ", " +
           sum_beside(all[i]) + ", " + part + ");");
    if (sums_.blocks->how.held.empty())
      line(total + " = " + total + " + " + part + ";");
    else
      line(total + " = ma_(" + product(sums_.blocks->how.held, all[i], true) + ", " +
           part + ", " + total + ");");
  }
}

// The weights of a dot product; of a window that begins inside the vector of another one,
// which `at` becomes, moved up by as many bytes.
ExpressionEmitter::Value SumEmitter::moved_dots(const Stage& s, ExprId x, ExprId w,
                                                Point& at) {
  const Value whole = eval(w, at);
  if (k_.exprs[x].kind != Expr::Kind::Load) return whole;
  for (size_t i = 0; i < at.size(); ++i) {
    const AxisId axis = axes_[i];
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

std::pair<ExprId, ExprId> SumEmitter::dot_factors(const Stage& s) const {
  const Expr& v = k_.exprs[s.value];
  ExprId plain = below_casts(k_, v.inputs[0]), with_sign = below_casts(k_, v.inputs[1]);
  const ByteOperands operands = byte_operands(k_, s);
  const bool swapped = operands.both_signed ? &k_.exprs[plain] == operands.w
                                            : k_.exprs[plain].dtype == DType::I8;
  if (swapped) std::swap(plain, with_sign);
  return {plain, with_sign};
}

// Four bytes of each lane and as many more into one 32-bit sum.
void SumEmitter::accumulate_dots(const Stage& s, const std::string& acc, const Point& p) {
  const auto [plain, with_sign] = dot_factors(s);
  const ByteOperands operands = byte_operands(k_, s);
  if (how(s).grouped) return accumulate_groups(acc, p, eval(with_sign, p).name);
  Point at = p;
  const Value w = moved_dots(s, plain, with_sign, at);
  const Value x = eval(plain, at);
  line(acc + " = " + (operands.both_signed ? "dot_signed_(" : "dot_(") + acc + ", " +
       summand(splat(x, DType::I32)) + ", " + summand(splat(w, DType::I32)) + ");");
}

// The number that all lanes share times two lanes at once.
void SumEmitter::accumulate_pairs(const Stage& s, const std::string& acc,
                                  const Point& p) {
  const Expr& v = k_.exprs[s.value];
  Value x = eval(below_casts(k_, v.inputs[0]), p),
        w = eval(below_casts(k_, v.inputs[1]), p);
  if (x.vector) std::swap(x, w);
  line(acc + " = " + acc + " + paired_bytes(" + w.name + ") * i64(" + x.name + ");");
}

// Bytes that differ by lane, or that all lanes share. The sum is written out, as that of
// accumulate_value is.
void SumEmitter::accumulate_widened(const Stage& s, const std::string& acc,
                                    const Point& p) {
  std::string product;
  for (ExprId factor : k_.exprs[s.value].inputs) {
    const Value byte = eval(below_casts(k_, factor), p);
    product += (product.empty() ? "" : " * ") + std::string("widened<") +
               sum_type(s, true) + ">(" + (byte.vector ? summand(byte.name) : byte.name) +
               ")";
  }
  line(acc + " = " + acc + " + " + product + ";");
}

// The number that all lanes share times weights, which are read as words.
void SumEmitter::accumulate_words(const Stage& s, const std::string& acc,
                                  const Point& p) {
  const Expr& v = k_.exprs[s.value];
  const Expr& w = *byte_operands(k_, s).w;
  const bool swapped = &k_.exprs[below_casts(k_, v.inputs[0])] == &w;
  const Value x = eval(v.inputs[swapped ? 1 : 0], p);
  line(acc + " = add_words(" + acc + ", " + x.name + ", a" + std::to_string(w.argument) +
       " + " + index_text(w.index, p, false) + ");");
}

// All lanes of both factors, which are bytes, into one 32-bit sum.
void SumEmitter::accumulate_across(const Stage& s, const std::string& acc,
                                   const Point& p) {
  const Expr& v = k_.exprs[s.value];
  const Value a = eval(below_casts(k_, v.inputs[0]), p),
              b = eval(below_casts(k_, v.inputs[1]), p);
  line(acc + " = dot_across(" + acc + ", " + a.name + ", " + b.name + ");");
}

// A term of a sum whose common factors are applied once for a block.
void SumEmitter::accumulate_held(const std::string& acc, const Point& p, bool vector) {
  std::vector<ExprId> beside = sums_.blocks->how.summed;
  const ExprId last = beside.back();
  beside.pop_back();
  const std::string x = product(beside, p, vector), y = product({last}, p, vector);
  if (sums_.blocks->how.offset && sums_.blocks->summed_at.insert(sum_beside(p)).second)
    line(sum_beside(p) + " = " + sum_beside(p) + " + " + x + ";");
  line(acc + " = " +
       (x.empty() ? acc + " + " + y : "ma_(" + x + ", " + y + ", " + acc + ")") + ";");
}

void SumEmitter::accumulate_product(const Expr& v, const std::string& acc, const Point& p,
                                    bool vector) {
  const Value a = eval(v.inputs[0], p), b = eval(v.inputs[1], p);
  const std::string x = vector ? splat(a, v.dtype) : a.name,
                    y = vector ? splat(b, v.dtype) : b.name;
  line(acc + " = ma_(" + summand(x) + ", " + summand(y) + ", " + acc + ");");
}

// Any value, with the identity in lanes where `by_lane` does not hold.
void SumEmitter::accumulate_value(const Stage& s, const std::string& acc, const Point& p,
                                  bool vector, const std::vector<Bound>& by_lane) {
  std::string count;
  Value value = eval(s.value, p);
  if (s.keeps) emit_write(s, value, p);
  std::string x = vector ? splat(value, s.dtype) : value.name;
  // Written out, since functions take vectors in pairs of lanes where registers are of 64
  // bits and none is a vector.
  if (s.op == Op::ReduceSum && !is_float(s.dtype) && by_lane.empty()) {
    line(acc + " = " + acc + " + " + summand(x) + ";");
    return;
  }
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
  line(acc + " = " + combine_of(s.op) + "::of<" + sum_type(s, vector) + ">(" + acc +
       ", " + summand(x) + ");");
}

void SumEmitter::accumulate(const Stage& s, const std::string& acc, const Point& p,
                            bool vector) {
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, p, uniform, by_lane);
  std::string guard = condition(uniform, p, false);
  if (!guard.empty()) open("if (" + guard + ")");
  const Expr& v = k_.exprs[s.value];
  const bool is_product = !s.keeps && s.op == Op::ReduceSum &&
                          v.kind == Expr::Kind::Map && v.op == Op::Mul &&
                          is_float(s.dtype) && s.dtype == v.dtype && by_lane.empty() &&
                          !is_narrow_float(v.dtype);
  if (how(s).across)
    accumulate_across(s, acc, p);
  else if (how(s).paired)
    accumulate_pairs(s, acc, p);
  else if (how(s).widened)
    accumulate_widened(s, acc, p);
  else if (how(s).words)
    accumulate_words(s, acc, p);
  else if (how(s).halves)
    accumulate_halves(s, acc, p);
  else if (k_.has_dot_axis() && contains(k_.inner(s), *k_.loops.dot))
    accumulate_dots(s, acc, p);
  else if (sums_.blocks && !sums_.blocks->how.held.empty())
    accumulate_held(acc, p, vector);
  else if (is_product)
    accumulate_product(v, acc, p, vector);
  else
    accumulate_value(s, acc, p, vector, by_lane);
  if (!guard.empty()) close();
}

// How many steps of the innermost loop have sums of their own.
size_t SumEmitter::count_ways(const Stage& s) const {
  const int64_t tile = tile_points();
  const int64_t ways = how(s).sums / tile;
  int64_t innermost = 1;
  for (AxisId a : k_.inner(s))
    if (k_.is_loop(a)) innermost = k_.indices.extent(a);
  return innermost < how(s).rounds * ways ? 1 : std::max<size_t>(1, size_t(ways));
}

// The accumulators of all ways become the first's.
void SumEmitter::join_ways(const std::string& combine) {
  for (size_t way = 1; way < sums_.ways.size(); ++way)
    for (size_t i = 0; i < sums_.ways[0].size(); ++i)
      line(sums_.ways[0][i] + " = " + combine + "(" + sums_.ways[0][i] + ", " +
           sums_.ways[way][i] + ");");
}

// A term of `sum` that is not the stage `number`: where its accumulator starts.
static ExprId start_of(const ScheduledKernel& k, ExprId sum, uint32_t number) {
  const std::vector<ExprId>& terms = k.exprs[sum].inputs;
  const Expr& first = k.exprs[terms[0]];
  return terms[first.kind == Expr::Kind::Local && first.stage == number ? 1 : 0];
}

bool SumEmitter::reduces_lanes(const Stage& s) const {
  return k_.has_lane_axis() && contains(k_.inner(s), *k_.loops.lane);
}

// An accumulator for each point of the tile and each way, declared here or, where they
// are those of a block, where it begins. The names of the first are returned: the result.
std::vector<std::string> SumEmitter::open_sums(uint32_t number, bool vector) {
  const Stage& s = k_.stages[number];
  const std::vector<Point> all = points();
  const int summed = lanes_summed(number);
  sums_ = {};
  if (how(s).blocks) sums_.blocks.emplace().how = *how(s).blocks;
  if (summed < k_.loops.lanes) sums_.lanes = summed;
  const bool blocks = sums_.blocks.has_value();
  const bool halves = how(s).halves, paired = how(s).paired;
  // A negative zero is what changes no number that is added to it, so Clang takes the
  // first block's sum as it is.
  const bool plain = blocks && sums_.blocks->how.held.empty();
  const std::string type = sum_type(s, vector),
                    none = halves || how(s).grouped ? type + "{}"
                                                    : type + (plain ? "(-" : "(") +
                                                          identity(s.op, s.dtype) + ")";
  const std::optional<ExprId> sum = how(s).begins_with;
  auto names_of = [&](bool declared, bool started) {
    std::vector<std::string> names;
    for (const Point& p : all) {
      std::string from = none;
      if (started) {
        const Value start = eval(start_of(k_, *sum, number), p);
        from = vector ? summand(splat(start, s.dtype)) : start.name;
        if (halves) from = "half_sums<" + quads() + ">(" + from + ")";
        if (paired) from = "paired_sums(" + from + ")";
        if (how(s).grouped) from = "quad_sums<" + quads() + ">(" + from + ")";
      }
      names.push_back(fresh("c"));
      if (declared) line(type + " " + names.back() + " = " + from + ";");
    }
    return names;
  };
  const std::vector<std::string> names = names_of(true, sum.has_value());
  const size_t ways = count_ways(s);
  sums_.ways = {blocks ? names_of(false, false) : names};
  while (sums_.ways.size() < ways) sums_.ways.push_back(names_of(!blocks, false));
  if (blocks) sums_.blocks->type = type, sums_.blocks->totals = names;
  return names;
}

// Where lanes are summed up, the sum of each accumulator's, as many at once as a vector
// has lanes.
std::vector<std::string> SumEmitter::across_lanes(const Stage& s,
                                                  std::vector<std::string> names) {
  const auto lanes = static_cast<size_t>(k_.loops.lanes);
  const size_t together = lanes >= 4 ? names.size() / lanes * lanes : 0;
  for (size_t i = 0; i < together; i += lanes) {
    std::string group = fresh("t"), list;
    for (size_t j = 0; j < lanes; ++j) {
      list += (j != 0 ? ", " : "") + names[i + j];
      names[i + j] = group + "[0][" + std::to_string(j) + "]";
    }
    line(type(s.dtype, true) + " " + group + "[kLanes] = {" + list + "};");
    line("across_each<" + combine_of(s.op) + ", kLanes>(" + group + ");");
  }
  for (size_t i = together; i < names.size(); ++i)
    names[i] = "across<" + combine_of(s.op) + ">(" + names[i] + ")";
  return names;
}

// The first lanes of which a store writes results, at this position of the tile.
int64_t SumEmitter::lanes_written(const Stage& s, const Point& p) const {
  int64_t written = k_.loops.lanes;
  std::vector<Range> ranges = ranges_at(p);
  ranges[*k_.loops.lane] = {0, 0};
  for (const Bound& b : s.domain) {
    int64_t step = 0;
    if (!k_.indices.affine_in(b.index, *k_.loops.lane, step) || step != 1 ||
        k_.indices.has_dynamic(b.index))
      continue;
    written = std::min(written, b.high - k_.indices.range(b.index, ranges).low);
  }
  return written;
}

// How long the accumulators of a sum are: as a vector, or shorter by halves where all
// that follows are stores of its first lanes.
int SumEmitter::lanes_summed(uint32_t number) const {
  const int shortest = how_.stages[number].shortest_sum;
  if (shortest == 0) return k_.loops.lanes;
  int64_t wanted = 1;
  for (size_t i = number + 1; i < k_.stages.size(); ++i)
    for (const Point& p : points())
      wanted = std::max(wanted, lanes_written(k_.stages[i], p));
  int lanes = k_.loops.lanes;
  while (lanes % 2 == 0 && lanes / 2 >= wanted && lanes / 2 >= shortest) lanes /= 2;
  return lanes;
}

// An accumulator's type, and a vector cut to its length.
std::string SumEmitter::sum_type(const Stage& s, bool vector) const {
  if (how(s).halves) return "HalfSums<" + quads() + ">";
  if (how(s).paired) return "PairedSums";
  if (how(s).grouped) return "QuadSums<" + quads() + ">";
  if (!vector || !sums_.lanes) return type(s.dtype, vector);
  return "Vector<" + compute_type(s.dtype) + ", " + std::to_string(*sums_.lanes) + ">";
}

std::string SumEmitter::summand(const std::string& value) const {
  if (!sums_.lanes) return value;
  return "first_part<" + std::to_string(*sums_.lanes) + ">(" + value + ")";
}

} // namespace svod::codegen
