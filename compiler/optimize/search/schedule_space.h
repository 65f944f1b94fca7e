// Other schedules that a kernel may have on one CPU level, by what they are predicted to
// cost. The rules' own schedule is where the search starts; it is never among them.
//
//   for (const ScheduleCandidate& c : level_candidates(kernel, chosen, level, around, 8))
//     ...
#pragma once

#include "compiler/optimize/cost/cost.h"

#include <cstddef>
#include <vector>

namespace svod::optimize {

// How many schedules may still be priced.
struct SearchBudget {
  size_t left = SIZE_MAX;
};

struct ScheduleCandidate {
  LevelSchedule schedule;
  double seconds = 0; // predicted, of one launch
  // Where they are not the kernel's: all levels would have these.
  std::optional<Loops> loops = std::nullopt;
};

// At most `most` schedules that fit the kernel (kernel/fit.h), each of them once, the
// least predicted time first. `chosen` is the schedule that the rules gave it on `level`.
// Varied are the register tile, with what the rules make of it, and, for the best tiles,
// one choice at a time: vectors of sums, what is written out, what is fetched ahead,
// squares, loops over an array, ends of axes. Vectors and forms of products stay: they
// are what the kernel was lowered for. Nothing for calls and sequences, whose parts ask
// for themselves. With the budget spent the schedules priced until then are all.
std::vector<ScheduleCandidate> level_candidates(const ScheduledKernel& kernel,
                                                const LevelSchedule& chosen,
                                                const Level& level,
                                                const cost::Surroundings& around,
                                                size_t most, SearchBudget& budget);

} // namespace svod::optimize
