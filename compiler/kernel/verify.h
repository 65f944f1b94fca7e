// What every fused graph has to satisfy; a fault is a bug of ours.
#pragma once

#include "compiler/kernel/fused_graph.h"

namespace svod {

// SVOD_CHECKs: arguments, locals and expressions that are named exist; element types
// agree; the lane axis has as many positions as a vector has lanes; and no load or store
// without a condition leaves its buffer, wherever its index is a sum over axes.
void verify(const FusedGraph& fused);
// One kernel of it that may not stand in it yet.
void verify(const FusedGraph& fused, const ScheduledKernel& kernel, size_t number);

} // namespace svod
