// Options that are each right, and do not go with each other or with what is made.
#pragma once

#include "packager/options.h"

#include <string>

namespace svod::packager {

// The first of them that do not, as a text for the user; empty: all do.
std::string option_misfit(const Options& options);

} // namespace svod::packager
