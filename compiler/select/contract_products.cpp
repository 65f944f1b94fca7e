#include "compiler/select/contract_products.h"

#include "compiler/rewrite/rounding.h"

#include <algorithm>

namespace svod::select {

namespace {

class Contraction {
public:
  explicit Contraction(Kernel& k) : k_(k), readers_(k.exprs.size()) { count_readers(); }
  void run() {
    for (ExprId id = 0; id < readers_.size(); ++id) contract(id);
  }

private:
  void count_readers();
  bool is_product(ExprId id) const;
  ExprId negated(ExprId id);
  void contract(ExprId id);

  Kernel& k_;
  std::vector<int> readers_; // of each expression there was at the start
};

void Contraction::count_readers() {
  std::vector<ExprId> dynamic;
  for (const Expr& e : k_.exprs) {
    for (ExprId in : e.inputs) ++readers_[in];
    k_.indices.collect_dynamic(e.index, dynamic);
    for (const Bound& b : e.bounds) k_.indices.collect_dynamic(b.index, dynamic);
  }
  for (const Stage& s : k_.stages) {
    ++readers_[s.value];
    k_.indices.collect_dynamic(s.index, dynamic);
  }
  for (ExprId id : dynamic) ++readers_[id];
}

bool Contraction::is_product(ExprId id) const {
  const Expr& e = k_.exprs[id];
  return e.kind == Expr::Kind::Map && e.op == Op::Mul && readers_[id] == 1;
}

ExprId Contraction::negated(ExprId id) {
  Expr e{Expr::Kind::Map, k_.exprs[id].dtype, Op::Neg};
  e.inputs = {id};
  return k_.add(std::move(e));
}

void Contraction::contract(ExprId id) {
  const Expr sum = k_.exprs[id];
  const bool subtracts = sum.op == Op::Sub;
  if (sum.kind != Expr::Kind::Map || (sum.op != Op::Add && !subtracts)) return;
  if (sum.dtype != DType::F32 && sum.dtype != DType::F64) return;
  const size_t at = is_product(sum.inputs[0]) ? 0 : 1;
  if (!is_product(sum.inputs[at])) return;
  std::vector<ExprId> terms = k_.exprs[sum.inputs[at]].inputs;
  ExprId other = sum.inputs[1 - at];
  if (subtracts && at == 0) other = negated(other);
  if (subtracts && at == 1) terms[0] = negated(terms[0]);
  terms.push_back(other);
  k_.exprs[id].op = Op::MulAdd;
  k_.exprs[id].inputs = std::move(terms);
}

} // namespace

static bool rounds(const FusedGraph& fused, const Kernel& k,
                   const std::vector<bool>& rounded) {
  for (const Expr& e : k.exprs) {
    const bool casts = e.kind == Expr::Kind::Cast;
    if (casts ? rewrite::rounds_to_integer(Op::Cast, e.dtype)
              : e.kind == Expr::Kind::Map && rewrite::rounds_to_integer(e.op, e.dtype))
      return true;
  }
  return std::ranges::any_of(k.arguments, [&](const Argument& a) {
    return a.written && a.kind == Argument::Kind::Buffer &&
           rounded[fused.buffers[a.id].node];
  });
}

void contract_products(FusedGraph& fused) {
  const std::vector<bool> rounded = rewrite::rounded_later(fused.graph);
  for (Kernel& k : fused.kernels)
    if (!rounds(fused, k, rounded)) Contraction(k).run();
  for (FusedRegion& region : fused.regions) {
    if (rounded[region.node]) continue;
    for (FusedGraph& body : region.bodies) contract_products(body);
  }
}

} // namespace svod::select
