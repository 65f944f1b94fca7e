// The decoders as the beginning of a call's text.
#pragma once

#include <string>

namespace svod::importer {

// All of them, in a namespace that is still open. Nothing in it has a name outside:
// kernels of several CPU levels are linked together.
std::string decoders_text();
// And what makes a picture of a given size of one that is decoded.
std::string preparation_text();

} // namespace svod::importer
