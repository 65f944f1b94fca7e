// --max-ram, --max-flash and --pool: Exit::Budget, and an error, when more is needed.
#pragma once

#include "packager/artefact/objects.h"
#include "packager/report/console.h"

namespace svod::packager {

// Weights, image, kernels and stub.
uint64_t flash_bytes(const ImageContents& contents, const SizeFacts& sizes);

Exit check_budget(const Options& options, const ImageContents& contents,
                  const ArenaBytes& ram, const SizeFacts& sizes, const Console& console);

} // namespace svod::packager
