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

void SumEmitter::accumulate_halves(const Stage& s, const std::string& acc,
                                   const Point& p) {
  const ByteOperands operands = byte_operands(k_, s);
  ExprId x = below_casts(k_, k_.exprs[s.value].inputs[0]),
         w = below_casts(k_, k_.exprs[s.value].inputs[1]);
  if (&k_.exprs[x] == operands.w || operands.decoded == x) std::swap(x, w);
  std::string products;
  for (const Point& step : steps_together(s, p)) {
    const std::string bytes =
        sums_.shared.uses.empty() ? eval(x, step).name : shared_group(k_.exprs[x], step);
    const std::string weights = splat(eval(w, step), DType::I32),
                      product = "byte_products(" + bytes + ", " + weights + ")";
    if (products.empty())
      line("auto " + (products = fresh("t")) + " = " + product + ";");
    else
      line(products + " += " + product + ";");
  }
  line(acc + " = add_halves(" + acc + ", " + products + ");");
}

} // namespace svod::codegen
