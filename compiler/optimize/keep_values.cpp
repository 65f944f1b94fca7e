// Softmax takes exp(x - max) twice: for the sum, and for the result. Where a reduction
// and the store after it pass over the same elements, the reduction writes the costly
// part of each where its result will be, and the store finds it there.
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <map>
#include <set>

namespace svod::optimize {

using Replaced = std::map<ExprId, ExprId>;

static bool costly_below(const ScheduledKernel& k, ExprId id, std::set<ExprId>& seen) {
  if (!seen.insert(id).second) return false;
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Map && is_costly(e.op)) return true;
  return std::ranges::any_of(e.inputs,
                             [&](ExprId in) { return costly_below(k, in, seen); });
}

// `root` with what `known` says in the place of expressions below it; each is visited
// once, however many share it.
static ExprId replaced(ScheduledKernel& k, ExprId root, Replaced& known) {
  if (auto found = known.find(root); found != known.end()) return found->second;
  Expr copy = k.exprs[root];
  bool changed = false;
  for (ExprId& in : copy.inputs) {
    ExprId now = replaced(k, in, known);
    changed |= now != in;
    in = now;
  }
  return known[root] = changed ? k.add(std::move(copy)) : root;
}

// Whether the result may lie where this is read: it has an element for each of the
// result's, at least of the outer axes.
static bool may_lie_below(const ScheduledKernel& k, const Expr& load,
                          const Stage& store) {
  const auto size = [&](uint32_t argument) {
    return byte_size(k.arguments[argument].dtype);
  };
  return k.arguments[load.argument].kind != Argument::Kind::Packed &&
         size(load.argument) == size(store.argument) &&
         std::ranges::all_of(k.outer, [&](AxisId axis) {
           return k.indices.coefficient(load.index, axis) ==
                  k.indices.coefficient(store.index, axis);
         });
}

void keep_costly_values(ScheduledKernel& k) {
  if (k.stages.size() < 2 || k.stages.back().kind != StageKind::Store) return;
  const Stage store = k.stages.back();
  const std::vector<AxisId> loops = k.loops.inner.back();
  if (loops.empty() || is_narrow_float(store.dtype)) return;
  for (size_t i = 0; i + 1 < k.stages.size(); ++i) {
    Stage& s = k.stages[i];
    std::set<ExprId> seen;
    const bool arg = s.op == Op::ArgMin || s.op == Op::ArgMax;
    if (s.kind != StageKind::Reduce || arg || k.loops.inner[i] != loops ||
        s.domain != store.domain || k.exprs[s.value].dtype != store.dtype ||
        !costly_below(k, s.value, seen))
      continue;
    Expr load{Expr::Kind::Load, store.dtype};
    load.argument = store.argument;
    load.index = store.index;
    load.bounds = store.domain;
    const size_t count = k.exprs.size();
    const ExprId kept = k.add(std::move(load));
    Replaced known = {{s.value, kept}};
    std::vector<Stage> later(k.stages.begin() + static_cast<int64_t>(i) + 1,
                             k.stages.end());
    bool found = false, alone = true;
    for (size_t j = 0; j < later.size(); ++j) {
      Stage& user = later[j];
      const ExprId before = user.value;
      if (k.loops.inner[i + 1 + j] == loops && user.domain == store.domain)
        user.value = replaced(k, before, known);
      found |= user.value != before;
      // What lies there is read no more.
      for (ExprId id : loads_below(k, user.value))
        alone &= id == kept || !may_lie_below(k, k.exprs[id], store);
    }
    if (!found || !alone) {
      k.exprs.resize(count);
      continue;
    }
    s.keeps = true;
    s.argument = store.argument;
    s.index = store.index;
    std::ranges::move(later, k.stages.begin() + static_cast<int64_t>(i) + 1);
    return;
  }
}

} // namespace svod::optimize
