// Other loops that a kernel may have: what all levels share, so another order or other
// chunks change how each of them runs. And vectors of other lengths, which one level has
// by itself but for which all of its schedule is chosen anew.
//
//   for (const ScheduleCandidate& c : kernel_candidates(kernel, chosen, level, around,
//                                                       false, 8, budget))
//     ...
#pragma once

#include "compiler/optimize/search/schedule_space.h"

namespace svod::optimize {

// Outer loops in other orders, those of sums in other orders, and, for several threads,
// chunks of other sizes and along other axes. Lanes, dots, and the parts of a chain stay:
// they are what the kernel was lowered for. Nothing where what is written depends on the
// order: kernels that scatter, or that read what they write.
std::vector<Loops> other_loops(const ScheduledKernel& kernel, int threads);

// At most `most` schedules of one level with other loops or vectors than the `chosen`
// one, which fit the kernel, each of them once, the least predicted time first: by the
// rules' choices for these loops and vectors, and, for the best of them, by those of
// level_candidates. `joined`: it is a part of a sequence, whose vectors have one length.
std::vector<ScheduleCandidate>
kernel_candidates(const ScheduledKernel& kernel, const LevelSchedule& chosen,
                  const Level& level, const cost::Surroundings& around, bool joined,
                  size_t most, SearchBudget& budget);

} // namespace svod::optimize
