// The first layer of a network for pictures meets a plain picture and a pad of one or
// two. A padded copy of it costs as much as reading it from memory, 1 to 2 % of a small
// network, with nothing to hide it behind. Without the copy every broadcast of a pixel is
// under a condition, unless loops take the positions at which it can fail apart: then the
// others have none, and the picture comes from memory while products are made.
#include "compiler/select/picture_edges.h"

#include "compiler/kernel/factor.h"

namespace svod::select {

// Rows of more planes are read from too many pages at once.
static constexpr int64_t kMostPlanes = 4;
// The positions at the edges have a tile of their own, in which few products are under
// way.
static constexpr int64_t kFewestPositions = 64;

// Whether positions other than the first and the last one stay inside [0, extent).
static bool stays_inside(const Node& window, int64_t low, int64_t extent) {
  const int64_t axis = window.payload[0], size = window.payload[1],
                stride = window.payload[2], dilation = window.payload[3];
  const int64_t positions = window.shape[static_cast<size_t>(axis)];
  const int64_t last = (positions - 2) * stride + (size - 1) * dilation;
  return positions >= kFewestPositions && stride >= low && last - low < extent;
}

bool edges_apart(const Graph& g, NodeId contraction, size_t which, NodeId pad,
                 int lanes) {
  const NodeId product = g[contraction].inputs[0], in = g[pad].inputs[0];
  const Shape &shape = g[in].shape, &domain = g[product].shape;
  const Payload& pads = g[pad].payload;
  const size_t rank = shape.size();
  // Each axis with a pad triples the text.
  const bool flat = rank == 3 || rank == 4;
  const bool picture = g[in].op == Op::Input && g[in].dtype == DType::F32 && flat &&
                       shape[1] <= kMostPlanes && pads[0] == 0 && pads[1] == 0 &&
                       pads[rank] == 0 && pads[rank + 1] == 0;
  // Vectors are over the channels of the result.
  if (!picture || domain[1] < lanes || factor_of(g, product, which).varies_along(1))
    return false;
  Shape low(pads.begin(), pads.begin() + std::ptrdiff_t(rank)), high(rank);
  for (size_t i = 0; i < rank; ++i) high[i] = pads[rank + i];
  for (NodeId n = g[product].inputs[which]; n != pad; n = g[n].inputs[0]) {
    const auto axis = static_cast<size_t>(g[n].payload.empty() ? 0 : g[n].payload[0]);
    if (g[n].op == Op::Window && axis < rank &&
        stays_inside(g[n], low[axis], shape[axis]))
      low[axis] = high[axis] = 0;
  }
  return low == Shape(rank) && high == Shape(rank);
}

} // namespace svod::select
