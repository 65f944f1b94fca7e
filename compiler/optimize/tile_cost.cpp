// The cost of register tiles: what they load, keep and wait for in a step of a reduction.
#include "compiler/optimize/tile_facts.h"

#include "compiler/kernel/byte_groups.h"
#include "compiler/optimize/choose.h"

#include <algorithm>
#include <set>

namespace svod::optimize {

namespace {

// What a register tile of these counts keeps and loads in one step.
struct Step {
  int points = 1, kept = 0;
  double loads = 0;
  double shuffles = 0; // that the pipes of multiply-adds execute
  int panels = 1;      // of weights
  bool fits = true;
};

} // namespace

// What all steps of the reduction read of a load whose tile slides along an outer loop of
// it, too: written out, it is kept from one of that loop's steps to the next. 0 where the
// steps are too many.
static int64_t kept_patch(const LoadUse& load, const std::vector<int>& counts,
                          int points) {
  if (!load.vector || points * load.all_steps > kWrittenOut) return 0;
  int64_t rows = 1, columns = 1;
  bool slides = false, along = false;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!load.axes[i] || counts[i] == 1) continue;
    slides |= load.far[i].stride > 0;
    along |= load.slides[i].stride > 0;
    (load.far[i].stride > 0 ? rows : columns) *= load.far[i].stride > 0
                                                     ? load.far[i].window(counts[i])
                                                     : load.slides[i].window(counts[i]);
  }
  return slides ? rows * columns * (along ? 1 : int64_t(load.steps)) : 0;
}

// What a panel's vector costs, in multiply-adds of a register: panels of a tile that
// together take more than half of the first cache come from the second one for every tile
// of rows, and half of what that takes longer is hidden.
static double vector_cost(const Machine& m, int64_t bytes) {
  const double load = m.in_fmas(m.loads_per_clock);
  const double farther = m.first.bytes_per_clock / m.second.bytes_per_clock;
  return bytes <= m.first.bytes / 2 ? load : load * (1 + farther) / 2;
}

// What one element for all lanes costs. Rows that lie a multiple of a set's distance
// apart compete for its ways: in 13 rows of 3072 numbers every line was lost to the
// second cache before its next number was read (98 GFLOP/s where 8 rows reached 112).
static double broadcast_cost(const Machine& m, int rivals) {
  const double load = m.in_fmas(m.broadcasts_per_clock);
  const double farther = m.first.bytes_per_clock / m.second.bytes_per_clock;
  return m.first.ways != 0 && rivals > m.first.ways ? load * farther : load;
}

// Vectors of bytes, of which overlapping rows of a window share some: a load and two
// shuffles each.
static void add_interleaved(Step& step, const LoadUse& load,
                            const std::vector<int>& counts, int per_vector) {
  double loaded = 2.0;
  int kept = 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!load.axes[i]) continue;
    const int own = (counts[i] + load.together[i] - 1) / load.together[i];
    kept *= own;
    loaded *= load.windows[i] == 1
                  ? double(own)
                  : double(own + load.windows[i] - 1) / double(load.windows[i]);
  }
  step.loads += loaded * (load.vector ? per_vector : 1);
  step.kept += kept * per_vector;
}

// A load of each of the `distinct` positions that differ in it, in each step or, where
// the steps that are written out share what they read, as often as their window has
// elements.
static void add_load(Step& step, const LoadUse& load, const std::vector<int>& counts,
                     int distinct, const TileFacts& facts) {
  const Machine& machine = facts.level.machine;
  int again = 1, rivals = 1;
  int64_t window = 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!load.axes[i]) continue;
    window *= load.slides[i].window(counts[i]);
    // The first and the last ones are read once.
    again *= facts.few ? counts[i] : int(load.slides[i].window(counts[i]));
    if (load.same_set[i]) rivals *= counts[i];
  }
  const int per_vector = facts.per_load.value_or(facts.per_vector);
  const int registers = load.vector ? per_vector : 1;
  if (load.vector) step.panels = std::max(step.panels, distinct);
  // Steps that are written out share what they load, and keep it as long.
  const bool shared =
      load.vector && window > distinct && step.points * load.steps <= kWrittenOut;
  const double each = load.vector ? vector_cost(machine, distinct * load.bytes)
                                  : broadcast_cost(machine, rivals);
  const double loads =
      registers * (shared ? double(window) / load.steps : double(distinct));
  step.loads += each * loads / load.elements;
  if (load.shuffled) step.shuffles += loads;
  // 6 x 64 reached 99 to 111 GFLOP/s where 14 x 32 reached 111 to 115.
  const int crowd = load.bytes > 0 ? std::max(0, distinct - machine.free_streams) : 0;
  step.loads += 0.25 * crowd * crowd;
  if (load.elements > 1)
    step.kept += distinct;
  else if (shared)
    step.kept += again * per_vector;
  else if (load.vector && distinct < step.points)
    step.kept += distinct * per_vector;
}

