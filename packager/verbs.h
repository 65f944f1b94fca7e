// The small commands beside packing.
#pragma once

#include "packager/console.h"

namespace svod::packager {

Exit check_verb(const Options& options, const Console& console);
Exit key_verb(const Options& options, const Console& console);
Exit ops_verb(const Options& options, const Console& console);
Exit cache_verb(const Options& options, const Console& console);
Exit doctor_verb(const Options& options, const Console& console);

} // namespace svod::packager
