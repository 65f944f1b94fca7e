// What a pack chose and did by itself, in words, for -v.
#pragma once

#include "compiler/passes.h"
#include "compiler/rewrite/fixed_point.h"
#include "packager/options.h"

#include <string>
#include <vector>

namespace svod::packager {

// Target, levels with what the compiler is told, threads, cache: a line each.
std::vector<std::string> choices_of(const Options& options);

// How quantisations are made, and which of them may be one step aside.
std::vector<std::string> fixed_point_lines(const rewrite::FixedPointReport& report);
// Runs, time and end of a pass.
std::string pass_line(std::string_view name, const PassRun& run);

} // namespace svod::packager
