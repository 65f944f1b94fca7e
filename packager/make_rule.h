// What --deps writes.
#pragma once

#include "packager/front.h"

namespace svod::packager {

// A rule for Make and Ninja: the files that the output is made of.
std::string make_rule(const Options& options, const Front& front);

} // namespace svod::packager