// Bytes that all lanes share: registers of four groups each, from the first step that
// takes one of them to the last.
static void add_groups(Step& step, const LoadUse& load, const std::vector<int>& counts,
                       const TileFacts& facts) {
  const WrittenSteps written = written_steps(facts.kernel, step.points, kWrittenOut);
  std::vector<int64_t> offsets;
  for (const WrittenStep& s : written.steps)
    for (int p = 0; p < step.points; ++p) {
      int64_t offset = s.offset;
      for (size_t i = 0, rest = static_cast<size_t>(p); i < counts.size(); ++i) {
        const auto count = static_cast<size_t>(counts[i]);
        offset += static_cast<int64_t>(rest % count) * load.apart[i];
        rest /= count;
      }
      offsets.push_back(offset);
    }
  const GroupLoads found = cover_groups(offsets);
  const auto steps = written.steps.size(), points = offsets.size() / steps;
  std::vector<size_t> first(found.loads.size(), steps), last(found.loads.size(), 0);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t at = found.uses[i].load;
    first[at] = std::min(first[at], i / points);
    last[at] = std::max(last[at], i / points);
  }
  int most = 0;
  for (size_t s = 0; s < steps; ++s) {
    int alive = 0;
    for (size_t i = 0; i < first.size(); ++i) alive += first[i] <= s && s <= last[i];
    most = std::max(most, alive);
  }
  step.loads +=
      vector_cost(facts.level.machine, 0) * double(found.loads.size()) / double(steps);
  step.kept += most;
  // Groups of two steps and of two positions come together by a shuffle each, and those
  // of lanes stay until all positions have met them.
  if (facts.matrices) {
    const int pairs = step.points / 2;
    step.shuffles = facts.per_vector + pairs;
    step.kept += facts.per_vector;
  }
}

static int distinct_of(const LoadUse& load, const std::vector<int>& counts) {
  int distinct = 1;
  for (size_t i = 0; i < counts.size(); ++i)
    if (load.axes[i]) distinct *= counts[i];
  return distinct;
}

// Each operand is read once for the positions that share it; of vectors, all but the one
// that is just being multiplied stay.
static Step scalar_step(const TileFacts& facts, const std::vector<int>& counts) {
  Step step;
  for (int count : counts) step.points *= count;
  int kept = 0;
  for (const LoadUse& load : facts.loads) {
    const int registers = load.vector ? facts.per_vector : 1;
    const int distinct = distinct_of(load, counts);
    step.loads += double(distinct) * registers * facts.scalars->load;
    kept = std::max(kept, distinct < step.points ? distinct * registers : 1);
    step.kept += 1;
  }
  step.kept += kept - 1;
  const double registers = step.points * facts.per_vector * facts.scalars->sums +
                           step.kept * facts.scalars->kept;
  step.fits = step.points == 1 || registers <= facts.registers;
  return step;
}

// The places where each number is a multiple of its stride, of at most so many.
static std::set<int64_t> distinct_places(const std::vector<int>& counts,
                                         const std::vector<int64_t>& strides) {
  std::set<int64_t> places = {0};
  for (size_t i = 0; i < counts.size(); ++i) {
    std::set<int64_t> more;
    for (int64_t place : places)
      for (int n = 0; n < counts[i]; ++n) more.insert(place + n * strides[i]);
    places = std::move(more);
  }
  return places;
}

// Steps that are taken together read what they share once. The weights of a register stay
// for all positions, and where sums have further ones, what all lanes share stays for
// those; else one register is enough of it, or two of two groups each.
static Step halves_step(const TileFacts& facts, const std::vector<int>& counts) {
  Step step;
  for (int count : counts) step.points *= count;
  const std::vector<int>& together = facts.halves->together;
  int steps = 1;
  for (int count : together) steps *= count;
  std::vector<int> all = counts;
  all.insert(all.end(), together.begin(), together.end());
  const int quads = facts.per_vector / 2;
  int kept = facts.halves->kept;
  for (const LoadUse& load : facts.loads) {
    std::vector<int64_t> strides = load.strides;
    strides.insert(strides.end(), load.step_strides.begin(), load.step_strides.end());
    const std::set<int64_t> places = distinct_places(all, strides);
    const auto distinct = static_cast<int>(places.size());
    const size_t loads = load.shared
                             ? cover_pairs({places.begin(), places.end()}).loads.size()
                             : places.size();
    step.loads += double(loads) * (load.vector ? quads : 1) / steps;
    if (load.vector || quads > 1)
      kept += distinct;
    else
      kept += load.shared ? facts.halves->shared : 1;
  }
  step.kept = kept;
  step.fits =
      step.points == 1 || step.points * facts.per_vector + kept <= facts.registers;
  return step;
}

