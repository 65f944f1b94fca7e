// Numbers that are about to become bytes are mostly sums of bytes times known scales,
// which is far from what 32 bits take: conversions need no look at them then.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod::select {

// Marks the casts of floats that are known to be finite and less than 2^30 in magnitude.
void find_magnitudes(FusedGraph& fused);

} // namespace svod::select
