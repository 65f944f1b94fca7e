// Reads the text form of print.h back. Nodes are interned as written, nothing is folded.
// The type may be left out where it follows from the inputs, and an output's name may be
// left out. A line that starts with '#' is a comment, and so is the rest of a line from
// ';'.
//
// Any text is safe: what is wrong becomes an error in `diags` with its line number, and
// the result is empty. Weights that were printed by digest are looked up in `blobs`.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/support/diags.h"

namespace svod {

std::optional<Graph> parse_graph(std::string_view text, Diags& diags,
                                 const Graph* blobs = nullptr);

} // namespace svod
