// Working sets. The loops of a stage, outermost first, with what each of them covers in a
// step: the data touched below a loop stays in a cache when all of it fits, and then
// whatever the next loop around reads again is read from there. So of the outermost loop
// whose step fits, each access comes in once for each run of that loop.
#include "compiler/optimize/cost/traffic.h"

#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <cmath>

namespace svod::cost {

namespace {

// Elements `stride` apart, `count` of them.
struct Walk {
  double stride = 0, count = 1;
};

struct Access {
  uint32_t argument = 0;
  const Index* index = nullptr;
  double bytes = 0; // of an element
  bool written = false;
};

// A loop: its trips, and how many positions of the axis a step covers.
struct Loop {
  AxisId axis = 0;
  double trips = 1;
  int64_t covered = 1;
};

class Footprints {
public:
  Footprints(const ScheduledKernel& k, const LevelSchedule& how, const Machine& machine,
             double run_bytes);
  Traffic traffic() const;

private:
  using Covered = std::vector<int64_t>; // positions of each axis
  std::vector<Access> accesses_of(const Stage& s) const;
  std::vector<Loop> loops_of_stage(const Stage& s) const;
  double bytes(const Access& access, const Covered& covered, double* run = nullptr) const;
  void walks(const Index& index, double factor, const Covered& covered,
             std::vector<Walk>& out) const;
  double span(const Index& index, const Covered& covered) const;
  double positions(const Index& index, const Covered& covered) const;
  Covered innermost(const Stage& s) const;

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  const std::vector<TileAxis>& tile_ = how_.tile;
  const Machine& machine_;
  double run_bytes_;
  std::vector<std::vector<Access>> accesses_; // by stage
  std::vector<double> whole_;                 // bytes of each argument
  size_t shared_ = 0;                         // loops that all stages have

public:
  double into(const Cache& cache, bool unfetched = false) const;
  double streams() const;
  // A weight that its stage fetches none of.
  bool is_unfetched(size_t stage, const Access& access) const;
  // Share of what the kernel meets first that is in this cache.
  double at_home(const Access& access, double touched, const Cache& cache) const;
};

Footprints::Footprints(const ScheduledKernel& k, const LevelSchedule& how,
                       const Machine& machine, double run_bytes)
    : k_(k), how_(how), machine_(machine), run_bytes_(run_bytes),
      whole_(k.arguments.size()) {
  for (const Stage& s : k.stages) accesses_.push_back(accesses_of(s));
  for (const std::vector<Access>& stage : accesses_)
    for (const Access& a : stage)
      whole_[a.argument] = std::max(whole_[a.argument],
                                    double(k.indices.range(*a.index).high + 1) * a.bytes);
  for (const ChunkAxis& c : k.loops.chunks) shared_ += c.block < k.indices.extent(c.axis);
  for (AxisId a : k.loops.outer) shared_ += !k.is_lane(a) && k.indices.extent(a) > 1;
}

// Loads of one argument that differ by a constant read the same lines sooner or later.
std::vector<Access> Footprints::accesses_of(const Stage& s) const {
  std::vector<Access> out;
  auto add = [&](uint32_t argument, const Index& index, double bytes, bool written) {
    for (const Access& a : out)
      if (a.argument == argument && a.index->terms == index.terms && a.written == written)
        return;
    out.push_back({argument, &index, bytes, written});
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

Footprints::Covered Footprints::innermost(const Stage& s) const {
  Covered out(k_.indices.axis_count(), 1);
  if (k_.loops.lane) out[*k_.loops.lane] = k_.indices.extent(*k_.loops.lane);
  if (k_.loops.dot) out[*k_.loops.dot] = k_.indices.extent(*k_.loops.dot);
  for (const Loop& l : loops_of_stage(s)) out[l.axis] = l.covered;
  return out;
}

double Footprints::span(const Index& index, const Covered& covered) const {
  std::vector<Range> ranges;
  for (int64_t c : covered) ranges.push_back({0, c - 1});
  const Range r = k_.indices.range(index, ranges);
  return double(r.high - r.low);
}

void Footprints::walks(const Index& index, double factor, const Covered& covered,
                       std::vector<Walk>& out) const {
  for (const auto& [id, coefficient] : index.terms) {
    const Term& term = k_.indices.term(id);
    const double stride = std::abs(double(coefficient)) * factor;
    double count = 1;
    if (term.kind == Term::Kind::Axis) {
      count = double(covered[term.id]);
    } else if (term.kind == Term::Kind::Dynamic) {
      count = double(term.high - term.low + 1);
    } else {
      const double by = term.kind == Term::Kind::Div ? double(term.divisor) : 1;
      count = std::floor(span(term.of, covered) / by) + 1;
      count = std::min(count, double(term.high - term.low + 1));
    }
    count = std::min(count, positions(Index{0, {{id, 1}}}, covered));
    if (count > 1) out.push_back({stride, count});
  }
}

double Footprints::positions(const Index& index, const Covered& covered) const {
  const std::vector<bool> used = axes_below(k_, index);
  double out = 1;
  for (AxisId a = 0; a < covered.size(); ++a)
    if (used[a]) out *= double(covered[a]);
  return out;
}

// Lines of the cache that the positions touch, as bytes. Walks from the shortest stride
// on: one within what the shorter ones cover makes that longer, one beyond repeats it.
// `along`: the length of a run.
double Footprints::bytes(const Access& access, const Covered& covered,
                         double* along) const {
  std::vector<Walk> all;
  walks(*access.index, access.bytes, covered, all);
  std::ranges::sort(all, {}, &Walk::stride);
  const auto line = double(machine_.first.line);
  double run = access.bytes;
  std::vector<Walk> apart;
  for (const Walk& w : all) {
    const double reach = apart.empty() ? 0 : apart.back().stride * apart.back().count;
    if (apart.empty() && w.stride <= std::max(run, line))
      run += w.stride * (w.count - 1);
    else if (!apart.empty() && w.stride < reach)
      apart.back().count += (w.count - 1) * w.stride / apart.back().stride;
    else
      apart.push_back(w);
  }
  double out = run <= line ? line : run;
  if (along != nullptr) *along = out;
  for (const Walk& w : apart) out *= w.count;
  return std::min({out, std::max(line, whole_[access.argument]),
                   line * positions(*access.index, covered)});
}

double Footprints::at_home(const Access& access, double touched,
                           const Cache& cache) const {
  const bool weight = k_.arguments[access.argument].kind == Argument::Kind::Packed;
  const double with = weight ? run_bytes_ : touched;
  return std::clamp(1.5 - with / double(cache.bytes), 0.0, 1.0);
}

bool Footprints::is_unfetched(size_t stage, const Access& access) const {
  return k_.arguments[access.argument].kind == Argument::Kind::Packed &&
         k_.stages[stage].kind == StageKind::Reduce &&
         (stage >= how_.stages.size() || how_.stages[stage].weights.empty());
}

// Bytes from beyond the cache; of those that nobody fetches, if asked.
double Footprints::into(const Cache& cache, bool unfetched) const {
  const auto room = double(cache.bytes);
  double out = 0;
  std::vector<std::vector<Covered>> covered; // by stage: outside all loops, then in each
  for (const Stage& s : k_.stages) {
    Covered now = innermost(s);
    std::vector<Covered> below = {now};
    const std::vector<Loop> loops = loops_of_stage(s);
    for (size_t d = loops.size(); d-- > 0;) {
      const double had = double(now[loops[d].axis]);
      now[loops[d].axis] =
          std::min(k_.indices.extent(loops[d].axis),
                   static_cast<int64_t>(std::ceil(had * loops[d].trips)));
      below.insert(below.begin(), now);
    }
    covered.push_back(std::move(below));
  }
  auto of_stage = [&](size_t s, size_t depth) {
    double sum = 0;
    for (const Access& a : accesses_[s])
      sum += bytes(a, covered[s][std::min(depth, covered[s].size() - 1)]);
    return sum;
  };
  for (size_t s = 0; s < k_.stages.size(); ++s) {
    const std::vector<Loop> loops = loops_of_stage(k_.stages[s]);
    auto fits = [&](size_t depth) {
      double sum = of_stage(s, depth);
      if (depth <= shared_)
        for (size_t other = 0; other < k_.stages.size(); ++other)
          if (other != s) sum += of_stage(other, depth);
      return sum <= room;
    };
    size_t depth = 0;
    while (depth < loops.size() && !fits(depth)) ++depth;
    const size_t from = depth == 0 ? 0 : depth - 1;
    double runs = 1;
    for (size_t d = 0; d < from; ++d) runs *= loops[d].trips;
    for (const Access& a : accesses_[s]) {
      const double first = bytes(a, covered[s][0]);
      double moved = runs * bytes(a, covered[s][from]);
      // Loops that an access does not follow bring nothing new, but may lose what it had.
      moved = std::max(0.0, moved - first * at_home(a, first, cache));
      // Beyond the second cache short runs come as slowly as they are looked up.
      double run = 0;
      bytes(a, covered[s][loops.empty() ? 0 : loops.size() - 1], &run);
      if (&cache != &machine_.first)
        moved *= 1 + machine_.jumps_seen * double(machine_.first.line) / run;
      if (!unfetched || is_unfetched(s, a)) out += moved;
    }
  }
  return out;
}

// Positions of the tile whose data lies a multiple of a set's distance apart compete for
// its ways, and are all alike to what fetches ahead. Of the stage that has most.
double Footprints::streams() const {
  const auto set = static_cast<double>(machine_.first.set_bytes());
  if (set == 0) return 1;
  double most = 1;
  for (size_t s = 0; s < k_.stages.size(); ++s) {
    if (k_.inner(k_.stages[s]).empty()) continue;
    double sum = 0;
    for (const Access& a : accesses_[s]) {
      double count = 1;
      for (const TileAxis& t : tile_) {
        int64_t step = 0;
        if (k_.indices.affine_in(*a.index, t.axis, step) && step != 0 &&
            std::fmod(std::abs(double(step)) * a.bytes, set) == 0)
          count *= t.count;
      }
      sum += count;
    }
    most = std::max(most, sum);
  }
  return most;
}

} // namespace

Traffic traffic_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                   const Machine& machine, double run_bytes) {
  const Footprints footprints(kernel, how, machine, run_bytes);
  Traffic out;
  out.streams = footprints.streams();
  out.first = footprints.into(machine.first);
  if (machine.second.bytes > machine.first.bytes) {
    out.second = footprints.into(machine.second);
    out.unfetched = footprints.into(machine.second, true);
  }
  if (machine.last.bytes > machine.second.bytes) out.last = footprints.into(machine.last);
  return out;
}

} // namespace svod::cost
