// Values of a whole tile, or of all outputs of a transform, that are computed by a loop
// over an array (LevelSchedule::looped).
#include "compiler/codegen/stage_emitter.h"

#include <algorithm>

namespace svod::codegen {

// What is not written is not computed, so a stage that may write nothing is not asked.
bool StageEmitter::stores_once(const Stage& s) const {
  std::vector<Bound> uniform, by_lane;
  split_bounds(s.domain, Point(counts_.size(), 0), uniform, by_lane);
  return s.kind == StageKind::Store && !s.nested && uniform.empty() &&
         std::ranges::none_of(k_.inner(s), [&](AxisId a) { return k_.is_loop(a); });
}

void StageEmitter::collect_looped(ExprId id, const Point& p, std::set<Place>& seen,
                                  std::map<Op, std::vector<Place>>& out) const {
  const Expr& e = k_.exprs[id];
  const Place place{id, project(id, p)};
  if (e.kind != Expr::Kind::Map || !seen.insert(place).second) return;
  if (std::ranges::count(how_.looped, id) != 0) return out[e.op].push_back(place);
  for (ExprId in : e.inputs) collect_looped(in, p, seen, out);
}

void StageEmitter::emit_looped(uint32_t first, uint32_t last) {
  if (how_.looped.empty()) return;
  std::set<Place> seen;
  std::map<Op, std::vector<Place>> found;
  for (uint32_t s = first; s < last; ++s)
    for (const Point& p : points()) collect_looped(k_.stages[s].value, p, seen, found);
  for (const auto& [op, places] : found) {
    std::string values;
    for (const auto& [id, p] : places) {
      const ExprId of = k_.exprs[id].inputs[0];
      values += (values.empty() ? "" : ", ") + splat(eval(of, p), k_.exprs[of].dtype);
    }
    const std::string array = fresh("e");
    line(type(DType::F32, true) + " " + array + "[] = {" + values + "};");
    line("#pragma clang loop unroll_count(2)");
    line("for (iptr n = 0; n < " + std::to_string(places.size()) + "; ++n) " + array +
         "[n] = " + function_of(op, DType::F32, {DType::F32}, true) + "(" + array +
         "[n]);");
    for (size_t i = 0; i < places.size(); ++i)
      frames_.back()[places[i]] = {array + "[" + std::to_string(i) + "]", true};
  }
}

} // namespace svod::codegen
