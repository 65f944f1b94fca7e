// Codes of messages, from codes.def.
#pragma once

#include "compiler/support/diags.h"

#include <string_view>

namespace svod::packager {

// Of a message of this severity in a run that ends, or for an error would end, with
// `exit`.
std::string_view code_of(Severity severity, Exit exit, std::string_view text);

} // namespace svod::packager
