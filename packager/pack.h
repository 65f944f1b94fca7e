// The whole way from a model file to the output file.
#pragma once

#include "packager/report/console.h"

namespace svod::packager {

Exit pack(const Options& options, const Console& console);

} // namespace svod::packager
