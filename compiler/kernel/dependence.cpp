#include "compiler/kernel/dependence.h"

namespace svod {

namespace {

class DependenceWalk {
public:
  explicit DependenceWalk(const Kernel& k)
      : k_(k), done_(k.exprs.size()),
        found_(k.exprs.size(), std::vector<bool>(k.indices.axis_count())) {}
  Dependence run() {
    for (ExprId id = 0; id < k_.exprs.size(); ++id) visit(id);
    return std::move(found_);
  }

private:
  void visit(ExprId id);
  void add(ExprId to, ExprId from) {
    visit(from);
    for (size_t a = 0; a < found_[from].size(); ++a)
      if (found_[from][a]) found_[to][a] = true;
  }

  const Kernel& k_;
  std::vector<bool> done_;
  Dependence found_;
};

void DependenceWalk::visit(ExprId id) {
  if (done_[id]) return;
  done_[id] = true;
  const Expr& e = k_.exprs[id];
  std::vector<bool>& mine = found_[id];
  std::vector<ExprId> below = e.inputs;
  k_.indices.collect_axes(e.index, mine);
  k_.indices.collect_dynamic(e.index, below);
  for (const Bound& b : e.bounds) {
    k_.indices.collect_axes(b.index, mine);
    k_.indices.collect_dynamic(b.index, below);
  }
  if (e.kind == Expr::Kind::Local) {
    const Stage& s = k_.stages[e.stage];
    add(id, s.value);
    k_.indices.collect_axes(s.position, mine);
    for (const Bound& b : s.domain) k_.indices.collect_axes(b.index, mine);
    for (AxisId a : s.inner) mine[a] = false;
  }
  for (ExprId in : below) add(id, in);
}

} // namespace

Dependence dependence_of(const Kernel& kernel) { return DependenceWalk(kernel).run(); }

} // namespace svod
