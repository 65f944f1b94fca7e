// Pads of zeros that end within the last block of a blocked layout, whose lanes hold
// zeros already: they cost nothing, so groups of channels may be made as many as whole
// vectors take.
#pragma once

#include "compiler/kernel/layout.h"

namespace svod {

// Whether the pad of a tensor of this shape and layout asks for no more than that along
// an axis that it pads; along all axes that it pads.
bool pads_lanes(const Node& pad, const Layout& layout, const Shape& shape, size_t axis);
bool pads_lanes(const Node& pad, const Layout& layout, const Shape& shape);

} // namespace svod
