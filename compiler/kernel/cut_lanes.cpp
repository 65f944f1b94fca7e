// A vector of the kernel as several shorter ones.
#include "compiler/kernel/schedule.h"

namespace svod {

namespace {

// Copies a kernel's indices, its lanes cut in parts.
class Cutter {
public:
  Cutter(const ScheduledKernel& from, int parts) : from_(from), to_(from) {
    to_.loops.lanes = from.loops.lanes / parts;
    to_.indices = {};
    for (AxisId a = 0; a < from.indices.axis_count(); ++a)
      to_.indices.add_axis(from.is_lane(a) ? to_.loops.lanes : from.indices.extent(a));
    part_ = to_.indices.add_axis(parts);
  }

  std::optional<ScheduledKernel> cut() {
    for (Expr& e : to_.exprs) {
      replace(e.index);
      replace(e.bounds);
    }
    for (Stage& s : to_.stages) {
      replace(s.index);
      replace(s.position);
      replace(s.domain);
      replace(s.useful);
    }
    if (!works_) return std::nullopt;
    to_.outer.push_back(part_);
    to_.loops.outer.push_back(part_);
    return std::move(to_);
  }

private:
  void replace(Index& index) {
    Index out = IndexPool::constant(index.constant);
    for (auto [id, coefficient] : index.terms) {
      const Term& t = from_.indices.term(id);
      if (t.kind == Term::Kind::Div || t.kind == Term::Kind::Mod) {
        Index of = t.of;
        replace(of);
        of = t.kind == Term::Kind::Div ? to_.indices.div(of, t.divisor)
                                       : to_.indices.mod(of, t.divisor);
        out = IndexPool::add(out, IndexPool::scale(of, coefficient));
        continue;
      }
      if (t.kind != Term::Kind::Axis) {
        works_ = false;
        return;
      }
      out = IndexPool::add(out, IndexPool::scale(to_.indices.axis(t.id), coefficient));
      if (from_.is_lane(t.id))
        out = IndexPool::add(out, IndexPool::scale(to_.indices.axis(part_),
                                                   coefficient * to_.loops.lanes));
    }
    index = std::move(out);
  }

  void replace(std::vector<Bound>& bounds) {
    for (Bound& b : bounds) {
      works_ &= !from_.indices.depends_on(b.index, *from_.loops.lane);
      replace(b.index);
    }
  }

  const ScheduledKernel& from_;
  ScheduledKernel to_;
  AxisId part_ = 0;
  bool works_ = true;
};

} // namespace

std::optional<ScheduledKernel> cut_lanes(const ScheduledKernel& kernel, int parts) {
  return Cutter(kernel, parts).cut();
}

} // namespace svod
