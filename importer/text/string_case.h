// Letters in upper or lower case: the simple mappings of Unicode, one character to one,
// whatever the language. Bytes that are no UTF-8 stay as they are.
#pragma once

#include "importer/text/strings.h"

namespace svod::importer {

enum class LetterCase { Lower, Upper };

std::string in_case(const std::string& text, LetterCase to);
// Rows half as wide again where a mapped character may need more bytes.
Expr rows_in_case(Expr rows, LetterCase to);

} // namespace svod::importer
