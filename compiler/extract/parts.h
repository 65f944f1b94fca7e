// What is to be chosen, in parts that do not touch each other.
#pragma once

#include "compiler/extract/problem.h"

namespace svod::extract {

// Classes with several forms that every choice needs, and the classes that only some
// choices need, through these. No other part reads those.
struct Part {
  std::vector<ClassId> points; // ascending
  std::vector<ClassId> others; // ascending
};

// The smallest first, so that a large one does not take the candidates of all others.
// `together`: classes that belong to one part in any
// case, list by list.
std::vector<Part> find_parts(const Problem& problem, const std::vector<bool>& needed,
                             const std::vector<std::vector<ClassId>>& together);

// The classes that may be read by themselves through some choice: of each class the
// number of its strongly connected component, where that has several classes; else 0.
std::vector<uint32_t> find_loops(const Problem& problem);

} // namespace svod::extract
