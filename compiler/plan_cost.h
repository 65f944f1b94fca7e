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
};

struct PlanCost {
  cost::KernelCost total;
  std::vector<LaunchCost> launches; // in the plan's order
};

// On one of the target's levels, by its number. Every program has its levels. Launches
// that take turns or run part by part count as if they came one after the other.
PlanCost cost_of(const plan::Plan& plan, const Target& target, size_t level, int threads);

// A line per launch: program, times, microseconds with their parts, ONNX nodes; the sum.
std::string print(const PlanCost& cost, const plan::Plan& plan);

} // namespace svod
