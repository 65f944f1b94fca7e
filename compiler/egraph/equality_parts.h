// The conditions and helper functions that the rows of equalities.def name.
// NOLINTBEGIN(readability-identifier-naming)
#pragma once

#include "compiler/rewrite/rule_parts.h"

namespace svod::egraph {

// The root sum has more terms than results.
extern const rewrite::Condition few_results;

// Sums over the axes of z and of the root (equalities_sums.cpp).
extern const rewrite::pattern::Helper sum_of_both, sums_of_each;
// A factor after or before the sum; kNoNode where it changes along the summed axes.
extern const rewrite::pattern::Helper sum_then_scale, scale_then_sum;
// The root sum, over an axis cut in two and then over the parts.
extern const rewrite::pattern::Helper sum_of_parts;
// The root view of x, times the factor; the view y of x times the factor
// (equalities_views.cpp).
extern const rewrite::pattern::Helper view_then_scale, view_of_scaled;
// The map y over the root view of its inputs; the root map under the view of its inputs.
extern const rewrite::pattern::Helper map_of_views, view_of_map;
extern const rewrite::pattern::Helper sum_of_permuted, permuted_sum;

} // namespace svod::egraph
// NOLINTEND(readability-identifier-naming)
