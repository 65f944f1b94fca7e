// RoiAlign: boxes of an image, each cut into bins that are the average or the largest of
// samples at fractional coordinates. With a fixed number of samples each of a sample's
// four neighbours is one gather. Where a box's size decides how many samples it has, a
// bin is a weighted sum over the image: the weights of rows and of columns are computed
// apart, and the image is multiplied by both. However large a box is, only the samples
// inside the image count, and they are no closer than half a pixel, or a bin's only one.
#include "importer/formula.h"
#include "importer/movement.h"

#include <cmath>

namespace svod {
namespace {

// A box's samples along one axis, [rois, bins * samples], as RoiAlign places them.
struct BoxSamples {
  Expr low, high;               // neighbours, I64
  Expr low_weight, high_weight; // 0 outside the image
};

BoxSamples box_samples(Expr start, Expr size, int64_t bins, int64_t samples,
                       int64_t extent) {
  Graph& g = *start.g;
  DType dtype = start.dtype();
  double n = static_cast<double>(extent);
  Expr bin = count_along(g, dtype, bins, 1, 3),
       step = count_along(g, dtype, samples, 2, 3);
  Expr bin_size =
      reshape(size / static_cast<double>(bins), {svod::extent(start, 0), 1, 1});
  Expr at = reshape(start, {svod::extent(start, 0), 1, 1}) + bin * bin_size +
            (step + 0.5) * bin_size / static_cast<double>(samples);
  at = reshape(at, {svod::extent(start, 0), bins * samples});
  Expr inside = both(less_equal(like(at, -1), at), less_equal(at, like(at, n)));
  at = clamp(at, 0, n - 1);
  Expr low = apply(Op::Floor, at), part = at - low, zero = like(at, 0);
  return {convert(low, DType::I64), convert(minimum(low + 1, n - 1), DType::I64),
          select(inside, 1 - part, zero), select(inside, part, zero)};
}

// Per box and bin the weight of each position of an axis, [boxes, bins, extent]: the mean
// over the bin's samples of how near they are. Boxes of no size have no samples.
Expr adaptive_weights(Expr start, Expr size, int64_t bins, int64_t extent) {
  Graph& g = *start.g;
  const DType dtype = start.dtype();
  const int64_t boxes = svod::extent(start, 0);
  // Samples inside [-1, extent] are more than half a pixel apart: bin / ceil(bin) apart,
  // of which n lie in a bin of n pixels; one more at either end for rounding.
  const int64_t most = extent + 5;
  const Expr bin = reshape(size, {boxes, 1, 1, 1}) / static_cast<double>(bins);
  const Expr samples = maximum(apply(Op::Ceil, bin), 0);
  const Expr pace = bin / maximum(samples, 1);
  const Expr from =
      reshape(start, {boxes, 1, 1, 1}) + count_along(g, dtype, bins, 1, 4) * bin;
  const Expr skipped = maximum(
      apply(Op::Floor, (-1.0 - from) / select(less(0, pace), pace, like(pace, 1)) - 0.5),
      0);
  const Expr sample = skipped + count_along(g, dtype, most, 2, 4);
  const Expr at = from + (sample + 0.5) * pace;
  const double n = static_cast<double>(extent);
  const Expr inside = both(less_equal(like(at, -1), at), less_equal(at, like(at, n)));
  const Expr counts = both(inside, less(sample, samples));
  const Expr place = count_along(g, dtype, extent, 3, 4);
  const Expr near = maximum(1.0 - absolute(place - clamp(at, 0, n - 1)), 0);
  const Expr weights = sum(select(counts, near, like(near, 0)), {2});
  return reshape(weights / maximum(samples, 1), {boxes, bins, extent});
}

// down x image x across of each box, [boxes, channels, rows, columns]. Of one image no
// box needs a copy.
Expr weighted(NodeImport& node, Expr x, Expr batch, Expr down, Expr across) {
  const int64_t images = extent(x, 0), channels = extent(x, 1), h = extent(x, 2),
                w = extent(x, 3), boxes = extent(down, 0), columns = extent(across, 1);
  const Expr image = wrap_index(node, batch, images);
  Expr narrow = permute(across, {2, 0, 1}); // [w, boxes, columns]
  if (images == 1) {
    promise(node, all_true(equal(image, 0)));
    narrow = matmul(reshape(x, {channels * h, w}), reshape(narrow, {w, boxes * columns}));
    narrow = permute(reshape(narrow, {channels, h, boxes, columns}), {2, 0, 1, 3});
  } else {
    const Expr own = take(x, 0, image); // [boxes, channels, h, w]
    narrow = matmul(own, unsqueeze(permute(across, {0, 2, 1}), 1));
  }
  return matmul(broadcast(unsqueeze(down, 1), {boxes, channels, extent(down, 1), h}),
                narrow);
}

} // namespace

void import_roi_align(NodeImport& node) {
  Expr x = wide(node, 0), rois = wide(node, 1),
       batch = convert(operand(node, 2), DType::I64);
  require(node,
          x.rank() == 4 && rois.rank() == 2 && extent(rois, 1) == 4 &&
              batch.shape() == Shape{extent(rois, 0)},
          "X, rois or batch_indices have a wrong shape");
  int64_t samples = node.get_int("sampling_ratio"), count = extent(rois, 0);
  int64_t rows = node.get_int("output_height"), columns = node.get_int("output_width");
  require(node, rows > 0 && columns > 0, "the output size must be positive");
  std::string mode = node.get_string("mode");
  require(node, mode == "avg" || mode == "max", "mode is not avg or max");
  bool half = node.opset >= 16 &&
              node.get_string("coordinate_transformation_mode") == "half_pixel";
  Expr corners =
      convert(rois, x.dtype()) * node.get_float("spatial_scale") - (half ? 0.5 : 0.0);
  auto side = [&](int64_t i) { return squeeze(cut(corners, 1, i, 1), 1); };
  Expr width = side(2) - side(0), height = side(3) - side(1);
  if (!half) width = maximum(width, 1), height = maximum(height, 1);
  if (samples <= 0) {
    if (mode == "max") node.unsupported("a sampling_ratio of 0 with mode max");
    const Expr down = adaptive_weights(side(1), height, rows, extent(x, 2));
    const Expr across = adaptive_weights(side(0), width, columns, extent(x, 3));
    return finish(node, weighted(node, x, batch, down, across));
  }
  int64_t h = extent(x, 2), w = extent(x, 3), channels = extent(x, 1);
  BoxSamples down = box_samples(side(1), height, rows, samples, h);
  BoxSamples across = box_samples(side(0), width, columns, samples, w);
  Expr image = wrap_index(node, batch, extent(x, 0)) * static_cast<double>(h * w);
  Expr flat = reshape(permute(x, {1, 0, 2, 3}), {channels, extent(x, 0) * h * w});
  int64_t down_count = rows * samples, across_count = columns * samples;
  auto corner = [&](Expr y, Expr y_weight, Expr at, Expr at_weight) {
    Expr position = reshape(image, {count, 1, 1}) +
                    unsqueeze(y, 2) * static_cast<double>(w) + unsqueeze(at, 1);
    Expr pixels = take(flat, 1, reshape(position, {element_count(position.shape())}));
    pixels = reshape(pixels, {channels, count, down_count, across_count});
    return pixels * (unsqueeze(y_weight, 2) * unsqueeze(at_weight, 1));
  };
  Expr a = corner(down.low, down.low_weight, across.low, across.low_weight);
  Expr b = corner(down.low, down.low_weight, across.high, across.high_weight);
  Expr c = corner(down.high, down.high_weight, across.low, across.low_weight);
  Expr d = corner(down.high, down.high_weight, across.high, across.high_weight);
  Expr value = mode == "avg" ? a + b + c + d : maximum(maximum(a, b), maximum(c, d));
  value = reshape(value, {channels, count, rows, samples, columns, samples});
  Op op = mode == "avg" ? Op::ReduceSum : Op::ReduceMax;
  Expr y = reshape(reduce(op, value, {3, 5}), {channels, count, rows, columns});
  if (mode == "avg") y = y / static_cast<double>(samples * samples);
  finish(node, permute(y, {1, 0, 2, 3}));
}

} // namespace svod
