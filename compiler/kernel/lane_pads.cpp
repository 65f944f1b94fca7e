#include "compiler/kernel/lane_pads.h"

namespace svod {

bool pads_lanes(const Node& pad, const Layout& layout, const Shape& shape, size_t axis) {
  const size_t rank = shape.size();
  const int64_t low = pad.payload[axis], high = pad.payload[rank + axis];
  return pad.payload[2 * rank] == 0 && low == 0 &&
         static_cast<int64_t>(axis) == layout.block_axis &&
         shape[axis] + high <= physical_range(layout, shape, axis).high + 1;
}

bool pads_lanes(const Node& pad, const Layout& layout, const Shape& shape) {
  const size_t rank = shape.size();
  for (size_t i = 0; i < rank; ++i) {
    const bool any = pad.payload[i] != 0 || pad.payload[rank + i] != 0;
    if (any && !pads_lanes(pad, layout, shape, i)) return false;
  }
  return true;
}

} // namespace svod
