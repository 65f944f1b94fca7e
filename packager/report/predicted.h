// What a pack's kernels are predicted to take, for --explain and --json.
#pragma once

#include "compiler/plan_cost.h"
#include "packager/report/json.h"
#include "packager/report/schedule_account.h"

namespace svod::packager {

// For each CPU level a line per launch, below the first one of each program how it runs
// and what lost, the sum of all, and a line per cliff.
std::string predicted_text(const plan::Plan& plan, const Target& target, int threads,
                           const ScheduleAccounts& accounts);

// The key `predicted`: [{level, threads, total_us, machine, roofs{gflops, memories[{name,
// bytes, gb_per_s}]}, kernels[{name, calls, us, flops, bytes, parts{}, nodes[],
// schedules[{part, by, us, tuned{took, before, unit}, lost[{us, by, differs[]}]}]}],
// cliffs[{name, us, roof_us, nodes[]}]}], in the order of levels and launches. `us`,
// `flops`, `bytes` and `parts` of kernels are of one call, `us` of cliffs of all; those
// of `schedules` are of one thread, and roofs of one core.
void write_predicted(JsonWriter& json, const plan::Plan& plan, const Target& target,
                     int threads, const ScheduleAccounts& accounts);

// {machine, roofs{}} of a CPU level, as above.
void write_machine(JsonWriter& json, const Level& level);

} // namespace svod::packager
