// Sizes that a run decides (--dim) are bounds in the graph, and what lies behind a size
// is computed with and masked. Much of it nobody needs: rows that no output has, keys
// that a mask hides. Loops end in front of it, so that a run costs what its sizes do.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod::select {

// Gives loops over what a run may not need their ends (Kernel::ends).
void find_run_ends(FusedGraph& fused);

} // namespace svod::select
