#include "compiler/optimize/cost/footprints.h"

#include "compiler/kernel/stage_work.h"

#include <cmath>

namespace svod::cost {

namespace {

using Covered = std::vector<Range>; // positions of each axis

// Elements `stride` apart, `count` of them.
struct Walk {
  double stride = 0, count = 1;
};

class Footprints {
public:
  Footprints(const ScheduledKernel& k, const LevelSchedule& how, double line)
      : k_(k), tile_(how.tile), line_(line), whole_(k.arguments.size()) {}
  std::vector<Nest> nests();

private:
  std::vector<Access> accesses_of(const Stage& s) const;
  std::vector<Loop> loops_of_stage(const Stage& s) const;
  void add_steps(Access& access) const;
  std::vector<AxisId> axes_of(const Index& index) const;
  Covered innermost(const std::vector<Loop>& loops) const;
  double walked(const Step& step, const Covered& covered) const;
  Footprint footprint(const Access& access, const Covered& covered);
  void touch(Nest& nest);

  const ScheduledKernel& k_;
  const std::vector<TileAxis>& tile_;
  double line_;
  std::vector<double> whole_;       // bytes of each argument
  std::vector<Walk> walks_, apart_; // of the footprint that is computed
};

std::vector<Nest> Footprints::nests() {
  std::vector<Nest> out;
  for (const Stage& s : k_.stages)
    out.push_back(
        {.accesses = accesses_of(s), .loops = loops_of_stage(s), .touched = {}});
  for (const Nest& n : out)
    for (const Access& a : n.accesses)
      whole_[a.argument] = std::max(
          whole_[a.argument], double(k_.indices.range(*a.index).high + 1) * a.bytes);
  for (Nest& n : out) touch(n);
  return out;
}

std::vector<AxisId> Footprints::axes_of(const Index& index) const {
  std::vector<AxisId> out;
  const std::vector<bool> used = axes_below(k_, index);
  for (AxisId a = 0; a < used.size(); ++a)
    if (used[a]) out.push_back(a);
  return out;
}

void Footprints::add_steps(Access& access) const {
  access.axes = axes_of(*access.index);
  for (const auto& [id, coefficient] : access.index->terms)
    access.steps.push_back({&k_.indices.term(id),
                            std::abs(double(coefficient)) * access.bytes,
                            axes_of(Index{0, {{id, 1}}})});
}

// Loads of one argument that differ by a constant read the same lines sooner or later.
std::vector<Access> Footprints::accesses_of(const Stage& s) const {
  std::vector<Access> out;
  auto add = [&](uint32_t argument, const Index& index, double bytes, bool written) {
    for (const Access& a : out)
      if (a.argument == argument && a.index->terms == index.terms && a.written == written)
        return;
    out.push_back({argument, &index, bytes, written, {}, {}});
    add_steps(out.back());
  };
  for (ExprId id : loads_below(k_, s.value))
    add(k_.exprs[id].argument, k_.exprs[id].index, double(byte_size(k_.exprs[id].dtype)),
        false);
  for (ExprId id : descents_below(k_, s.value))
    add(k_.exprs[id].argument, k_.exprs[id].index, sizeof(float), false);
  if (s.kind != StageKind::Reduce || s.keeps)
    add(s.argument, s.index, double(byte_size(s.dtype)), true);
  return out;
}

std::vector<Loop> Footprints::loops_of_stage(const Stage& s) const {
  std::vector<Loop> out;
  auto block = [&](AxisId axis) {
    for (const ChunkAxis& c : k_.loops.chunks)
      if (c.axis == axis) return std::min(c.block, k_.indices.extent(axis));
    return k_.indices.extent(axis);
  };
  for (const ChunkAxis& c : k_.loops.chunks)
    if (const int64_t extent = k_.indices.extent(c.axis); c.block < extent)
      out.push_back({c.axis, std::ceil(double(extent) / double(c.block)), c.block});
  for (AxisId a : k_.loops.outer) {
    if (k_.is_lane(a) || k_.indices.extent(a) == 1) continue;
    const int64_t count = std::min<int64_t>(tile_count(tile_, a), block(a));
    out.push_back({a, double(block(a)) / double(count), count});
  }
  auto add = [&](const Stage& of) {
    for (AxisId a : k_.inner(of))
      if (k_.is_loop(a)) out.push_back({a, double(k_.indices.extent(a)), 1});
  };
  if (s.nested) add((&s)[1]);
  add(s);
  return out;
}

Covered Footprints::innermost(const std::vector<Loop>& loops) const {
  Covered out(k_.indices.axis_count());
  auto cover = [&](AxisId axis, int64_t positions) { out[axis] = {0, positions - 1}; };
  if (k_.loops.lane) cover(*k_.loops.lane, k_.indices.extent(*k_.loops.lane));
  if (k_.loops.dot) cover(*k_.loops.dot, k_.indices.extent(*k_.loops.dot));
  for (const Loop& l : loops) cover(l.axis, l.covered);
  return out;
}

// Positions of all of them.
static double positions(const std::vector<AxisId>& axes, const std::vector<Range>& of) {
  double out = 1;
  for (AxisId a : axes) out *= double(of[a].high + 1);
  return out;
}

double Footprints::walked(const Step& step, const Covered& covered) const {
  const Term& term = *step.term;
  if (term.kind == Term::Kind::Axis) return double(covered[term.id].high + 1);
  double count = double(term.high - term.low + 1);
  if (term.kind != Term::Kind::Dynamic) {
    const double by = term.kind == Term::Kind::Div ? double(term.divisor) : 1;
    const Range of = k_.indices.range(term.of, covered);
    count = std::min(count, std::floor(double(of.high - of.low) / by) + 1);
  }
  return std::min(count, positions(step.axes, covered));
}

// Lines of the cache that the positions touch, as bytes. Walks from the shortest stride
// on: one within what the shorter ones cover makes that longer, one beyond repeats it.
Footprint Footprints::footprint(const Access& access, const Covered& covered) {
  walks_.clear();
  apart_.clear();
  for (const Step& step : access.steps)
    if (const double count = walked(step, covered); count > 1)
      walks_.push_back({step.stride, count});
  std::ranges::sort(walks_, {}, &Walk::stride);
  double run = access.bytes;
  for (const Walk& w : walks_) {
    const double reach = apart_.empty() ? 0 : apart_.back().stride * apart_.back().count;
    if (apart_.empty() && w.stride <= std::max(run, line_))
      run += w.stride * (w.count - 1);
    else if (!apart_.empty() && w.stride < reach)
      apart_.back().count += (w.count - 1) * w.stride / apart_.back().stride;
    else
      apart_.push_back(w);
  }
  Footprint out{std::max(line_, run), std::max(line_, run), run >= line_};
  for (const Walk& w : apart_) out.bytes *= w.count;
  out.bytes = std::min({out.bytes, std::max(line_, whole_[access.argument]),
                        line_ * positions(access.axes, covered)});
  return out;
}

// From the innermost loop outwards: each covers its trips' worth of what lies below it.
void Footprints::touch(Nest& nest) {
  Covered covered = innermost(nest.loops);
  nest.touched.resize(nest.loops.size() + 1);
  for (size_t depth = nest.loops.size();; --depth) {
    for (const Access& a : nest.accesses)
      nest.touched[depth].push_back(footprint(a, covered));
    if (depth == 0) return;
    const Loop& l = nest.loops[depth - 1];
    const double positions = std::ceil(double(covered[l.axis].high + 1) * l.trips);
    covered[l.axis].high =
        std::min(k_.indices.extent(l.axis), static_cast<int64_t>(positions)) - 1;
  }
}

} // namespace

std::vector<Nest> nests_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                           double line) {
  return Footprints(kernel, how, line).nests();
}

} // namespace svod::cost
