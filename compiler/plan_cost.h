// What a run of a plan costs: the sum over its launches.
#pragma once

#include "compiler/optimize/cost/cost.h"
#include "compiler/plan/plan.h"

namespace svod {

struct LaunchCost {
  uint32_t program = 0;
  int64_t times = 1;            // in a run
  std::vector<int32_t> sources; // into graph.source_names()
  cost::KernelCost each;
  double flops = 0, bytes = 0; // of one launch; what is read and written once
};

struct PlanCost {
  cost::KernelCost total;
  std::vector<LaunchCost> launches; // in the plan's order
};

// On one of the target's levels, by its number. Every program has its levels. Launches
// that take turns or run part by part count as if they came one after the other.
PlanCost cost_of(const plan::Plan& plan, const Target& target, size_t level, int threads);

// The most that one core of a level does: operations per ns, and bytes per ns out of each
// memory. `bytes` is what fits into it; 0: all.
struct Roofs {
  struct Memory {
    const char* name;
    double bytes, bytes_per_ns;
  };
  double flops_per_ns = 0;
  std::vector<Memory> memories; // the nearest first; none twice
};
Roofs roofs_of(const Level& level);

// A program whose launches take a hundredth of a run or more, and ten times as long as
// they would if the core multiplied and added, or moved what they read and write in the
// nearest memory that holds it, as fast as it can: a loop is far from what the core is
// made for.
struct Cliff {
  uint32_t program = 0;
  double seconds = 0, roof = 0; // of all launches; the roof has what a launch takes
  std::vector<int32_t> sources; // into graph.source_names()
};
// The costliest first. `cost` is that of the level.
std::vector<Cliff> cliffs_of(const PlanCost& cost, const Level& level);

// A line per launch: program, times, microseconds with their parts, ONNX nodes; the sum.
// `below` gives what stands below the line of a launch, by its number.
std::string print(const PlanCost& cost, const plan::Plan& plan,
                  const std::function<std::string(size_t)>& below = {});

} // namespace svod
