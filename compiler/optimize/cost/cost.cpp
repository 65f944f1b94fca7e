// Each part of a core works at its own rate and all of them side by side, so a kernel
// takes what its busiest part does and a share of what the others do; likewise memory
// beside instructions. The shares are fitted, all else is counted.
#include "compiler/optimize/cost/cost.h"

#include "compiler/optimize/cost/instructions.h"
#include "compiler/optimize/cost/traffic.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace svod::cost {

KernelCost& KernelCost::operator+=(const KernelCost& o) {
  total += o.total;
  products += o.products, operations += o.operations, quotients += o.quotients;
  spills += o.spills, loads += o.loads, stores += o.stores, issue += o.issue,
      waits += o.waits;
  second += o.second, last += o.last, memory += o.memory;
  launch += o.launch, fork_join += o.fork_join;
  return *this;
}

KernelCost operator*(KernelCost c, double n) {
  for (double* part :
       {&c.total, &c.products, &c.operations, &c.quotients, &c.loads, &c.stores, &c.issue,
        &c.waits, &c.spills, &c.second, &c.last, &c.memory, &c.launch, &c.fork_join})
    *part *= n;
  return c;
}

// The greatest part, and a share of the others.
static double side_by_side(std::initializer_list<double> parts, double seen) {
  double most = 0, sum = 0;
  for (double part : parts) most = std::max(most, part), sum += part;
  return most + seen * (sum - most);
}

// Clocks of each part of a core.
static KernelCost clocks_of(const Instructions& i, const Level& level) {
  const Machine& m = level.machine;
  // A register narrower than the core's is one of several that start side by side.
  const double wide = 16 * m.flops_per_clock / m.fmas_per_clock;
  const double narrow =
      std::clamp(wide / std::max(32, level.register_bits), 1.0, m.narrow_at_once);
  KernelCost out;
  out.products = i.products / (m.fmas_per_clock * narrow);
  out.operations = (i.products + i.operations) / (m.operations_per_clock * narrow);
  out.quotients = i.quotients / m.quotients_per_clock;
  out.loads =
      i.loads / (m.loads_per_clock * narrow) + i.elements / m.broadcasts_per_clock;
  out.stores = std::max(i.stored / m.stored_per_clock, i.stores / m.stores_per_clock);
  out.issue = i.issued() / m.instructions_per_clock;
  out.waits = std::max(0.0, i.waited) + m.nest_clocks * i.nests;
  out.spills = m.spill_clocks * i.spills;
  return out;
}

static bool is_shared(const ScheduledKernel& k, const Machine& m, int threads) {
  return threads > 1 && m.fork_join_ns > 0 && k.chunk_count() > 1;
}

// Of the chunks, what the busiest thread has.
static double share_of(const ScheduledKernel& k, int threads) {
  const auto chunks = double(k.chunk_count());
  return std::ceil(chunks / threads) / chunks;
}

// What runs at a launch: the kernel itself, its level's lanes cut.
static KernelCost work_cost(const ScheduledKernel& whole, const LevelSchedule& how,
                            const Level& level, const Surroundings& around) {
  const Machine& m = level.machine;
  std::optional<ScheduledKernel> cut;
  if (whole.has_lane_axis() && how.lanes < whole.loops.lanes)
    cut = cut_lanes(whole, whole.loops.lanes / how.lanes);
  const ScheduledKernel& k = cut ? *cut : whole;
  const double second_of_clock = 1e-9 / m.clock_ghz;
  KernelCost out = clocks_of(instructions_of(k, how, level), level);
  const Traffic moved = traffic_of(k, how, m, around.run_bytes);
  for (double* part : {&out.products, &out.operations, &out.quotients, &out.loads,
                       &out.stores, &out.issue, &out.waits, &out.spills})
    *part *= second_of_clock;
  const double crowd = std::clamp(moved.streams - m.free_streams, 0.0, 16.0);
  const double slower = 1 + m.streams_seen * crowd;
  out.second = slower * moved.first / m.second.bytes_per_clock * second_of_clock;
  out.last = slower * moved.second / m.last.bytes_per_clock * second_of_clock;
  out.memory = slower * moved.last / m.memory_bytes_per_ns * 1e-9;
  const double core = side_by_side({out.products, out.operations, out.quotients,
                                    out.loads, out.stores, out.issue, out.waits},
                                   m.ports_seen) +
                      out.spills;
  const bool shared = is_shared(whole, m, around.threads);
  const double share = shared ? share_of(whole, around.threads) : 1;
  // Threads have ports and near caches of their own, and one memory.
  out.total = side_by_side(
      {core * share, out.second * share, out.last * share, out.memory}, m.caches_seen);
  // Weights that nobody fetches ahead are waited for.
  out.total += m.unfetched_seen * slower * share * moved.unfetched /
               m.last.bytes_per_clock * second_of_clock;
  if (shared) out.fork_join = m.fork_join_ns * 1e-9;
  out.total += out.fork_join;
  return out;
}

static const LevelSchedule& level_of(const ScheduledKernel& k, const LevelSchedule& how) {
  const auto found = std::ranges::find(k.levels, how.level, &LevelSchedule::level);
  SVOD_CHECK(found != k.levels.end()) << "a part without level " << how.level;
  return *found;
}

KernelCost cost_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                   const Level& level, const Surroundings& around) {
  KernelCost out;
  if (const Sequence* sequence = kernel.sequence()) {
    // Launches inside of loops of known length come again.
    std::vector<double> times = {1};
    for (const SequenceStep& step : sequence->steps) {
      if (step.kind == SequenceStep::Kind::Loop)
        times.push_back(times.back() * double(step.count));
      if (step.kind == SequenceStep::Kind::End) times.pop_back();
      if (step.kind != SequenceStep::Kind::Launch) continue;
      const ScheduledKernel& part = sequence->parts[step.part];
      const KernelCost each = work_cost(part, level_of(part, how), level, around);
      out += each * times.back();
    }
  } else if (!kernel.call()) {
    out = work_cost(kernel, how, level, around);
  }
  out.launch = level.machine.launch_ns * 1e-9;
  out.total += out.launch;
  return out;
}

std::vector<Part> parts_of(const KernelCost& cost) {
  return {{"products", cost.products},   {"operations", cost.operations},
          {"quotients", cost.quotients}, {"loads", cost.loads},
          {"stores", cost.stores},       {"issue", cost.issue},
          {"waits", cost.waits},         {"spills", cost.spills},
          {"second_cache", cost.second}, {"last_cache", cost.last},
          {"memory", cost.memory},       {"launch", cost.launch},
          {"fork_join", cost.fork_join}};
}

std::string print(const KernelCost& cost) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f us:", cost.total * 1e6);
  std::string out = text;
  for (const Part& part : parts_of(cost)) {
    if (part.seconds < 0.05 * cost.total) continue;
    std::snprintf(text, sizeof(text), " %.3f", part.seconds * 1e6);
    out += " " + std::string(part.name) + text;
  }
  return out;
}

} // namespace svod::cost
