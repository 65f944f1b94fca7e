// Products of floats whose common factor is read as registers: the steps of the innermost
// loop are taken four at a time, and each knows which element of its registers it takes.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/stage_emitter.h"
#include "compiler/kernel/shared_elements.h"

#include <algorithm>

namespace svod::codegen {

// The registers that the steps from the loop's present one on take, at each position of
// the tile that reads others.
StageEmitter::Registers StageEmitter::load_elements(ExprId load) {
  const Expr& e = k_.exprs[load];
  const std::string type = "Vector<f32, " + std::to_string(kElements) + ">";
  Registers out;
  for (const Point& p : points()) {
    const auto [at, is_new] = out.try_emplace(project(load, p));
    if (!is_new) continue;
    std::vector<Bound> uniform, by_lane;
    split_bounds(e.bounds, p, uniform, by_lane);
    const std::string guard = condition(uniform, p, false);
    std::string value = "load_elements<" + std::to_string(kElements) + ">(a" +
                        std::to_string(e.argument) + " + " +
                        index_text(e.index, p, false) + ")";
    if (!guard.empty())
      value = guard + " ? " + value + " : " + type + "(" + literal(e.dtype, e.bits) + ")";
    at->second = declare(type, value);
  }
  return out;
}

// All steps from `from` to before `to`: in fours, and what is left of them.
void StageEmitter::emit_elements(const Stage& s, size_t depth, const std::string& from,
                                 const std::string& to, const Body& body) {
  const SharedElements shared = *shared_elements(k_, s);
  const std::string axis = "x" + std::to_string(shared.loop), first = fresh("b"),
                    four = std::to_string(kElements);
  const int64_t extent = k_.indices.extent(shared.loop);
  // A useful end is one of whole groups of `by` steps.
  const int64_t block = sums_.blocks && sums_.blocks->how.loop == shared.loop
                            ? sums_.blocks->how.steps
                            : extent;
  const bool fours = extent % kElements == 0 && block % kElements == 0 &&
                     how(s).unroll.by % kElements == 0 &&
                     !needs_peel(shared.loop, true) && k_.run_end(shared.loop) == nullptr;
  line("iptr " + first + " = " + from + ";");
  unroll_hint(s, extent, false);
  open("for (; " + first + " + " + four + " <= " + to + "; " + first + " += " + four +
       ")");
  line("const iptr " + axis + " = " + first + ";");
  const Registers registers = load_elements(shared.load);
  for (int n = 0; n < kElements; ++n) {
    const std::string element = "[" + std::to_string(n) + "]";
    open("");
    line("const iptr " + axis + " = " + first + " + " + std::to_string(n) + ";");
    for (const auto& [at, name] : registers)
      frames_.back()[{shared.load, at}] = {name + element, false};
    emit_step(s, depth, body);
    close();
  }
  close();
  if (fours) return;
  line("#pragma clang loop unroll(disable) vectorize(disable)");
  open("for (iptr " + axis + " = " + first + "; " + axis + " < " + to + "; ++" + axis +
       ")");
  emit_step(s, depth, body);
  close();
}

} // namespace svod::codegen
