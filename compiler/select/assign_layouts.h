// How stored tensors lie in memory.
#pragma once

#include "compiler/kernel/group.h"
#include "compiler/kernel/layout.h"

#include <map>
#include <set>

namespace svod::select {

using LayoutHints = std::map<NodeId, Layout>;

// Elements of a block of channels.
struct BlockSizes {
  int lanes = 1;
  // Of bytes, where all of a register's are multiplied and summed by one instruction and
  // the channels fill it; 0: as of others.
  int bytes = 0;
  // Where they do not, the most vectors of it that channels are a whole number of; but
  // what is read by lanes keeps one, whose neighbours windows share.
  bool parts = false;
};

// Pictures whose rows are outermost: kernels that go through them row by row need only
// some rows at a time (compiler/plan/stream.h).
using RowsFirst = std::set<NodeId>;

// A layout per stored node. Inputs and outputs of the model are row-major, and so is
// everything where vectors have one lane. What
// convolutions make keeps its channels in blocks, and so does what is computed from that;
// zero pads of such values become borders in memory.
std::map<NodeId, Layout> assign_layouts(const Graph& g, const Grouping& grouping,
                                        const LayoutHints& hints,
                                        const BlockSizes& blocks,
                                        const RowsFirst& rows_first = {});

} // namespace svod::select
