// Strings cut into parts.
#pragma once

#include "importer/text/strings.h"

namespace svod::importer {

// The parts of each row, u8[n, parts, width], and how many there are, i32[n]. A
// run in which a row has more stops.
struct SplitRows {
  Expr parts, counts;
};

// At each occurrence of the separator from left to right, at most `most` times.
SplitRows split_at(const NodeImport& node, Expr rows, const std::string& separator,
                   int64_t most, int64_t parts);
// At runs of white space, none at the ends, at most `most` times.
SplitRows split_at_space(Expr rows, int64_t most, int64_t parts);
// The parts that begin where `begins`, i32[n, width], is 1 and go on as far as `inside`;
// u8[n, parts, width].
Expr parts_of(Expr rows, Expr begins, Expr inside, int64_t parts);
// What the first two do, for strings known when packing.
std::vector<std::string> split_text(const std::string& text, const std::string& separator,
                                    int64_t most);

} // namespace svod::importer
