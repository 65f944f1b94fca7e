// Text of kernels for compilers other than Clang.
#pragma once

#include <string>

namespace svod::packager {

// `text` without what is for Clang or for one processor's instructions: conditions that
// are decided leave only the lines they choose, a loop's pragma becomes SVOD_UNROLL or
// SVOD_NO_UNROLL, attributes become macros. What stays of GNU's is taken by gcc and
// clang; with `portable` nothing stays that is not C++20.
std::string plain_text(const std::string& text, bool portable);

} // namespace svod::packager
