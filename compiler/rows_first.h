// Which pictures lie with their rows outermost, so that kernels can take turns over them.
#pragma once

#include "compiler/pipeline.h"

namespace svod {

// None where that makes the arena no smaller. `fused`: the graph as it is without.
select::RowsFirst choose_rows_first(const Graph& simple, const FusedGraph& fused,
                                    const Target& target, bool direct_only,
                                    const plan::PlanOptions& options);

} // namespace svod
