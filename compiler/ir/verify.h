// Checks every invariant of a graph; passes run it on what they make.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// What is wrong, one line per fault; empty for a valid graph.
std::vector<std::string> verify(const Graph& g);

} // namespace svod
