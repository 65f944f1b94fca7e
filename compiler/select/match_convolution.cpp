// Finds convolutions among sums of products. The importer writes them all alike, whatever
// the number of axes, so what is matched is pad, windows, a permutation, the product with
// known weights and the sum; strides and dilations are read off the windows. Winograd's
// forms know rows and columns only. The other axes become pictures: a depth's pictures
// are transformed once and then summed up by windows over them; with a dilation of d
// every d-th row is a picture of its own, which has none.
#include "compiler/select/transform.h"
#include "compiler/select/winograd.h"

#include <algorithm>

namespace svod::select {

namespace {

// What the windows over each spatial axis are.
struct AxisWindows {
  Shape taps, stride, dilation;
};

} // namespace

// The tensor [N, C, extents] below windows of known taps, whose strides and dilations are
// set; kNoNode where there are others.
static NodeId below_windows(const Graph& g, NodeId n, AxisWindows& windows) {
  const auto rank = static_cast<int64_t>(windows.taps.size());
  Shape seen(windows.taps.size(), 1);
  for (int64_t last = rank; g[n].op == Op::Window || g[n].op == Op::Reshape;
       n = g[n].inputs[0]) {
    const Node& node = g[n];
    if (node.op == Op::Window) {
      const int64_t axis = node.payload[0] - 2;
      if (axis < 0 || axis >= last || node.payload[1] != windows.taps[axis])
        return kNoNode;
      last = axis;
      seen[axis] = windows.taps[axis];
      windows.stride[axis] = node.payload[2];
      windows.dilation[axis] = node.payload[3];
    } else if (node.shape.size() <= seen.size() + 2 || node.shape.back() != 1) {
      break; // adds no axis for a window of one
    }
  }
  return seen == windows.taps ? n : kNoNode;
}

// Whether `input` has the batch, the channels and the extents that lead to these results.
static bool fits(const Shape& input, const Convolution& conv,
                 const AxisWindows& windows) {
  if (input.size() != conv.results.size()) return false;
  bool same = input[0] == conv.results[0] && input[1] == conv.inputs;
  for (size_t i = 2; same && i < input.size(); ++i) {
    const int64_t reach = (windows.taps[i - 2] - 1) * windows.dilation[i - 2];
    same = (input[i] - reach - 1) / windows.stride[i - 2] + 1 == conv.results[i];
  }
  return same;
}

// The share of dilated taps, over all positions, that lie within what is padded.
static double met_share(const Graph& g, const Convolution& conv,
                        const AxisWindows& windows) {
  const Node& pad = g[conv.input];
  if (pad.op != Op::Pad) return 1;
  const Shape& within = g[pad.inputs[0]].shape;
  double share = 1;
  for (size_t i = 2; i < within.size(); ++i) {
    const int64_t dilation = windows.dilation[i - 2], taps = windows.taps[i - 2];
    if (dilation == 1) continue;
    int64_t met = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t first = std::max<int64_t>(0, pad.payload[i] - tap * dilation);
      const int64_t end = pad.payload[i] + within[i] - tap * dilation;
      met += std::max<int64_t>(0, std::min(end, conv.results[i]) - first);
    }
    share *= double(met) / double(taps * conv.results[i]);
  }
  return share;
}

// Sees the axes as pictures; false where they are none.
static bool see_pictures(const Shape& input, Convolution& conv,
                         const AxisWindows& windows) {
  const size_t rank = windows.taps.size();
  conv.size = conv.taps = {1, 1};
  for (size_t a = rank == 1 ? 1 : 0; a < 2; ++a) {
    const size_t i = rank - 2 + a;
    conv.taps[a] = windows.taps[i], conv.stride[a] = windows.stride[i];
    conv.dilation[a] = windows.dilation[i];
    conv.size[a] = (conv.results[i + 2] + conv.dilation[a] - 1) / conv.dilation[a];
    if (conv.stride[a] != 1 && conv.dilation[a] != 1) return false;
  }
  conv.pictures = conv.batch = conv.results[0] * conv.dilation[0] * conv.dilation[1];
  if (rank < 3) return true;
  conv.depth = input[2];
  conv.depth_taps = windows.taps[0], conv.depth_stride = windows.stride[0];
  conv.pictures *= conv.depth, conv.batch *= conv.results[2];
  return windows.dilation[0] == 1;
}

std::optional<Convolution> match_convolution(const Graph& g, NodeId reduce,
                                             const std::vector<bool>& known) {
  const Node& r = g[reduce];
  if (r.op != Op::ReduceSum || r.dtype != DType::F32) return std::nullopt;
  const Node& product = g[r.inputs[0]];
  const Shape& p = product.shape; // [N, OC, extents, C, taps]
  if (product.op != Op::Mul || p.size() % 2 != 1 || p.size() < 5 || p.size() > 9)
    return std::nullopt;
  const size_t rank = (p.size() - 3) / 2;
  Shape summed = p, weight_shape = p;
  std::fill(summed.begin() + 2 + rank, summed.end(), 1);
  if (r.shape != summed) return std::nullopt;
  weight_shape[0] = 1;
  std::fill_n(weight_shape.begin() + 2, rank, 1);
  for (size_t i = 0; i < 2; ++i) {
    Convolution conv;
    conv.weight = without_expand(g, product.inputs[i]);
    conv.results = Shape(p.begin(), p.begin() + 2 + rank);
    conv.outputs = p[1], conv.inputs = p[2 + rank];
    NodeId n = without_expand(g, product.inputs[1 - i]);
    if (!known[conv.weight] || known[n] || g[conv.weight].shape != weight_shape) continue;
    if (g[n].op != Op::Reshape) continue;
    n = g[n].inputs[0];
    const bool moved =
        g[n].op == Op::Permute && g[n].payload == channels_behind(1, int64_t(rank));
    if (!moved && conv.inputs != 1) continue; // one channel has no place to move to
    AxisWindows windows{{p.begin() + 3 + rank, p.end()}, Shape(rank, 1), Shape(rank, 1)};
    conv.input = below_windows(g, moved ? g[n].inputs[0] : n, windows);
    if (conv.input != kNoNode && fits(g[conv.input].shape, conv, windows) &&
        see_pictures(g[conv.input].shape, conv, windows)) {
      conv.met = met_share(g, conv, windows);
      return conv;
    }
  }
  return std::nullopt;
}

} // namespace svod::select