static Step step_of(const TileFacts& facts, const std::vector<int>& counts) {
  if (facts.scalars) return scalar_step(facts, counts);
  if (facts.halves) return halves_step(facts, counts);
  Step step;
  for (int count : counts) step.points *= count;
  for (const LoadUse& load : facts.loads) {
    const int distinct = distinct_of(load, counts);
    step.fits &= distinct <= load.streams;
    if (load.grouped) {
      if (step.points * facts.per_vector > facts.registers) return {.fits = false};
      add_groups(step, load, counts, facts);
    } else if (load.held) {
      // Two registers: what is made of it takes one, too.
      step.kept += 2 * distinct * facts.per_vector;
    } else if (load.interleaved) {
      add_interleaved(step, load, counts, facts.per_vector);
    } else if (const int64_t patch = kept_patch(load, counts, step.points); patch > 0) {
      const int registers = load.vector ? facts.per_vector : 1;
      step.loads += registers * double(patch) / load.all_steps;
      step.kept += static_cast<int>(patch) * facts.per_vector;
    } else {
      add_load(step, load, counts, distinct, facts);
    }
  }
  step.fits &= step.points == 1 ||
               step.points * facts.per_vector + step.kept + 1 <= facts.registers;
  return step;
}

static double narrow_cost(const std::vector<int>& counts, const TileFacts& facts) {
  if (!facts.bytes) return 0;
  int points = 1;
  for (int count : counts) points *= count;
  const int row = counts[*facts.bytes], rest = row % 4, fours = row / 4;
  const int rows = points / row;
  return rows * (fours * kNarrowFour + rest * kNarrowOne) / facts.steps;
}

// Fewer sums than hide the latency of a multiply-add wait for half of what is missing.
// Lines beyond those that are stored beside the multiplications of the next tile wait:
// products of 16 steps reached 114 GFLOP/s by 4 x 64, 106 by 14 x 32.
static double step_cost(const Step& step, const TileFacts& facts) {
  const Machine& m = facts.level.machine;
  // Two positions that meet the same weights take one instruction for each register of
  // their sums.
  const int positions = step.points / step.panels;
  const int products =
      facts.matrices ? step.panels * (positions / 2 + positions % 2) : step.points;
  const double work = products * facts.per_vector + step.shuffles;
  if (facts.scalars) return work * facts.scalars->product + step.loads;
  if (facts.halves) {
    double steps = 1;
    for (int count : facts.halves->together) steps *= count;
    return work * (1 + 1 / steps) + step.loads;
  }
  const double latency = std::max(0.0, m.sums_in_flight - work) * 0.5;
  const double register_bytes = facts.level.register_bits / 8.0;
  const double lines = work * register_bytes / double(m.first.line);
  return std::max(work, step.loads) + 0.15 * step.loads + latency +
         facts.across.cost(step.points) * facts.per_vector +
         m.stored_line_wait * std::max(0.0, lines - m.stored_lines) / facts.steps;
}

// The cost of all positions from the candidate `next` on, by position: whole tiles, the
// rest of an axis as a tile of its own, and what lies apart.
static double tiles_cost(const TileFacts& facts, const std::vector<int>& whole,
                         size_t next, std::vector<int>& counts) {
  if (next == facts.candidates.size())
    return step_cost(step_of(facts, counts), facts) + narrow_cost(counts, facts);
  const int count = whole[next];
  const auto& [axis, extent, apart] = facts.candidates[next];
  const auto rest = static_cast<int>((extent - apart) % count);
  const int64_t tiles = (extent - apart) / count;
  double cost = 0;
  auto add = [&](int size, int64_t times) {
    if (size == 0 || times == 0) return;
    counts[next] = size;
    cost += double(times) * tiles_cost(facts, whole, next + 1, counts);
  };
  add(count, tiles + (count == 1 ? apart : 0));
  add(rest, 1);
  if (count != 1) add(1, apart);
  counts[next] = count;
  return cost / double(extent);
}

double tile_cost(const TileFacts& facts, const std::vector<int>& counts) {
  if (!step_of(facts, counts).fits) return 1e30;
  std::vector<int> part = counts;
  return tiles_cost(facts, counts, 0, part);
}

} // namespace svod::optimize
