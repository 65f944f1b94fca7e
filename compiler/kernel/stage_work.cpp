#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod {

bool is_costly(Op op) {
  switch (op) {
  case Op::Exp:
  case Op::Log:
  case Op::Log1p:
  case Op::Sin:
  case Op::Cos:
  case Op::Tan:
  case Op::Asin:
  case Op::Acos:
  case Op::Atan:
  case Op::Sinh:
  case Op::Cosh:
  case Op::Tanh:
  case Op::Asinh:
  case Op::Acosh:
  case Op::Atanh:
  case Op::Erf:
  case Op::Gelu:
  case Op::Sigmoid:
  case Op::Pow:
  case Op::Atan2:
  case Op::Gather:
  case Op::Descend:
  case Op::Div:
  case Op::Mod:
  case Op::Fmod:
  case Op::Sqrt:
  case Op::Reciprocal:
    return true;
  default:
    return false;
  }
}

static void walk(const Kernel& k, ExprId id, std::vector<bool>& seen, StageWork& out) {
  if (seen[id]) return;
  seen[id] = true;
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Load) out.loads.push_back(id);
  // Bytes are widened by what loads or multiplies them.
  bool widens = e.kind == Expr::Kind::Cast && e.dtype == DType::I32 &&
                k.exprs[e.inputs[0]].kind == Expr::Kind::Load;
  if (e.kind == Expr::Kind::Map || (e.kind == Expr::Kind::Cast && !widens))
    ++out.operations;
  if (e.kind == Expr::Kind::Descend)
    out.operations += static_cast<int>(kStepWork * e.limit);
  std::vector<ExprId> dynamic;
  k.indices.collect_dynamic(e.index, dynamic);
  for (const Bound& b : e.bounds) k.indices.collect_dynamic(b.index, dynamic);
  for (ExprId d : dynamic) walk(k, d, seen, out);
  for (ExprId in : e.inputs) walk(k, in, seen, out);
}

StageWork work_below(const Kernel& k, ExprId root, std::vector<bool>& counted) {
  counted.resize(k.exprs.size());
  StageWork out;
  walk(k, root, counted, out);
  return out;
}

StageWork work_below(const Kernel& k, ExprId root) {
  std::vector<bool> none;
  return work_below(k, root, none);
}

std::vector<ExprId> loads_below(const Kernel& k, ExprId root) {
  return work_below(k, root).loads;
}

std::vector<bool> axes_below(const Kernel& k, const Index& index) {
  std::vector<bool> axes(k.indices.axis_count());
  k.indices.collect_axes(index, axes);
  std::vector<ExprId> numbers;
  k.indices.collect_dynamic(index, numbers);
  for (ExprId number : numbers)
    for (ExprId load : loads_below(k, number))
      k.indices.collect_axes(k.exprs[load].index, axes);
  return axes;
}

ExprId below_casts(const Kernel& k, ExprId id) {
  while (k.exprs[id].kind == Expr::Kind::Cast) id = k.exprs[id].inputs[0];
  return id;
}

std::vector<uint32_t> nested_below(const Kernel& k, uint32_t number) {
  std::vector<bool> below(k.stages.size());
  std::vector<ExprId> open{k.stages[number].value};
  std::vector<bool> seen(k.exprs.size());
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Expr& e = k.exprs[id];
    if (e.kind == Expr::Kind::Local && k.stages[e.stage].nested) below[e.stage] = true;
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
    k.indices.collect_dynamic(e.index, open);
    for (const Bound& b : e.bounds) k.indices.collect_dynamic(b.index, open);
  }
  std::vector<uint32_t> out;
  for (uint32_t s = 0; s < number; ++s)
    if (below[s]) out.push_back(s);
  return out;
}

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<ExprId> descents_below(const Kernel& k, ExprId root) {
  std::vector<ExprId> out, open{root};
  while (!open.empty()) {
    ExprId id = open.back();
    open.pop_back();
    const Expr& e = k.exprs[id];
    if (e.kind == Expr::Kind::Descend && !contains(out, id)) out.push_back(id);
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
    k.indices.collect_dynamic(e.index, open);
  }
  return out;
}

double positions_of(const IndexPool& pool, const std::vector<AxisId>& axes) {
  double out = 1;
  for (AxisId a : axes) out *= double(pool.extent(a));
  return out;
}

std::vector<AxisId> loops_of(const ScheduledKernel& k, const Stage& s) {
  std::vector<AxisId> loops = k.loops.outer;
  auto add = [&](const std::vector<AxisId>& axes) {
    loops.insert(loops.end(), axes.begin(), axes.end());
  };
  if (s.nested) add(k.inner((&s)[1]));
  add(k.inner(s));
  return loops;
}

bool is_arg_reduce(const Stage& s) {
  return s.kind == StageKind::Reduce && (s.op == Op::ArgMin || s.op == Op::ArgMax);
}

bool only_stores(const ScheduledKernel& k) {
  return !k.call() && std::ranges::all_of(k.stages, [](const Stage& s) {
    return s.kind == StageKind::Store || s.kind == StageKind::Reduce;
  });
}

} // namespace svod
