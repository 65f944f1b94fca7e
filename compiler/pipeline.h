// The table of contents: from a graph to kernels, one function per arrow.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/optimize/schedule_kernel.h"

#include <functional>
#include <map>
#include <string>

namespace svod {

struct Hooks {
  Target target;
  bool small = false; // -Os: bytes before speed
  bool exact = false; // --accuracy exact: no rounding changes beyond the order of sums
  // Called after each stage with its name and its result's text form, when set.
  std::string print_after; // stage name, "all", or empty
  std::function<void(const std::string& stage, const std::string& text)> print;
  std::map<std::string, double> time_ms; // per stage, filled
  // Take the place of what is chosen, where their kernels are met; what became of them.
  const ScheduleFile* schedules = nullptr;
  AppliedSchedules applied;
};

Kernels compile(const Graph& graph, Hooks& hooks);

// Every program of the plan with a schedule for each level of the target. Beyond this
// point nothing is chosen.
struct ScheduledPlan {
  Plan plan;
};
ScheduledPlan schedule(Plan plan, const Target& target);

} // namespace svod
