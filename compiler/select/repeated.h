// Kernels that find their weights near, as the step before has read them.
#pragma once

#include "compiler/kernel/fused_graph.h"
#include "compiler/support/machine.h"

namespace svod::select {

// Marks the kernels of a loop's body whose weights and values the caches of one core hold
// from step to step.
void find_repeated(FusedGraph& body, const Machine& machine);

// Marks those of a program whose weights another kernel has read so shortly before that
// they are still in a cache: the steps of a recurrent layer that is written out.
void find_read_again(FusedGraph& program, const Machine& machine);

} // namespace svod::select
