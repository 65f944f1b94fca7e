// What stays from run to run, once it is known which node each output is.
#pragma once

#include "compiler/ir/graph.h"

namespace svod::rewrite {

// A cache that grows by a row lies in memory with room behind it, which no other output
// has. So where its output is also another one, or an input as it is, the output becomes
// what the next run reads of it.
void settle_states(Graph& graph);

} // namespace svod::rewrite
