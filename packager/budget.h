// --max-ram, --max-flash and --pool: Exit::Budget, and an error, when more is needed.
#pragma once

#include "packager/artefact/objects.h"
#include "packager/report/console.h"

namespace svod::packager {

// Weights, image, kernels and stub.
uint64_t flash_bytes(const ImageContents& contents, const SizeFacts& sizes);

// Of --max-ram for the arena: what the stack takes is known when kernels are compiled.
uint64_t most_arena(const Options& options);

// What lies in the arena where it is fullest, and the kernels that take turns so that it
// is no fuller: a line each.
std::vector<std::string> arena_lines(const plan::Plan& plan);

Exit check_budget(const Options& options, const plan::Plan& plan,
                  const ImageContents& contents, const ArenaBytes& ram,
                  const SizeFacts& sizes, const Console& console);

} // namespace svod::packager
