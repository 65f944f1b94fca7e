// What a pack would need and how long a run would take, from the plan alone: nothing is
// compiled.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/artefact/image.h"
#include "packager/options.h"

namespace svod::packager {

struct Estimate {
  size_t kernels = 0;
  uint64_t macs = 0;
  uint64_t arena =
      0; // as the pack will say; the stack is known when kernels are compiled
  uint64_t weights = 0; // exact, too
  uint64_t code = 0;    // of kernels at all levels and of what runs them
  double ms = 0;        // of a run on one core
  std::string machine;  // of that core: a row of machine.def
};

Estimate estimate(const Options& options, const codegen::Kernels& kernels,
                  const ImageContents& contents);

} // namespace svod::packager
