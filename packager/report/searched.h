// What the searches over schedules and over equal graphs did, for -v, --explain and
// --json.
#pragma once

#include "compiler/equal_programs.h"
#include "compiler/search_schedules.h"
#include "packager/report/json.h"

#include <string>
#include <vector>

namespace svod::packager {

// How many were priced, and a line for each kernel that runs otherwise than by the rules.
std::vector<std::string> search_lines(const ScheduleSearch& search);

// The key `search`: {candidates, stop_reason, spilled, changed[{kernel, level, rules_us,
// us}]}. `spilled`: kernels that went back to the rules' schedules, since those found for
// them did not keep to registers.
void write_search(JsonWriter& json, const ScheduleSearch& search, size_t spilled);

// Why each question about equal graphs ended, and what came of it; none where nobody
// searched.
std::vector<std::string> equal_lines(const EqualSearch& equal);

// The key `equal_programs`: {stop_reason, priced, given_us, us, asked[{aim, stop_reason,
// iterations, nodes, classes, priced, places, given_us, us, taken}]}.
void write_equal(JsonWriter& json, const EqualSearch& equal);

} // namespace svod::packager
