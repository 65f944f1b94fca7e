// Schedules of a plan's kernels by predicted cost, where the rules' are predicted to be
// far from the best.
#pragma once

#include "compiler/optimize/search/schedule_space.h"
#include "compiler/plan/plan.h"
#include "compiler/support/target.h"

#include <map>
#include <set>

namespace svod {

// A kernel that got another schedule than the rules' on one level.
struct ChangedSchedule {
  uint32_t program = 0;
  Digest kernel; // the program, or a part of it
  std::string level;
  double rules = 0, seconds = 0; // predicted, of one launch
};

// What the choice for a kernel on one level was made from.
struct PricedSchedules {
  optimize::ScheduleCandidate rules;             // with its loops
  std::vector<optimize::ScheduleCandidate> best; // of the others, the cheapest first
  std::optional<optimize::ScheduleCandidate> other_loops = {}; // the cheapest of these
};

struct ScheduleSearch {
  size_t priced = 0;
  bool out_of_budget = false;
  std::vector<ChangedSchedule> changed;
  // By the kernel, a program or a part of it, and the level's suffix; none where the
  // budget had ended.
  std::map<std::pair<Digest, std::string>, PricedSchedules> considered;
};

// What the search takes kernels of a plan to run among.
cost::Surroundings searched_among(const plan::Plan& plan);

// At most `candidates` schedules are priced, those of the kernels that take most of a run
// first; so the answer is the same on any machine. Each program has the rules' schedules
// for all of the target's levels. `kept`: kernels whose schedules stay as they are.
ScheduleSearch search_schedules(plan::Plan& plan, const Target& target, size_t candidates,
                                const std::set<Digest>& kept = {});

} // namespace svod
