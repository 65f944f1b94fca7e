// What the indices of a lowered kernel say about better axes.
#pragma once

#include "compiler/kernel/lowered.h"

namespace svod {

// Adjacent root axes that every access crosses as one: looping over them together makes
// long vectors of short rows.
std::set<int64_t> find_merges(const Group& group, const Lowered& lowered,
                              const Shape& shape);
// The same among the axes that the base reduces.
std::set<int64_t> find_inner_merges(const Graph& g, const Group& group,
                                    const Lowered& lowered);

// One more split that turns quotients and remainders of a single axis into plain axes;
// false when there is none left.
bool refine_splits(const Lowered& lowered, LowerSpec& spec);

} // namespace svod
