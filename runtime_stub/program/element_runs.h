// Elements of a tensor whose extents are within its bounds, as they lie in a tensor of
// the bounds and as they lie in one of the extents.
#ifndef SVOD_PROGRAM_ELEMENT_RUNS_H
#define SVOD_PROGRAM_ELEMENT_RUNS_H

#include "runtime_stub/program/tensor.h"

namespace packed {

// Calls each(apart, together, count) front to back: `count` elements that are neighbours
// in both begin at element `apart` of the bounds and at `together` of the extents. Inner
// axes whose extents are their bounds, and the next one, are one run; elements that share
// bytes are runs of one.
template <class Each>
void each_run(const Tensor& bounds, const int64_t* extents, Each each) {
  uint32_t outer = bounds.rank;
  uint64_t run = 1, stride = 1, count = 1;
  for (bool whole = !bounds.element->packed(); whole && outer > 0;) {
    outer--;
    run *= static_cast<uint64_t>(extents[outer]);
    stride *= static_cast<uint64_t>(bounds.dims[outer]);
    whole = extents[outer] == bounds.dims[outer];
  }
  for (uint32_t axis = 0; axis < outer; axis++) {
    count *= static_cast<uint64_t>(extents[axis]);
  }
  int64_t at[SVOD_MAX_RANK] = {};
  for (uint64_t i = 0; i < count; i++) {
    uint64_t from = 0;
    for (uint32_t axis = 0; axis < outer; axis++) {
      from = from * static_cast<uint64_t>(bounds.dims[axis]) +
             static_cast<uint64_t>(at[axis]);
    }
    each(from * stride, i * run, run);
    uint32_t axis = outer;
    while (axis > 0 && ++at[axis - 1] == extents[axis - 1]) at[--axis] = 0;
  }
}

} // namespace packed

#endif
