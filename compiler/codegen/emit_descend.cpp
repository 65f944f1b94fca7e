// Walks down decision trees. All positions of the register tile walk at once: a step
// depends on the one before, so one walk alone leaves the core waiting for its loads.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/expression_emitter.h"

#include <algorithm>

namespace svod::codegen {

// One walk, or 0 where a bound fails.
std::string ExpressionEmitter::descend_text(const Expr& e, const Point& p,
                                            const std::string& root, bool lanewise) {
  std::string guard = condition(e.bounds, p, lanewise);
  std::string call = "descend_one<" + std::to_string(e.limit) + ">(a" +
                     std::to_string(e.argument) + " + " +
                     index_text(e.index, p, lanewise) + ", " + std::to_string(e.stride) +
                     ", a" + std::to_string(e.table) + ", iptr(" + root + "))";
  if (guard.empty()) return call;
  return guard + " ? " + call + " : " + compute_type(e.dtype) + "(0)";
}

ExpressionEmitter::Value ExpressionEmitter::make_descend(ExprId id, const Point& p) {
  const Expr& e = k_.exprs[id];
  if (on_lanes(id)) {
    Value root = eval(e.inputs[0], p);
    std::string name = fresh("t");
    line(type(e.dtype, true) + " " + name + ";");
    line("for (iptr l = 0; l < kLanes; ++l) " + name + "[l] = " +
         descend_text(e, p, root.name + (root.vector ? "[l]" : ""), true) + ";");
    return {name, true};
  }
  std::vector<Point> together;
  bool free = true; // of conditions
  for (const Point& q : points()) {
    Point at = project(id, q);
    if (std::find(together.begin(), together.end(), at) == together.end())
      together.push_back(at);
    free &= std::all_of(e.bounds.begin(), e.bounds.end(),
                        [&](const Bound& b) { return holds(b, at); });
  }
  if (!free || together.size() == 1) {
    Value root = eval(e.inputs[0], p);
    return {declare(type(e.dtype, false), descend_text(e, p, root.name, false)), false};
  }
  std::string count = std::to_string(together.size()), roots, keys;
  for (const Point& q : together) {
    std::string comma = roots.empty() ? "" : ", ";
    roots += comma + "iptr(" + eval(e.inputs[0], q).name + ")";
    keys +=
        comma + "a" + std::to_string(e.argument) + " + " + index_text(e.index, q, false);
  }
  std::string at = fresh("t"), from = fresh("t");
  line("iptr " + at + "[" + count + "] = {" + roots + "};");
  line("const " + type(e.dtype, false) + "* const " + from + "[" + count + "] = {" +
       keys + "};");
  line("descend<" + std::to_string(e.limit) + ", " + count + ">(" + from + ", " +
       std::to_string(e.stride) + ", a" + std::to_string(e.table) + ", " + at + ");");
  Value mine;
  for (size_t i = 0; i < together.size(); ++i) {
    std::string node =
        "a" + std::to_string(e.table) + "[2 * " + at + "[" + std::to_string(i) + "]]";
    Value v{declare(type(e.dtype, false), node), false};
    frames_.back()[{id, together[i]}] = v;
    if (together[i] == p) mine = v;
  }
  return mine;
}

} // namespace svod::codegen
