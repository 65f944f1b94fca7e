// What --output, --emit and --target say must agree.
#pragma once

#include "packager/options.h"

namespace svod::packager {

// What is wrong about it, or nothing. `emit_given`: --emit says what is made, and the
// output's name says nothing.
std::string output_fault(const Options& options, bool emit_given);

} // namespace svod::packager
