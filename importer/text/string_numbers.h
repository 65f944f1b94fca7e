// Numbers as text and text as numbers.
#pragma once

#include "importer/text/strings.h"

namespace svod::importer {

// A tensor of numbers as strings: integers in decimal, bool as 0 and 1; floats with the
// fewest digits that read back as the same value, as 0.1, 1e+16, 1e-05, nan, inf.
Expr number_strings(const NodeImport& node, Expr x);
// The numbers that strings spell: decimal with an exponent, nan, inf, infinity, whatever
// the case, white space around it; for bool also true and false. A run with another
// string stops. Integers saturate.
Expr numbers_of_strings(const NodeImport& node, Expr strings, DType to);

} // namespace svod::importer
