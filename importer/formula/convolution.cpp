// Convolutions as a product and a sum.
//
// The transposed one needs no zeros between the input's elements: with stride s, the
// elements of the result at distance s from each other are an ordinary convolution of the
// input with every s-th weight. So the s phases become s times as many output channels of
// one convolution of stride 1, and a permutation interleaves them. That takes 1/s of the
// products per axis.
#include "importer/formula/convolution.h"

#include <algorithm>

namespace svod::importer {

namespace {

Shape joined(const Shape& a, const Shape& b) {
  Shape result = a;
  for (int64_t value : b) result.push_back(value);
  return result;
}

Shape tail(const Shape& shape, size_t from) {
  return Shape(shape.begin() + from, shape.end());
}

// x with zeros around its last axes.
Expr pad_spatial(Expr x, const Windows& windows) {
  const Shape front(x.shape().size() - windows.axes(), 0);
  return pad(x, joined(front, windows.low), joined(front, windows.high), 0);
}

// Elements [start, start + count) of an axis, zero where x has none.
Expr cut_or_pad(Expr x, int64_t axis, int64_t start, int64_t count) {
  const int64_t have = extent(x, axis);
  const int64_t first = std::clamp<int64_t>(start, 0, have);
  const int64_t last = std::clamp<int64_t>(start + count, first, have);
  Shape low(x.shape().size(), 0), high = low;
  low[axis] = std::min(std::max<int64_t>(-start, 0), count);
  high[axis] = count - low[axis] - (last - first);
  return pad(cut(x, axis, first, last - first), low, high, 0);
}

// Without taps that meet nothing but the zeros around x, as those of a dilation that is
// larger than the image: [.., K, ..] -> [.., fewer, ..] weights and their windows.
// Weights that are computed, as those of bytes, stay what later passes look for.
Windows met_taps(const Shape& input, Windows windows, Expr& w) {
  if (!is_known(*w.g, w.id)) return windows;
  for (size_t i = 0; i < windows.axes(); ++i) {
    int64_t &low = windows.low[i], &high = windows.high[i], &taps = windows.kernel[i];
    const int64_t extent = input[2 + i], dilation = windows.dilation[i];
    const int64_t room = extent + low + high - windows.reach(i);
    const int64_t last = room / windows.stride[i] * windows.stride[i];
    int64_t first = 0;
    for (; taps > 1 && last < low && low >= dilation; --taps, ++first) low -= dilation;
    for (; taps > 1 && windows.reach(i) - 1 - low >= extent && high >= dilation; --taps)
      high -= dilation;
    w = cut(w, static_cast<int64_t>(2 + i), first, taps);
  }
  return windows;
}

// Zeros between the weights: dilation as a larger kernel.
Expr dilate(Expr w, int64_t axis, int64_t dilation) {
  const Shape shape = w.shape();
  if (dilation == 1 || shape[axis] == 1) return w;
  Shape apart = shape, high(shape.size() + 1, 0), merged = shape;
  apart.insert(apart.begin() + axis + 1, 1);
  high[axis + 1] = dilation - 1;
  merged[axis] *= dilation;
  w = reshape(pad(reshape(w, apart), Shape(high.size(), 0), high, 0), merged);
  return cut(w, axis, 0, (shape[axis] - 1) * dilation + 1);
}

Expr flipped(Expr x, const std::vector<int64_t>& axes) {
  const Shape shape = x.shape();
  Shape start(shape.size(), 0), step(shape.size(), 1);
  for (int64_t axis : axes) {
    start[axis] = shape[axis] - 1;
    step[axis] = -1;
  }
  return slice(x, start, step, shape);
}

// w [C, OC/G, K..] -> [G * s.. * OC/G, C/G, T..]: the weights of every phase, in the
// order in which a convolution meets them. K is filled up to T * s with zeros. Channels
// of a phase are neighbours, as those of the result are: vectors of the one are vectors
// of the other (64 channels of 32 x 32 with 4 x 4 taps and a stride of 2 in Winograd's
// form: 139 us to interleave channels of which every fourth is of a phase, so 19).
Expr phase_weights(Expr w, const Shape& stride, const Shape& taps, int64_t groups) {
  const Shape shape = w.shape();
  const int64_t spatial = static_cast<int64_t>(stride.size());
  Shape split{groups, shape[0] / groups, shape[1]};
  std::vector<int64_t> order{0}, tap_axes;
  int64_t outputs = groups * shape[1];
  for (int64_t i = 0; i < spatial; ++i) {
    w = cut_or_pad(w, 2 + i, 0, taps[i] * stride[i]);
    split.push_back(taps[i]);
    split.push_back(stride[i]);
    tap_axes.push_back(3 + 2 * i);
    order.push_back(4 + 2 * i);
    outputs *= stride[i];
  }
  order.insert(order.end(), {2, 1});
  for (int64_t axis : tap_axes) order.push_back(axis);
  w = permute(flipped(reshape(w, split), tap_axes), order);
  return reshape(w, joined({outputs, shape[0] / groups}, taps));
}

// y [N, G * s.. * OC/G, q..] -> [N, OC, q * s ..].
Expr interleave(Expr y, const Shape& stride, int64_t channels, int64_t groups) {
  const Shape shape = y.shape();
  const int64_t spatial = static_cast<int64_t>(stride.size());
  Shape split = joined({shape[0], groups}, stride);
  split.push_back(channels / groups);
  split = joined(split, tail(shape, 2));
  std::vector<int64_t> order{0, 1, 2 + spatial};
  Shape merged{shape[0], channels};
  for (int64_t i = 0; i < spatial; ++i) {
    order.push_back(3 + spatial + i);
    order.push_back(2 + i);
    merged.push_back(shape[2 + i] * stride[i]);
  }
  return reshape(permute(reshape(y, split), order), merged);
}

} // namespace

Expr convolve(Expr x, Expr w, const Windows& all, int64_t groups) {
  const Shape input = x.shape();
  const Windows windows = met_taps(input, all, w);
  const Shape weights = w.shape();
  const int64_t batch = input[0], depth = weights[1];
  const int64_t spatial = static_cast<int64_t>(windows.axes());
  const bool grouped = groups > 1;
  // Axis of C, then of the first spatial axis.
  const int64_t channel = grouped ? 2 : 1, first = channel + 1;
  // The pad comes before the groups are told apart: it is then a pad of a stored value,
  // which can have its zeros in memory.
  x = pad_spatial(x, windows);
  for (int64_t i = 0; i < spatial; ++i)
    x = with(x, window(*x.g, x.id, 2 + i, windows.kernel[i], windows.stride[i],
                       windows.dilation[i]));
  if (grouped) x = reshape(x, joined({batch, groups, depth}, tail(x.shape(), 2)));
  // [.., C, o.., k..] -> [.., 1, o.., C, k..]
  std::vector<int64_t> order = axes_from(0, x.rank());
  std::rotate(order.begin() + channel, order.begin() + first,
              order.begin() + first + spatial);
  x = unsqueeze(permute(x, order), channel);

  const int64_t outputs = weights[0] / groups;
  Shape place = grouped ? Shape{1, groups, outputs} : Shape{1, outputs};
  place.resize(place.size() + spatial, 1);
  w = reshape(w, joined(place, tail(weights, 1)));
  Shape full = x.shape();
  full[channel] = outputs;
  const Shape positions(full.begin() + first, full.begin() + first + spatial);
  const Expr product = broadcast(x, full) * broadcast(w, full);
  return reshape(sum(product, axes_from(first + spatial, product.rank())),
                 joined({batch, weights[0]}, positions));
}

Windows convolution_windows(NodeImport& node, const Shape& x, const Shape& w,
                            int64_t least_pad) {
  require(node, x.size() >= 3, "input 0 must have a batch, a channel and spatial axes");
  require(node, w.size() == x.size(), "the weights have another rank than input 0");
  const Shape kernel = tail(w, 2);
  require(node,
          ints_or(node, "kernel_shape", kernel.size(), 0) == kernel ||
              node.get_ints("kernel_shape").empty(),
          "kernel_shape differs from the shape of the weights");
  return read_windows(node, tail(x, 2), kernel, least_pad);
}

// Checks that group divides the channels; returns it.
int64_t read_groups(NodeImport& node, int64_t channels, int64_t outputs_or_inputs) {
  const int64_t groups = node.get_int("group");
  require(node, groups >= 1 && channels % groups == 0 && outputs_or_inputs % groups == 0,
          "attribute 'group' does not divide the channels");
  return groups;
}

static void require_room(NodeImport& node, const Shape& extents, const Windows& windows) {
  for (size_t i = 0; i < windows.axes(); ++i)
    if (extents[i] + windows.low[i] + windows.high[i] < windows.reach(i))
      node.invalid("the kernel is larger than the padded input on spatial axis " +
                   std::to_string(i));
}

Expr checked_convolution(NodeImport& node, Expr x, Expr w) {
  const Shape input = x.shape(), weights = w.shape();
  const Windows windows = convolution_windows(node, input, weights);
  const int64_t groups = read_groups(node, input[1], weights[0]);
  require(node, weights[1] * groups == input[1],
          "the weights' channels do not fit the input's");
  require_room(node, Shape(input.begin() + 2, input.end()), windows);
  return convolve(x, w, windows, groups);
}

Expr convolve_transposed(Expr x, Expr w, const Windows& windows, int64_t groups,
                         const Placement& placement) {
  const int64_t spatial = static_cast<int64_t>(windows.axes());
  const int64_t channels = w.shape()[1] * groups;
  Windows plain{{}, Shape(spatial, 1), Shape(spatial, 1), {}, {}};
  Shape start = placement.start;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t stride = windows.stride[i];
    if (stride == 1)
      plain.dilation[i] = windows.dilation[i];
    else
      w = dilate(w, 2 + i, windows.dilation[i]);
    plain.kernel.push_back((extent(w, 2 + i) + stride - 1) / stride);
    // What is cut off the result is not computed, as far as less padding spares it.
    const int64_t border = plain.reach(i) - 1;
    const int64_t all = extent(x, 2 + i) + border; // positions of a phase
    const int64_t end = (start[i] + placement.extent[i] + stride - 1) / stride;
    const int64_t before = std::clamp<int64_t>(start[i] / stride, 0, border);
    plain.low.push_back(border - before);
    plain.high.push_back(border - std::clamp<int64_t>(all - end, 0, border));
    start[i] -= before * stride;
  }
  w = phase_weights(w, windows.stride, plain.kernel, groups);
  Expr y = interleave(convolve(x, w, plain, groups), windows.stride, channels, groups);
  for (int64_t i = 0; i < spatial; ++i)
    y = cut_or_pad(y, 2 + i, start[i], placement.extent[i]);
  return y;
}

} // namespace svod::importer
