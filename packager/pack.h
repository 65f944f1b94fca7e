// The whole way from a model file to the output file.
#pragma once

#include "compiler/support/digest.h"
#include "packager/report/console.h"

namespace svod::packager {

Exit pack(const Options& options, const Console& console);
// The key of what a pack with these options would plan, without an artefact.
Exit find_key(const Options& options, const Console& console, Digest& key);

// The verb swap-weights.
Exit swap_weights(const Options& options, const Console& console);

} // namespace svod::packager
