// What a kernel costs: its predicted time on one core, or several, of a machine row.
//
//   Level level = target.levels[2];
//   KernelCost c = cost_of(kernel, kernel.levels[2], level, {.run_bytes = 30e6});
//
// The constants are columns of machine.def; counts come from the kernel and its schedule.
// docs/search.md tells how well it predicts and how that is measured.
#pragma once

#include "compiler/kernel/schedule.h"
#include "compiler/support/target.h"

#include <string_view>

namespace svod::cost {

// What a kernel runs among.
struct Surroundings {
  double run_bytes =
      0; // that a run touches between two launches of it: weights and values
  int threads = 1;
};

// Seconds. The parts are what each would take alone; they overlap, so `total` is less
// than their sum.
struct KernelCost {
  double total = 0;
  double products = 0;   // multiply-adds
  double operations = 0; // all arithmetic
  double quotients = 0;  // divisions and roots
  double loads = 0, stores = 0;
  double issue = 0;  // of all instructions, as many as the core starts in a clock
  double waits = 0;  // sums that wait for themselves, loops that begin and end
  double spills = 0; // values that registers have no room for
  double second = 0; // bytes from the second cache, the last one, and memory
  double last = 0;
  double memory = 0;
  double launch = 0, fork_join = 0;

  KernelCost& operator+=(const KernelCost& other);
  friend KernelCost operator*(KernelCost cost, double times);
};

// Of one launch. `how` is one of the kernel's levels, or what it may become; `level` the
// instruction set with the machine's row. A sequence costs what its parts do under one
// launch, a call of the user's function what its tensors' bytes do.
KernelCost cost_of(const ScheduledKernel& kernel, const LevelSchedule& how,
                   const Level& level, const Surroundings& around);

struct Part {
  std::string_view name;
  double seconds = 0;
};
// All of them, named.
std::vector<Part> parts_of(const KernelCost& cost);
// A line: total and parts in microseconds, those that matter.
std::string print(const KernelCost& cost);

} // namespace svod::cost
