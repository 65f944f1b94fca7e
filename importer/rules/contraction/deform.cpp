// Deformable convolution: every tap of every window is sampled at its own fractional
// position, by bilinear interpolation between four elements, zero outside the image. Then
// it is a contraction like any other (convolution.h), over the sampled taps instead of
// windows.
#include "importer/formula/convolution.h"
#include "importer/formula/formula.h"

namespace svod::importer {

namespace {

struct Shapes {
  int64_t batch, channels, height, width; // of the image
  int64_t groups;                         // of offsets
  int64_t taps, rows, columns;            // kernel elements, extents of the result
};

// Positions along one spatial axis, [N, groups, taps, rows, columns]: where the window
// lies, plus the offset, which stands at `place` (0: vertical, 1: horizontal) among the
// pairs.
Expr positions(Expr offsets, const Shapes& s, const Windows& windows, int64_t place) {
  Graph& g = *offsets.g;
  const DType dtype = offsets.dtype();
  const int64_t kh = windows.kernel[0], kw = windows.kernel[1];
  const Expr offset =
      reshape(cut(offsets, 3, place, 1), {s.batch, s.groups, s.taps, s.rows, s.columns});
  const Expr tap = reshape(counter(g, dtype, {kh, kw}, place), {s.taps, 1, 1});
  const Expr output = counter(g, dtype, {s.rows, s.columns}, place);
  const Expr base = output * double(windows.stride[place]) +
                    tap * double(windows.dilation[place]) - double(windows.low[place]);
  return offset + base;
}

// The image's element at whole positions, and zero outside; [N, C, taps, rows, columns].
Expr element_at(Expr image, Expr y, Expr x, const Shapes& s) {
  const Expr inside = both(both(less_equal(like(y, 0), y), less(y, double(s.height))),
                           both(less_equal(like(x, 0), x), less(x, double(s.width))));
  const Expr row = convert(clamp(y, 0, double(s.height - 1)), DType::I64);
  const Expr column = convert(clamp(x, 0, double(s.width - 1)), DType::I64);
  const Expr flat = row * double(s.width) + column;
  const int64_t sampled = s.taps * s.rows * s.columns;
  const auto per_channel_of_group = [&](Expr value) {
    const Expr grouped = reshape(value, {s.batch, s.groups, 1, sampled});
    return reshape(
        broadcast(grouped, {s.batch, s.groups, s.channels / s.groups, sampled}),
        {s.batch, s.channels, sampled});
  };
  const Expr values = gather(reshape(image, {s.batch, s.channels, s.height * s.width}),
                             per_channel_of_group(flat), 2);
  return select(per_channel_of_group(inside), values, like(values, 0));
}

// Every tap's sample, [N, C, taps * rows * columns].
Expr sample(Expr image, Expr y, Expr x, const Shapes& s) {
  const Expr top = apply(Op::Floor, y), left = apply(Op::Floor, x);
  const Expr down = y - top, right = x - left;
  const int64_t sampled = s.taps * s.rows * s.columns;
  const auto part = [&](Expr row, Expr column, Expr weight) {
    const Expr grouped = reshape(weight, {s.batch, s.groups, 1, sampled});
    const Expr wide =
        reshape(broadcast(grouped, {s.batch, s.groups, s.channels / s.groups, sampled}),
                {s.batch, s.channels, sampled});
    return element_at(image, row, column, s) * wide;
  };
  return part(top, left, (1.0 - down) * (1.0 - right)) +
         part(top, left + 1, (1.0 - down) * right) +
         part(top + 1, left, down * (1.0 - right)) +
         part(top + 1, left + 1, down * right);
}

Shapes read_shapes(NodeImport& node, const Windows& windows) {
  const Shape image = node.shape(0), offset = node.shape(2);
  Shapes s{image[0],
           image[1],
           image[2],
           image[3],
           node.get_int("offset_group"),
           windows.kernel[0] * windows.kernel[1],
           0,
           0};
  const auto count = [&](size_t i) {
    const int64_t room =
        image[2 + i] + windows.low[i] + windows.high[i] - windows.reach(i);
    require(node, room >= 0, "the kernel is larger than the padded input");
    return room / windows.stride[i] + 1;
  };
  s.rows = count(0);
  s.columns = count(1);
  require(node, s.groups >= 1 && s.channels % s.groups == 0,
          "offset_group does not divide the channels");
  require(node, offset == Shape{s.batch, s.groups * s.taps * 2, s.rows, s.columns},
          "the offsets' shape does not fit the kernel and the result");
  require(node, s.height > 0 && s.width > 0, "the image is empty");
  return s;
}

} // namespace

void import_deform_conv(NodeImport& node) {
  const Expr image = wide(node, 0), w = wide(node, 1);
  if (image.rank() != 4) node.unsupported("DeformConv with other than two spatial axes");
  Windows windows = convolution_windows(node, Shape(image.shape()), Shape(w.shape()));
  const Shapes s = read_shapes(node, windows);
  const int64_t groups = node.get_int("group"), outputs = extent(w, 0);
  require(node,
          groups >= 1 && s.channels % groups == 0 && outputs % groups == 0 &&
              extent(w, 1) * groups == s.channels,
          "attribute 'group' does not fit the channels");
  const Expr offsets =
      reshape(wide(node, 2), {s.batch, s.groups, s.taps, 2, s.rows * s.columns});
  Expr taps = sample(image, positions(offsets, s, windows, 0),
                     positions(offsets, s, windows, 1), s);
  taps = reshape(taps, {s.batch, s.channels, s.taps, s.rows, s.columns});
  if (node.has_input(4)) {
    require(node, node.shape(4) == Shape{s.batch, s.groups * s.taps, s.rows, s.columns},
            "the mask's shape does not fit the kernel and the result");
    const Expr mask =
        reshape(wide(node, 4), {s.batch, s.groups, 1, s.taps, s.rows, s.columns});
    const Shape full{s.batch, s.groups, s.channels / s.groups, s.taps, s.rows, s.columns};
    taps = taps * reshape(broadcast(mask, full), Shape(taps.shape()));
  }
  // The taps become channels of a convolution with a kernel of one element, in the order
  // of the weights.
  const Expr x = reshape(taps, {s.batch, s.channels * s.taps, s.rows, s.columns});
  const Expr weights = reshape(w, {outputs, extent(w, 1) * s.taps, 1, 1});
  const Windows point{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  Expr y = convolve(x, weights, point, groups);
  if (node.has_input(3)) {
    require(node, node.shape(3) == Shape{outputs}, "the bias must be one per channel");
    y = y + per_channel(wide(node, 3), 4);
  }
  finish(node, y);
}

} // namespace svod::importer
