// Options for work that several machines share: a remote cache, shares of tuning.
#pragma once

#include "packager/command/option_table.h"

#include <string>

namespace svod::packager {

// Each reads its part and returns what is wrong with it, or nothing.
std::string read_remote(const RawOptions& raw, Options& options);
// Of the verb tune.
std::string read_tune_verb(const RawOptions& raw, Options& options);

} // namespace svod::packager
