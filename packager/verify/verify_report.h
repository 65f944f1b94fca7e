// The answer of the packed program's --verify as JSON, for --json of the pack.
#pragma once

#include "compiler/support/diags.h"

#include <string>

namespace svod::packager {

// `data`: what was compared with; `said`: what the program printed; `exit`: what the pack
// made of it. Sets with their outputs, each with the numbers of its line.
std::string verify_json(const std::string& data, const std::string& said, Exit exit);

} // namespace svod::packager
