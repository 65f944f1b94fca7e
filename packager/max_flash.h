// --max-flash by kernels that are small: all of them first, then those for speed again
// that gain most per byte, as many as fit.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/support/digest.h"
#include "packager/artefact/objects.h"

#include <set>

namespace svod::packager {

struct KernelFacts {
  Digest digest; // as schedules name it
  std::string symbol;
  uint64_t bytes = 0; // of all levels
  double work = 0;    // operations of one inference
};

struct FlashAttempt {
  uint64_t flash = 0;
  std::vector<KernelFacts> kernels;
};

FlashAttempt flash_attempt(const codegen::Kernels& kernels, const ImageContents& contents,
                           const Objects& objects);

// Builds with these kernels for speed and all others for size. Nothing: it failed.
using TryFlash = std::function<std::optional<FlashAttempt>(const std::set<Digest>&)>;

// `asked`: bytes with all kernels as they were asked for. The last attempt is what is
// packed; says what was given up, or that nothing fits. Empty when an attempt failed.
std::string fit_flash(uint64_t most, uint64_t asked, const TryFlash& attempt);

} // namespace svod::packager
