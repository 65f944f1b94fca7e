// What a pack's kernels are predicted to take, for --explain and --json.
#pragma once

#include "compiler/plan_cost.h"
#include "packager/report/json.h"

namespace svod::packager {

// For each CPU level a line per launch, their sum, and a line per cliff.
std::string predicted_text(const plan::Plan& plan, const Target& target, int threads);

// The key `predicted`: [{level, threads, total_us, kernels[{name, calls, us, parts{},
// nodes[]}], cliffs[{name, us, roof_us, nodes[]}]}], in the order of levels and launches.
// `us` and `parts` of kernels are of one call, those of cliffs of all.
void write_predicted(JsonWriter& json, const plan::Plan& plan, const Target& target,
                     int threads);

} // namespace svod::packager
