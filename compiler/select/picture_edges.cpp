// The first layer of a network for pictures meets a plain picture and a pad of one or
// two. A padded copy of it costs as much as reading it from memory, 1 to 2 % of a small
// network, with nothing to hide it behind. Without the copy every broadcast of a pixel is
// under a condition, unless loops take the positions at which it can fail apart: then the
// others have none, and the picture comes from memory while products are made.
#include "compiler/select/picture_edges.h"

#include <algorithm>

namespace svod::select {

// Rows of more planes are read from too many pages at once.
static constexpr int64_t kMostPlanes = 4;
// The positions at the edges have a tile of their own, in which few products are under
// way.
static constexpr int64_t kFewestPositions = 64;

// Whether positions other than the first and the last one stay inside of what is padded.
static bool stays_inside(const Contraction& c, const AxisWindow& w) {
  const int64_t positions = c.axes[w.position].extent, taps = c.axes[w.tap].extent;
  const int64_t last = (positions - 2) * w.stride + (taps - 1) * w.dilation;
  return positions >= kFewestPositions && w.stride >= w.low && last - w.low < w.extent;
}

// The window whose coordinate this is.
static const AxisWindow* window_of(const Contraction& c, const Coordinate& at) {
  const auto found = std::ranges::find_if(c.windows, [&](const AxisWindow& w) {
    const auto others = std::ranges::count_if(at.steps, [](int64_t s) { return s != 0; });
    return others == 2 && at.steps[w.position] == w.stride &&
           at.steps[w.tap] == w.dilation;
  });
  return found == c.windows.end() ? nullptr : &*found;
}

bool edges_apart(const Graph& g, const Contraction& c, const Operand& operand, NodeId pad,
                 int lanes) {
  const NodeId in = g[pad].inputs[0];
  const Shape &shape = g[in].shape, &domain = g[c.product].shape;
  const Payload& pads = g[pad].payload;
  const size_t rank = shape.size();
  // Each axis with a pad triples the text.
  const bool flat = rank == 3 || rank == 4;
  const bool picture = g[in].op == Op::Input && g[in].dtype == DType::F32 && flat &&
                       shape[1] <= kMostPlanes && pads[0] == 0 && pads[1] == 0 &&
                       pads[rank] == 0 && pads[rank + 1] == 0;
  // Vectors are over the channels of the result.
  if (!picture || domain[1] < lanes || own_axes(g, c, operand).varies_along(1))
    return false;
  const auto view = std::ranges::find(operand.views, in, &OperandView::node);
  if (view == operand.views.end() || !view->map) return false;
  for (size_t axis = 2; axis < rank; ++axis) {
    if (pads[axis] == 0 && pads[rank + axis] == 0) continue;
    const AxisWindow* window = window_of(c, view->map->at[axis]);
    if (window == nullptr || !stays_inside(c, *window)) return false;
  }
  return true;
}

} // namespace svod::select
