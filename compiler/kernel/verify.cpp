// Range analysis over what lowering wrote: an index without quotients is a sum of
// independent terms, so its smallest and largest value are exact, and an access without a
// condition has to stay inside its buffer for both of them.
#include "compiler/kernel/verify.h"

#include "compiler/kernel/stage_work.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod {

namespace {

class KernelCheck {
public:
  KernelCheck(const FusedGraph& fused, const ScheduledKernel& kernel, size_t number)
      : f_(fused), k_(kernel), number_(number) {}
  void run() const;

private:
  void check_argument(const Argument& a) const;
  void check_expression(const Expr& e) const;
  void check_stage(const Stage& s) const;
  void check_end(const RunEnd& e) const;
  void check_inside(const Index& index, const Argument& a) const;
  int64_t elements(const Argument& a) const;

  const FusedGraph& f_;
  const ScheduledKernel& k_;
  size_t number_;
};

int64_t KernelCheck::elements(const Argument& a) const {
  if (a.kind == Argument::Kind::Packed) return element_count(f_.packed[a.id].extents);
  return physical_count(f_.buffers[a.id].layout, f_.buffers[a.id].shape);
}

void KernelCheck::check_argument(const Argument& a) const {
  bool packed = a.kind == Argument::Kind::Packed;
  SVOD_CHECK(a.id < (packed ? f_.packed.size() : f_.buffers.size()))
      << "kernel " << number_ << " has an argument " << a.id << " that is not there";
  DType dtype = packed ? f_.packed[a.id].dtype : f_.buffers[a.id].dtype;
  SVOD_CHECK(a.dtype == dtype && !(packed && a.written))
      << "kernel " << number_ << " takes argument " << a.id << " for another";
}

void KernelCheck::check_inside(const Index& index, const Argument& a) const {
  bool sum = std::ranges::all_of(index.terms, [&](const auto& t) {
    Term::Kind kind = k_.indices.term(t.first).kind;
    return kind == Term::Kind::Axis || kind == Term::Kind::Dynamic;
  });
  // Nothing runs over an empty axis.
  for (AxisId axis = 0; axis < k_.indices.axis_count(); ++axis)
    sum = sum && k_.indices.extent(axis) > 0;
  if (!sum) return;
  Range r = k_.indices.range(index);
  SVOD_CHECK(r.low >= 0 && r.high < elements(a))
      << "kernel " << number_ << " reaches [" << r.low << ", " << r.high << "] of "
      << elements(a) << " elements at " << print(k_, index);
}

void KernelCheck::check_expression(const Expr& e) const {
  for (ExprId in : e.inputs)
    SVOD_CHECK(in < k_.exprs.size()) << "kernel " << number_ << " has no e" << in;
  bool is_local = e.kind == Expr::Kind::Local;
  bool known = is_local && e.stage < k_.stages.size() &&
               k_.stages[e.stage].kind == StageKind::Reduce;
  SVOD_CHECK(!is_local || known)
      << "kernel " << number_ << " has no local of stage " << e.stage;
  bool descends = e.kind == Expr::Kind::Descend;
  SVOD_CHECK(!descends || e.table < k_.arguments.size())
      << "kernel " << number_ << " has no nodes a" << e.table;
  if (e.kind != Expr::Kind::Load && !descends) return;
  SVOD_CHECK(e.argument < k_.arguments.size() &&
             e.dtype == k_.arguments[e.argument].dtype)
      << "kernel " << number_ << " loads what argument " << e.argument << " is not";
}

void KernelCheck::check_stage(const Stage& s) const {
  SVOD_CHECK(s.value < k_.exprs.size()) << "kernel " << number_ << " has no value";
  for (ExprId id : loads_below(k_, s.value)) {
    const Expr& load = k_.exprs[id];
    if (load.bounds.empty()) check_inside(load.index, k_.arguments[load.argument]);
  }
  for (ExprId id : descents_below(k_, s.value)) {
    const Expr& e = k_.exprs[id];
    if (e.bounds.empty()) check_inside(e.index, k_.arguments[e.argument]);
  }
  if (s.kind == StageKind::Reduce && !s.keeps) return;
  SVOD_CHECK(s.argument < k_.arguments.size() && k_.arguments[s.argument].written &&
             k_.arguments[s.argument].dtype == s.dtype)
      << "kernel " << number_ << " writes what argument " << s.argument << " is not";
  if (s.domain.empty() || s.pad_lanes) check_inside(s.index, k_.arguments[s.argument]);
}

void KernelCheck::check_end(const RunEnd& e) const {
  const bool asked = e.argument < k_.arguments.size() &&
                     k_.arguments[e.argument].dtype == DType::I64 &&
                     !k_.arguments[e.argument].written;
  SVOD_CHECK(asked && e.axis < k_.indices.axis_count() && !k_.is_lane(e.axis) &&
             e.step >= 1)
      << "kernel " << number_ << " ends where argument " << e.argument << " says nothing";
  check_inside(IndexPool::constant(e.element), k_.arguments[e.argument]);
}

void KernelCheck::run() const {
  for (const Argument& a : k_.arguments) check_argument(a);
  for (const Expr& e : k_.exprs) check_expression(e);
  for (const Stage& s : k_.stages) check_stage(s);
  for (const RunEnd& e : k_.ends) check_end(e);
  if (!k_.has_lane_axis()) return;
  int64_t extent = k_.indices.extent(*k_.loops.lane);
  SVOD_CHECK(extent == k_.loops.lanes) << "kernel " << number_ << " has a lane axis of "
                                       << extent << " for " << k_.loops.lanes << " lanes";
}

} // namespace

void verify(const FusedGraph& fused, const ScheduledKernel& kernel, size_t number) {
  KernelCheck(fused, kernel, number).run();
}

void verify(const FusedGraph& fused) {
  for (size_t i = 0; i < fused.kernels.size(); ++i) verify(fused, fused.kernels[i], i);
  size_t before = 0;
  for (const FusedRegion& region : fused.regions) {
    SVOD_CHECK(region.kernels_before >= before &&
               region.kernels_before <= fused.kernels.size())
        << "a region stands between no kernels";
    before = region.kernels_before;
    SVOD_CHECK(region.inputs.size() == fused.graph[region.node].inputs.size() &&
               region.bodies.size() == body_count(fused.graph[region.node].op))
        << "region %" << region.node << " lacks an operand or a body";
    for (const FusedGraph& body : region.bodies) verify(body);
  }
}

} // namespace svod
