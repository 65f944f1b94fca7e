// How the kernels of a cut run along the stored values that they read and write: with
// neighbours as lanes, or with lanes that lie apart.
#pragma once

#include "compiler/kernel/lowered.h"

namespace svod::select {

// Of one stored value, in elements.
struct LaneReads {
  double near = 0;                 // read or written with neighbours as lanes
  std::map<int64_t, double> apart; // read, by the axis of the value that is the lanes
  NodeId reader = kNoNode;         // root of the group that reads most of them
  double most = 0;                 // what it reads
};

// Adds what a kernel reads and writes, the result of the group of `root`.
void add_lane_reads(const ScheduledKernel& kernel, NodeId root,
                    const std::vector<Buffer>& buffers,
                    std::map<BufferId, LaneReads>& reads);

// Whether n joins channels of parts that are all shorter than half a vector, which a
// block of channels would get one by one. (Four quarters of a colour picture, 208 x 208:
// 1514 us; joined row by row and then blocked as a whole, 279.)
bool joins_slivers(const Graph& g, NodeId n, int lanes);

} // namespace svod::select
