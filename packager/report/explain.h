// What a pack chose and did by itself, in words, for -v.
#pragma once

#include "compiler/passes.h"
#include "packager/options.h"

#include <string>
#include <vector>

namespace svod::packager {

// Target, levels with what the compiler is told, threads, cache: a line each.
std::vector<std::string> choices_of(const Options& options);

// Runs, time and end of a pass.
std::string pass_line(std::string_view name, const PassRun& run);

} // namespace svod::packager
