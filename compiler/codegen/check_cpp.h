// Refuses emitted C++ that could do more than compute: a second pair of eyes on the
// emitter.
#pragma once

#include "compiler/support/freestanding.h"

#include <string>
#include <vector>

namespace svod::codegen {

// What is wrong, one line each, with line and column; empty when the text is accepted.
// Refused: text that does not compile; a call of a function the text does not define
// (builtins excepted), or through a pointer; a variable that is writable and outlives a
// call; inline assembly; an #include of anything but `headers` and the freestanding ones.
std::vector<std::string> check_cpp(const std::string& text,
                                   const std::vector<std::string>& flags = {},
                                   const std::vector<SourceFile>& headers = {});

} // namespace svod::codegen
