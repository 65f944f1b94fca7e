// RoiAlign: boxes of an image, each cut into bins that are the average or the largest of
// samples at fractional coordinates. With a fixed number of samples each of a sample's
// four neighbours is one gather. Where a box's size decides how many samples it has, a
// bin is a weighted sum over the image: the weights of rows and of columns are computed
// apart, and the image is multiplied by both. However large a box is, only the samples
// inside the image count, and they are no closer than half a pixel, or a bin's only one.
//
// MaxRoiPool (Girshick, "Fast R-CNN", 2015): the largest pixel of each bin of a box whose
// corners are rounded to pixels. A bin's columns are covered by two runs of a power of
// two, whose largest pixels are computed once for the image (a sparse table, Bender and
// Farach-Colton, 2000); of the rows those outside the bin are left out.
#include "importer/formula/formula.h"
#include "importer/formula/movement.h"

#include <cmath>
#include <limits>

namespace svod::importer {
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
      reshape(size / static_cast<double>(bins), {importer::extent(start, 0), 1, 1});
  Expr at = reshape(start, {importer::extent(start, 0), 1, 1}) + bin * bin_size +
            (step + 0.5) * bin_size / static_cast<double>(samples);
  at = reshape(at, {importer::extent(start, 0), bins * samples});
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
  const int64_t boxes = importer::extent(start, 0);
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

// The pixels [low, high) of each bin along one axis, [boxes, bins] each; may be none. A
// corner is rounded to the nearest pixel, halves away from zero.
struct BinPixels {
  Expr low, high;
};

BinPixels pixels_of_bins(Expr first, Expr last, int64_t bins, int64_t extent) {
  Graph& g = *first.g;
  auto rounded = [&](Expr x) {
    const Expr up = apply(Op::Floor, absolute(x) + 0.5);
    return unsqueeze(select(less(x, 0), -up, up), 1);
  };
  const Expr start = rounded(first);
  const Expr bin = maximum(rounded(last) - start + 1, 1) / static_cast<double>(bins);
  const Expr number = count_along(g, first.dtype(), bins, 1, 2);
  auto inside = [&](Expr at) {
    return clamp(at + start, 0, static_cast<double>(extent));
  };
  return {inside(apply(Op::Floor, number * bin)),
          inside(apply(Op::Ceil, (number + 1) * bin))};
}

// [images, extent, ..] -> [images * levels * extent, ..]: level k holds the largest of
// 2^k neighbours along axis 1.
Expr largest_of_runs(Expr x, int64_t levels, double least) {
  Graph& g = *x.g;
  Shape shape = x.shape();
  std::vector<NodeId> table = {x.id};
  for (int64_t k = 0; k + 1 < levels; ++k) {
    const int64_t step = int64_t{1} << k;
    Shape none(shape.size(), 0), high = none;
    high[1] = step;
    const NodeId shifted =
        slice_axis(g, pad(g, table.back(), none, high, least), 1, step, shape[1]);
    table.push_back(map(g, Op::Max, {table.back(), shifted}));
  }
  const NodeId all = concat(g, table, 1);
  shape[0] *= levels * shape[1];
  shape.erase(shape.begin() + 1);
  return {&g, reshape(g, all, shape)};
}

} // namespace

void import_max_roi_pool(NodeImport& node) {
  const Expr x = wide(node, 0), rois = convert(wide(node, 1), x.dtype());
  require(node, x.rank() == 4 && rois.rank() == 2 && extent(rois, 1) == 5,
          "X or rois has a wrong shape");
  const std::vector<int64_t> bins = node.get_ints("pooled_shape");
  require(node, bins.size() == 2 && bins[0] > 0 && bins[1] > 0,
          "pooled_shape must be two positive numbers");
  const int64_t boxes = extent(rois, 0), channels = extent(x, 1), h = extent(x, 2),
                w = extent(x, 3);
  auto column = [&](int64_t i) { return squeeze(cut(rois, 1, i, 1), 1); };
  const double scale = node.get_float("spatial_scale");
  auto corner = [&](int64_t i) { return column(i) * scale; };
  const BinPixels rows = pixels_of_bins(corner(2), corner(4), bins[0], h);
  const BinPixels columns = pixels_of_bins(corner(1), corner(3), bins[1], w);
  const Expr image = wrap_index(node, convert(column(0), DType::I64), extent(x, 0));
  const double least = -std::numeric_limits<double>::infinity();

  int64_t levels = 1;
  Expr level = like(columns.low, 0), run = like(columns.low, 1);
  for (int64_t length = 2; length <= w; length *= 2, ++levels) {
    const Expr fits = less_equal(like(columns.low, static_cast<double>(length)),
                                 columns.high - columns.low);
    level = select(fits, level + 1, level);
    run = select(fits, run + run, run);
  }
  const Expr table = largest_of_runs(permute(x, {0, 3, 2, 1}), levels, least);
  auto runs = [&](Expr first) { // [boxes, bins, rows, channels]
    Expr at = convert(level * static_cast<double>(w) + clamp(first, 0, double(w - 1)),
                      DType::I64);
    at = at + unsqueeze(image, 1) * static_cast<double>(levels * w);
    return reshape(take(table, 0, reshape(at, {boxes * bins[1]})),
                   {boxes, 1, bins[1], h, channels});
  };
  const Expr most = maximum(runs(columns.low), runs(columns.high - run));
  const Expr place = count_along(*x.g, x.dtype(), h, 3, 5);
  auto of_rows = [&](Expr e) { return reshape(e, {boxes, bins[0], 1, 1, 1}); };
  auto of_columns = [&](Expr e) { return reshape(e, {boxes, 1, bins[1], 1, 1}); };
  const Expr inside =
      both(both(less_equal(of_rows(rows.low), place), less(place, of_rows(rows.high))),
           less(of_columns(columns.low), of_columns(columns.high)));
  const Shape pixels = {boxes, bins[0], bins[1], h, channels};
  const Expr value =
      reduce(Op::ReduceMax,
             select(broadcast(inside, pixels), broadcast(most, pixels),
                    broadcast(like(reshape(place, {1, 1, 1, h, 1}), least), pixels)),
             {3});
  // A bin outside the image has no pixels.
  const Expr found = select(equal(value, least), like(value, 0), value);
  finish(node,
         permute(reshape(found, {boxes, bins[0], bins[1], channels}), {0, 3, 1, 2}));
}

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

} // namespace svod::importer
