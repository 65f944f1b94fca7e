// One random graph as several programs that have to compute the same.
#pragma once

#include "compiler/kernel/schedule_file.h"
#include "compiler/plan/plan.h"
#include "compiler/support/target.h"

#include <string>

namespace svod::test {

// For every kernel that has others, one of the schedules that a search may choose from,
// drawn by `seed`. The target has one level.
ScheduleFile drawn_schedules(const plan::Plan& plan, const Target& target, uint64_t seed);

// What goes wrong when a graph drawn by `seed`, on a level that this machine has, is
// packed with every value stored that may be, by the rules, by the searches for cuts and
// schedules, and with drawn schedules. Empty when all compute what the evaluator does.
std::string check_forms(uint64_t seed);

} // namespace svod::test
