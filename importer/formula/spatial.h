// What convolutions and poolings share: the attributes that place a window over the
// spatial axes.
#pragma once

#include "importer/formula/rule.h"

namespace svod::importer {

// One entry per spatial axis.
struct Windows {
  Shape kernel, stride, dilation, low, high;
  size_t axes() const { return kernel.size(); }
  // Extent that one window covers.
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
};

// Reads strides, dilations, pads and auto_pad as far as the node has them. `extents` are
// the input's spatial extents, `kernel` the window's; invalid() for what the
// specification forbids and for pads below `least_pad`.
Windows read_windows(NodeImport& node, const Shape& extents, const Shape& kernel,
                     int64_t least_pad = 0);
// The attribute's list, or one entry of `otherwise` per axis.
Shape ints_or(NodeImport& node, std::string_view name, size_t count, int64_t otherwise);

} // namespace svod::importer
