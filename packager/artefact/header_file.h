// The C header of a packed library: INTERFACE's macros and functions under the user's
// prefix.
#pragma once

#include "packager/artefact/image.h"

#include <string>

namespace svod::packager {

struct HeaderFacts {
  std::string prefix; // "infer": checked, an identifier
  const ImageContents* contents = nullptr;
  ArenaBytes arena; // all that infer_run needs
  uint64_t stack_bytes = 0;
};

std::string header_text(const HeaderFacts& facts);

} // namespace svod::packager
