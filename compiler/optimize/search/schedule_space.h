// Other schedules of a kernel than the one chosen by rule.
#pragma once

#include "compiler/optimize/cost/cost.h"

namespace svod::optimize {

struct ScheduleCandidate {
  LevelSchedule schedule;
  double seconds = 0; // predicted, of one launch
};

// At most `most` other schedules that fit, least predicted time first. Equal times are in
// the order in which they are listed, so the answer is the same everywhere.
std::vector<ScheduleCandidate>
level_candidates(const ScheduledKernel& kernel, const LevelSchedule& chosen,
                 const Level& level, const cost::Surroundings& around, size_t most);

} // namespace svod::optimize
