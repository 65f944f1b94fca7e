// Graph -> FusedGraph: which values share a kernel, how stored values lie in memory, and
// how each kernel's loops run.
#pragma once

#include "compiler/passes.h"
#include "compiler/select/assign_layouts.h"
#include "compiler/select/forms/algorithms.h"
#include "compiler/select/search_cut.h"

namespace svod {

// Rounds after which the cut is taken as it is. Each round answers requests of the one
// before; models take two, few three.
inline constexpr int kMostCutRounds = 5;

// `forms`: what may compute a contraction; as written keeps rounding and weights as they
// are. `rows_first`: of the fused graph's nodes, which are the same each time.
// `cut_search`: its budget is of all cuts that are priced; none: the rules' cut is taken.
FusedGraph fuse(const Graph& graph, const Target& target,
                const select::FormOptions& forms, Passes& passes,
                const select::RowsFirst& rows_first = {},
                const select::CutSearchOptions& cut_search = {});
FusedGraph fuse(const Graph& graph, const Target& target,
                const select::FormOptions& forms = {});

} // namespace svod
