// Working sets. The loops of a stage, outermost first, with what each of them covers in a
// step: the data touched below a loop stays in a cache when all of it fits, and then
// whatever the next loop around reads again is read from there. So of the outermost loop
// whose step fits, each access comes in once for each run of that loop.
#include "compiler/optimize/cost/traffic.h"

#include "compiler/optimize/cost/footprints.h"

#include <algorithm>
#include <cmath>

namespace svod::cost {

namespace {

// Bytes that come into a cache; of those the weights that nobody fetches ahead.
struct Moved {
  double all = 0, unfetched = 0;
};

class Flow {
public:
  Flow(const ScheduledKernel& k, const LevelSchedule& how, const Machine& machine,
       double run_bytes)
      : k_(k), how_(how), machine_(machine), run_bytes_(run_bytes),
        nests_(nests_of(k, how, double(machine.first.line))) {
    for (const ChunkAxis& c : k.loops.chunks)
      shared_ += c.block < k.indices.extent(c.axis);
    for (AxisId a : k.loops.outer) shared_ += !k.is_lane(a) && k.indices.extent(a) > 1;
  }
  Moved into(const Cache& cache) const;
  double streams() const;

private:
  size_t deepest_unfit(size_t stage, const Cache& cache) const;
  // A weight that its stage fetches none of.
  bool is_unfetched(size_t stage, const Access& access) const;
  // Share of what the kernel meets first that is in this cache.
  double at_home(const Access& access, double touched, const Cache& cache) const;

  const ScheduledKernel& k_;
  const LevelSchedule& how_;
  const Machine& machine_;
  double run_bytes_;
  std::vector<Nest> nests_; // by stage
  size_t shared_ = 0;       // loops that all stages have
};

double Flow::at_home(const Access& access, double touched, const Cache& cache) const {
  const bool weight = k_.arguments[access.argument].kind == Argument::Kind::Packed;
  const double with = weight ? run_bytes_ : touched;
  return std::clamp(1.5 - with / double(cache.bytes), 0.0, 1.0);
}

bool Flow::is_unfetched(size_t stage, const Access& access) const {
  return k_.arguments[access.argument].kind == Argument::Kind::Packed &&
         k_.stages[stage].kind == StageKind::Reduce &&
         (stage >= how_.stages.size() || how_.stages[stage].weights.empty());
}

// The loops of a stage, outermost first, until below one all that is touched fits; the
// number of loops around that one.
size_t Flow::deepest_unfit(size_t stage, const Cache& cache) const {
  size_t depth = 0;
  auto fits = [&] {
    double sum = nests_[stage].bytes(depth);
    if (depth <= shared_)
      for (size_t other = 0; other < nests_.size(); ++other)
        if (other != stage) sum += nests_[other].bytes(depth);
    return sum <= double(cache.bytes);
  };
  while (depth < nests_[stage].loops.size() && !fits()) ++depth;
  return depth == 0 ? 0 : depth - 1;
}

Moved Flow::into(const Cache& cache) const {
  Moved out;
  for (size_t s = 0; s < nests_.size(); ++s) {
    const Nest& n = nests_[s];
    const size_t from = deepest_unfit(s, cache);
    double runs = 1;
    for (size_t d = 0; d < from; ++d) runs *= n.loops[d].trips;
    for (size_t i = 0; i < n.accesses.size(); ++i) {
      const Access& a = n.accesses[i];
      const double first = n.touched[0][i].bytes;
      // Loops that an access does not follow bring nothing new, but may lose what it had.
      double moved = runs * n.touched[from][i].bytes - first * at_home(a, first, cache);
      moved = std::max(0.0, moved);
      // Beyond the second cache short runs come as slowly as they are looked up.
      const double run = n.touched[n.loops.empty() ? 0 : n.loops.size() - 1][i].run;
      if (&cache != &machine_.first)
        moved *= 1 + machine_.jumps_seen * double(machine_.first.line) / run;
      out.all += moved;
      if (is_unfetched(s, a)) out.unfetched += moved;
    }
  }
  return out;
}

// Positions of the tile whose data lies a multiple of a set's distance apart compete for
// its ways, and are all alike to what fetches ahead. Of the stage that has most.
double Flow::streams() const {
  const auto set = static_cast<double>(machine_.first.set_bytes());
  if (set == 0) return 1;
  double most = 1;
  for (size_t s = 0; s < k_.stages.size(); ++s) {
    if (k_.inner(k_.stages[s]).empty()) continue;
    double sum = 0;
    for (size_t i = 0; i < nests_[s].accesses.size(); ++i) {
      const Access& a = nests_[s].accesses[i];
      // Lines that a step reads whole need not stay.
      if (nests_[s].touched.back()[i].whole) continue;
      double count = 1;
      for (const TileAxis& t : how_.tile) {
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
  const Flow flow(kernel, how, machine, run_bytes);
  Traffic out;
  out.streams = flow.streams();
  out.first = flow.into(machine.first).all;
  if (machine.second.bytes > machine.first.bytes) {
    const Moved moved = flow.into(machine.second);
    out.second = moved.all;
    out.unfetched = moved.unfetched;
  }
  if (machine.last.bytes > machine.second.bytes) out.last = flow.into(machine.last).all;
  return out;
}

} // namespace svod::cost
