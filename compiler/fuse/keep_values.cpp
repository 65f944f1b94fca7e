// Softmax takes exp(x - max) twice: for the sum, and for the result. Where a reduction
// and the store after it pass over the same elements, the reduction writes the costly
// part of each where its result will be, and the store finds it there.
#include "compiler/fuse/choose.h"
#include "compiler/fuse/group.h"

#include <algorithm>

namespace svod {

static bool costly_below(const Kernel& k, ExprId id) {
  const Expr& e = k.exprs[id];
  if (e.kind == Expr::Kind::Map && is_costly(e.op)) return true;
  return std::ranges::any_of(e.inputs, [&](ExprId in) { return costly_below(k, in); });
}

// `root` with the expression `from` replaced by `to`.
static ExprId replaced(Kernel& k, ExprId root, ExprId from, ExprId to) {
  if (root == from) return to;
  Expr copy = k.exprs[root];
  bool changed = false;
  for (ExprId& in : copy.inputs) {
    ExprId now = replaced(k, in, from, to);
    changed |= now != in;
    in = now;
  }
  return changed ? k.add(std::move(copy)) : root;
}

void keep_costly_values(Kernel& k) {
  if (k.stages.size() < 2 || k.stages.back().kind != StageKind::Store) return;
  const Stage store = k.stages.back();
  if (store.inner.empty() || is_narrow_float(store.dtype)) return;
  for (size_t i = 0; i + 1 < k.stages.size(); ++i) {
    Stage& s = k.stages[i];
    const bool arg = s.op == Op::ArgMin || s.op == Op::ArgMax;
    if (s.kind != StageKind::Reduce || arg || s.inner != store.inner ||
        s.domain != store.domain || k.exprs[s.value].dtype != store.dtype ||
        !costly_below(k, s.value))
      continue;
    Expr load{Expr::Kind::Load, store.dtype};
    load.argument = store.argument;
    load.index = store.index;
    load.bounds = store.domain;
    const ExprId kept = k.add(std::move(load));
    const ExprId value = replaced(k, store.value, s.value, kept);
    // Whatever else the store reads might lie where the result does.
    const bool alone = std::ranges::all_of(loads_below(k, value), [&](ExprId id) {
      return id == kept ||
             k.arguments[k.exprs[id].argument].kind == Argument::Kind::Packed;
    });
    if (value == store.value || !alone) continue;
    s.keeps = true;
    s.argument = store.argument;
    s.index = store.index;
    k.stages.back().value = value;
    return;
  }
}

} // namespace svod
