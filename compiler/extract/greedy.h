// The first bound, and what the search reads of a problem.
#pragma once

#include "compiler/extract/problem.h"

namespace svod::extract {

// Of each class the least sum of the costs of a tree of forms, cut at kMostCost: what is
// shared counts as often as it is read. kNever where every form reads itself.
inline constexpr int64_t kMostCost = int64_t{1} << 60, kNever = int64_t{1} << 61;
struct Trees {
  std::vector<int64_t> cost; // by class
  Choice choice;             // without cycles
};
Trees cheapest_trees(const Problem& problem);

// The problem without forms that no best choice needs: those that read themselves, that
// cannot be had without a cycle, and those of which another form reads no class more and
// costs less, or no more and comes first. `kept[c]` are the numbers of the forms left.
Problem without_useless(const Problem& problem, const Trees& trees,
                        std::vector<std::vector<uint32_t>>& kept);

// The classes that every choice needs, and those that cost nothing beside them, as views
// and constants do: whether they are needed changes no cost.
std::vector<bool> always_needed(const Problem& problem);

} // namespace svod::extract
