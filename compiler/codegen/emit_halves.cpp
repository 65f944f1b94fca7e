// Products of bytes that are added in 16 bits, those of several steps where they fit, and
// then to sums of which each lane has two. What all lanes share is loaded two groups at a
// time, each of which fills half a register: windows that overlap, and the steps that are
// taken together, find what they share there.
#include "compiler/codegen/sum_emitter.h"
#include "compiler/kernel/byte_products.h"

#include <set>

namespace svod::codegen {

void SumEmitter::open_shared(const Stage& s) {
  sums_.shared = {};
  if (!reads_groups(k_)) return;
  const Expr& x = *byte_operands(k_, s).x;
  std::vector<Point> steps;
  std::vector<int64_t> offsets;
  for (const Point& p : points())
    for (const Point& step : steps_together(s, p)) {
      int64_t at = 0, apart = 0;
      for (size_t i = 0; i < step.size(); ++i)
        if (k_.indices.affine_in(x.index, axes_[i], apart)) at += step[i] * apart;
      steps.push_back(step);
      offsets.push_back(at);
    }
  const GroupLoads found = cover_pairs(offsets);
  for (size_t i = 0; i < steps.size(); ++i) sums_.shared.uses[steps[i]] = found.uses[i];
  sums_.shared.loads = found.loads;
  sums_.shared.names.resize(found.loads.size());
}

std::string SumEmitter::shared_group(const Expr& x, const Point& step) {
  const auto& [load, element] = sums_.shared.uses.at(step);
  const auto& [at, groups] = sums_.shared.loads[load];
  const std::string count = "<" + std::to_string(groups) + ">";
  std::string& name = sums_.shared.names[load];
  if (name.empty())
    name = declare("SharedGroups" + count,
                   "load_shared" + count + "(a" + std::to_string(x.argument) + " + " +
                       index_text(x.index, Point(counts_.size(), 0), false) +
                       (at < 0 ? " - " : " + ") + std::to_string(std::abs(at)) + ")");
  return name + ".group[" + std::to_string(element) + "]";
}

// The weights of four lanes, read by themselves where they lie as they are multiplied: a
// register of the others would wait for the whole tile. Two that are neighbours are one
// instruction, if they are read one after the other.
std::string SumEmitter::quad_of_weights(ExprId w, const Point& step) {
  const Expr& e = k_.exprs[w];
  const Point at = project(w, step);
  auto& known = sums_.shared.weights;
  if (const auto found = known.find({sums_.quad, at}); found != known.end())
    return found->second;
  int64_t apart = 0;
  const bool packed = e.kind == Expr::Kind::Load && e.bounds.empty() &&
                      k_.indices.affine_in(e.index, *k_.loops.dot, apart) && apart == 1 &&
                      k_.indices.affine_in(e.index, *k_.loops.lane, apart) &&
                      apart == kDot;
  const int end = packed ? std::min(sums_.quad + 2, quads_stored(k_)) : sums_.quad + 1;
  for (int quad = sums_.quad; quad < end; ++quad) {
    const int first = 4 * quad;
    known[{quad, at}] =
        declare("Vector<i32, 4>", packed ? "load_quad(a" + std::to_string(e.argument) +
                                               " + " + index_text(e.index, step, false) +
                                               " + " + std::to_string(first * kDot) + ")"
                                         : "quad_of<" + std::to_string(first) + ">(" +
                                               splat(eval(w, step), DType::I32) + ")");
  }
  return known.at({sums_.quad, at});
}

void SumEmitter::accumulate_halves(const Stage& s, const std::string& acc,
                                   const Point& p) {
  const ByteOperands operands = byte_operands(k_, s);
  ExprId x = below_casts(k_, k_.exprs[s.value].inputs[0]),
         w = below_casts(k_, k_.exprs[s.value].inputs[1]);
  if (&k_.exprs[x] == operands.w || operands.decoded == x) std::swap(x, w);
  const std::string quad = "<" + std::to_string(sums_.quad) + ">";
  std::string products;
  for (const Point& step : steps_together(s, p)) {
    const std::string bytes =
        sums_.shared.uses.empty() ? eval(x, step).name : shared_group(k_.exprs[x], step);
    const std::string weights = quad_of_weights(w, step),
                      product =
                          "byte_products" + quad + "(" + bytes + ", " + weights + ")";
    if (products.empty())
      line("auto " + (products = fresh("t")) + " = " + product + ";");
    else
      line(products + " += " + product + ";");
  }
  line("add_halves" + quad + "(" + acc + ", " + products + ");");
}

} // namespace svod::codegen
