// A vector of the kernel as several shorter ones.
#include "compiler/kernel/lane_facts.h"
#include "compiler/kernel/schedule.h"

#include <numeric>

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
    shuffles_ = shuffles_lanes(from);
  }

  std::optional<ScheduledKernel> cut() {
    for (Expr& e : to_.exprs) {
      replace(e.index);
      replace(e.bounds);
    }
    for (Stage& s : to_.stages) {
      replace(s.index);
      replace(s.position);
      replace(s.domain, shuffles_ && s.pad_lanes);
      replace(s.useful, shuffles_);
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
        Index term = quotient(of, t.divisor);
        if (t.kind == Term::Kind::Mod)
          term = IndexPool::add(of, IndexPool::scale(term, -t.divisor));
        out = IndexPool::add(out, IndexPool::scale(term, coefficient));
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

  // All lanes have the same quotient where they are fewer than it takes to reach another:
  // (4 * part + lane) / 8 is part / 2.
  Index quotient(const Index& of, int64_t divisor) {
    const AxisId lane = *from_.loops.lane;
    const int64_t step = to_.indices.coefficient(of, lane);
    Index rest = IndexPool::add(of, IndexPool::scale(to_.indices.axis(lane), -step));
    int64_t common = std::gcd(divisor, rest.constant);
    for (const auto& [id, coefficient] : rest.terms)
      common = std::gcd(common, coefficient);
    if (step < 0 || step * (to_.loops.lanes - 1) >= common ||
        to_.indices.depends_on(rest, lane))
      return to_.indices.div(of, divisor);
    rest.constant /= common;
    for (auto& [id, coefficient] : rest.terms) coefficient /= common;
    return to_.indices.div(rest, divisor / common);
  }

  void replace(std::vector<Bound>& bounds, bool lanes = false) {
    for (Bound& b : bounds) {
      works_ &= lanes || !from_.indices.depends_on(b.index, *from_.loops.lane);
      replace(b.index);
    }
  }

  const ScheduledKernel& from_;
  ScheduledKernel to_;
  AxisId part_ = 0;
  // Groups of channels may end within the last block, and so within a part of it.
  bool shuffles_ = false;
  bool works_ = true;
};

} // namespace

std::optional<ScheduledKernel> cut_lanes(const ScheduledKernel& kernel, int parts) {
  return Cutter(kernel, parts).cut();
}

} // namespace svod
