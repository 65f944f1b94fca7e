// A packed model as one C++ file, for cores and compilers that have no target here.
#pragma once

#include "packager/artefact/straight_run.h"
#include "packager/options.h"

namespace svod::packager {

struct SourceFacts {
  const StraightRun& run;
  const Options& options;
};

// None where a kernel is not of our own text; why is in `error`.
std::string source_text(const SourceFacts& facts, std::string& error);

} // namespace svod::packager
