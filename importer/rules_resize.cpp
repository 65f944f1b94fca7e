// Resize and Upsample. Interpolation is separable, so each axis is resized on its own:
// output position -> source coordinate -> a few neighbours and their weights. All of that
// is arithmetic on the scale; known scales fold it into known positions and weights,
// unknown ones (with a shape that the model declares) compute it at run time.
//
// The neighbours of coordinate x for n taps are ceil(x) - n/2 + t, t < n, and the
// fraction is taken in (0, 1]: a coordinate on a pixel leans on the pixel as its right
// neighbour.
#include "importer/movement.h"

#include <algorithm>
#include <cmath>

namespace svod {
namespace {

struct ResizeOptions {
  std::string mode = "nearest", coordinates = "asymmetric", nearest = "floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

// One axis: scale, and for tf_crop_and_resize the window, as F64 scalars.
struct AxisResize {
  int64_t axis, extent;
  Expr scale;
  std::optional<Expr> roi_start, roi_end;
};

Expr f64(Graph& g, double value) { return number(g, DType::F64, value); }

std::optional<double> known_scalar(Expr x) {
  std::optional<std::vector<double>> values = known_floats(*x.g, x.id);
  return values ? std::optional(values->at(0)) : std::nullopt;
}

// The coordinate in the input of every output position, rank 1.
Expr source_coordinates(NodeImport& node, const ResizeOptions& options,
                        const AxisResize& resize, double length) {
  const std::string& mode = options.coordinates;
  Expr at = count_along(node.g, DType::F64, resize.extent, 0, 1);
  const double resized = static_cast<double>(resize.extent);
  if (mode == "asymmetric") return at / resize.scale;
  if (mode == "half_pixel") return (at + 0.5) / resize.scale - 0.5;
  if (mode == "pytorch_half_pixel")
    return resize.extent == 1 ? at : (at + 0.5) / resize.scale - 0.5;
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / resize.scale;
  const Expr width = resize.scale * length; // not rounded
  if (mode == "align_corners")
    return select(equal(width, 1.0), like(at, 0), at * (length - 1) / (width - 1.0));
  if (mode == "half_pixel_symmetric") {
    Expr adjustment = f64(node.g, resized) / width;
    Expr offset = (-adjustment + 1.0) * (length / 2);
    return offset + (at + 0.5) / resize.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    Expr span = (*resize.roi_end - *resize.roi_start) * (length - 1);
    Expr inner = resize.extent == 1 ? span / 2.0 : at * span / (resized - 1);
    return inner + *resize.roi_start * (length - 1);
  }
  node.invalid("coordinate_transformation_mode '" + mode +
               "' is not in the specification");
}

Expr nearest_position(NodeImport& node, const std::string& mode, Expr at, Expr scale) {
  // Before Resize 11: down to the next pixel, up from the one before.
  if (mode == "simple")
    return select(less(scale, 1.0), apply(Op::Ceil, at), apply(Op::Floor, at));
  if (mode == "floor") return apply(Op::Floor, at);
  if (mode == "ceil") return apply(Op::Ceil, at);
  if (mode == "round_prefer_floor") return apply(Op::Ceil, at - 0.5);
  if (mode == "round_prefer_ceil") return apply(Op::Floor, at + 0.5);
  node.invalid("nearest_mode '" + mode + "' is not in the specification");
}

// Keys' cubic convolution kernel at distance d >= 0.
Expr cubic_kernel(Expr d, double a) {
  Expr near = ((d * (a + 2) - (a + 3)) * d) * d + 1.0;
  Expr far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
  return select(less_equal(d, like(d, 1)), near, select(less(d, 2.0), far, like(d, 0)));
}

// The weight of every neighbour; `fraction` is the coordinate's part beyond the left
// neighbour.
std::vector<Expr> tap_weights(NodeImport& node, const ResizeOptions& options,
                              Expr fraction, Expr scale) {
  bool cubic = options.mode == "cubic";
  double reach = cubic ? 2 : 1, shrink = 1;
  if (options.antialias) {
    std::optional<double> known_scale = known_scalar(scale);
    if (!known_scale)
      node.needs_value_of(scale.id, "antialias with scales only known at run time");
    if (!(*known_scale >= 1.0 / 1024))
      node.unsupported("antialias below a scale of 1/1024");
    shrink = std::min(1.0, *known_scale);
  }
  auto first = static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
  std::vector<Expr> weights;
  for (int64_t i = first; i < 2 - first; ++i) {
    Expr distance = absolute(-fraction + static_cast<double>(i)) * shrink;
    weights.push_back(cubic ? cubic_kernel(distance, options.cubic_a)
                            : clamp(-distance + 1.0, 0, 1));
  }
  return weights;
}

Expr total(const std::vector<Expr>& parts) {
  Expr sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
  return sum;
}

Expr take_at(Expr x, int64_t axis, Expr position) {
  Expr index = convert(position, DType::I64);
  std::optional<std::vector<int64_t>> positions = known_ints(*x.g, index.id);
  return positions ? take(x, axis, *positions) : take(x, axis, index);
}

Expr interpolate(NodeImport& node, const ResizeOptions& options, const AxisResize& resize,
                 Expr x, Expr at) {
  double last = static_cast<double>(extent(x, resize.axis)) - 1;
  Expr right = apply(Op::Ceil, at);
  std::vector<Expr> weights = tap_weights(node, options, at - right + 1.0, resize.scale);
  const auto taps = static_cast<int64_t>(weights.size());
  const int64_t first = -(taps / 2);
  std::vector<Expr> positions;
  for (int64_t t = 0; t < taps; ++t)
    positions.push_back(right + static_cast<double>(first + t));
  if (options.exclude_outside)
    for (size_t t = 0; t < weights.size(); ++t) {
      Expr p = positions[t];
      Expr inside = both(less_equal(like(p, 0), p), less_equal(p, like(p, last)));
      weights[t] = select(inside, weights[t], like(weights[t], 0));
    }
  if (options.exclude_outside || options.antialias) {
    Expr sum = total(weights);
    sum = select(equal(sum, 0.0), like(sum, 1), sum);
    for (Expr& weight : weights) weight = weight / sum;
  }
  std::vector<Expr> parts;
  for (size_t t = 0; t < weights.size(); ++t) {
    Expr weight = along(convert(weights[t], x.dtype()), resize.axis, x.rank());
    parts.push_back(take_at(x, resize.axis, clamp(positions[t], 0, last)) * weight);
  }
  return total(parts);
}

Expr resize_axis(NodeImport& node, const ResizeOptions& options, const AxisResize& resize,
                 Expr x) {
  double length = static_cast<double>(extent(x, resize.axis));
  if (length == 0) node.invalid("an empty axis cannot be resized");
  Expr at = source_coordinates(node, options, resize, length);
  Expr y = options.mode == "nearest"
               ? take_at(x, resize.axis,
                         clamp(nearest_position(node, options.nearest, at, resize.scale),
                               0, length - 1))
               : interpolate(node, options, resize, x, at);
  if (options.coordinates != "tf_crop_and_resize") return y;
  Expr inside = both(less_equal(like(at, 0), at), less_equal(at, like(at, length - 1)));
  return select(along(inside, resize.axis, x.rank()), y, like(y, options.extrapolation));
}

void resize_all(NodeImport& node, const ResizeOptions& options,
                const std::vector<AxisResize>& resizes) {
  Expr x = operand(node, 0);
  DType dtype = x.dtype();
  bool blends = options.mode == "linear" || options.mode == "cubic";
  if (!blends && options.mode != "nearest")
    node.invalid("mode '" + options.mode + "' is not in the specification");
  if (blends && dtype != DType::F64) x = convert(x, DType::F32);
  for (const AxisResize& resize : resizes) {
    std::optional<double> scale = known_scalar(resize.scale);
    bool same = scale == 1.0 && resize.extent == extent(x, resize.axis);
    if (!same || options.coordinates == "tf_crop_and_resize")
      x = resize_axis(node, options, resize, x);
  }
  if (blends && is_integer(dtype)) x = apply(Op::Round, x); // converting saturates
  give(node, 0, convert(x, dtype));
}

// The extent that the model declares, for scales or sizes only known at run time.
int64_t declared_extent(NodeImport& node, int64_t axis, Expr unknown) {
  std::optional<Shape> declared = node.declared_shape(0);
  if (!declared || declared->size() != node.shape(0).size())
    node.needs_value_of(unknown.id,
                        "the new size depends on the model's inputs and the model "
                        "declares no shape for the output");
  return (*declared)[static_cast<size_t>(axis)];
}

// Extents from scales, rounded down in float as shape inference does.
int64_t scaled_extent(NodeImport& node, int64_t axis, Expr scale) {
  std::optional<double> value = known_scalar(scale);
  if (!value) return declared_extent(node, axis, scale);
  if (!(*value > 0) || *value > 1e6) node.invalid("scales must be positive");
  auto have = static_cast<float>(extent(operand(node, 0), axis));
  return static_cast<int64_t>(std::floor(have * static_cast<float>(*value)));
}

std::vector<AxisResize> by_scales(NodeImport& node, Expr scales,
                                  const std::vector<int64_t>& axes) {
  if (element_count(scales.shape()) != static_cast<int64_t>(axes.size()))
    node.invalid("scales must have one entry per axis");
  std::vector<AxisResize> resizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr scale = cut(reshape(scales, {static_cast<int64_t>(axes.size())}), 0,
                     static_cast<int64_t>(i), 1);
    scale = reshape(convert(scale, DType::F64), {});
    resizes.push_back({axes[i], scaled_extent(node, axes[i], scale), scale, {}, {}});
  }
  return resizes;
}

// Sizes give scales; a policy other than stretch then makes all scales the smallest or
// largest.
std::vector<AxisResize> by_sizes(NodeImport& node, Expr sizes,
                                 const std::vector<int64_t>& axes,
                                 const std::string& policy) {
  auto count = static_cast<int64_t>(axes.size());
  if (element_count(sizes.shape()) != count)
    node.invalid("sizes must have one entry per axis");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    node.invalid("keep_aspect_ratio_policy '" + policy + "' is not in the specification");
  std::optional<std::vector<int64_t>> known_sizes = known_ints(node.g, sizes.id);
  std::vector<Expr> scales;
  std::vector<double> have;
  for (int64_t i = 0; i < count; ++i) {
    have.push_back(static_cast<double>(extent(operand(node, 0), axes[i])));
    if (have.back() == 0 || (known_sizes && (*known_sizes)[i] < 0))
      node.invalid("sizes do not fit the input");
    Expr size = reshape(cut(reshape(sizes, {count}), 0, i, 1), {});
    scales.push_back(convert(size, DType::F64) / have.back());
  }
  Expr low = scales[0], high = scales[0];
  for (Expr scale : scales) low = minimum(low, scale), high = maximum(high, scale);
  std::vector<AxisResize> resizes;
  for (int64_t i = 0; i < count; ++i) {
    Expr scale = policy == "stretch" ? scales[i] : policy == "not_larger" ? low : high;
    int64_t extent = 0;
    if (!known_sizes)
      extent = declared_extent(node, axes[i], sizes);
    else if (policy == "stretch")
      extent = (*known_sizes)[i];
    else
      extent = static_cast<int64_t>(std::floor(*known_scalar(scale) * have[i] + 0.5));
    resizes.push_back({axes[i], extent, scale, {}, {}});
  }
  return resizes;
}

std::vector<int64_t> resize_axes(NodeImport& node) {
  std::vector<int64_t> axes;
  if (node.opset >= 18) axes = node.get_ints("axes");
  for (int64_t& axis : axes) axis = node.axis(axis, node.rank(0));
  if (axes.empty()) axes = axes_from(0, node.rank(0));
  return axes;
}

void read_roi(NodeImport& node, std::vector<AxisResize>& resizes) {
  auto count = static_cast<int64_t>(resizes.size());
  if (!node.has_input(1) || element_count(node.shape(1)) != 2 * count)
    node.invalid("tf_crop_and_resize needs a roi with two entries per axis");
  Expr roi = convert(reshape(operand(node, 1), {2 * count}), DType::F64);
  for (int64_t i = 0; i < count; ++i) {
    AxisResize& resize = resizes[static_cast<size_t>(i)];
    resize.roi_start = reshape(cut(roi, 0, i, 1), {});
    resize.roi_end = reshape(cut(roi, 0, count + i, 1), {});
  }
}

// Upsample and Resize 10.
void resize_simple(NodeImport& node, Expr scales) {
  ResizeOptions options;
  options.mode = node.get_string("mode");
  options.nearest = "simple";
  if (options.mode == "bilinear") options.mode = "linear";
  resize_all(node, options, by_scales(node, scales, axes_from(0, node.rank(0))));
}

} // namespace

void import_upsample_sizes(NodeImport& node) {
  if (node.rank(0) != 4) node.invalid("the input must have rank 4");
  float height = static_cast<float>(node.get_float("height_scale"));
  float width = static_cast<float>(node.get_float("width_scale"));
  std::vector<float> scales{1, 1, height, width};
  resize_simple(node, {&node.g, tensor_f32(node.g, {4}, scales)});
}

void import_upsample_attribute(NodeImport& node) {
  std::vector<float> scales = node.get_floats("scales");
  Shape shape{static_cast<int64_t>(scales.size())};
  resize_simple(node, {&node.g, tensor_f32(node.g, shape, scales)});
}

void import_upsample(NodeImport& node) { resize_simple(node, operand(node, 1)); }

void import_resize(NodeImport& node) {
  ResizeOptions options;
  options.mode = node.get_string("mode");
  options.coordinates = node.get_string("coordinate_transformation_mode");
  options.nearest = node.get_string("nearest_mode");
  options.cubic_a = node.get_float("cubic_coeff_a");
  options.extrapolation = node.get_float("extrapolation_value");
  options.exclude_outside = node.get_int("exclude_outside") != 0;
  options.antialias = node.opset >= 18 && node.get_int("antialias") != 0;
  std::vector<int64_t> axes = resize_axes(node);
  bool has_scales = node.has_input(2) && element_count(node.shape(2)) > 0;
  if (has_scales == node.has_input(3))
    node.invalid("exactly one of scales and sizes must be given");
  std::string policy =
      node.opset >= 18 ? node.get_string("keep_aspect_ratio_policy") : "stretch";
  std::vector<AxisResize> resizes;
  if (has_scales)
    resizes = by_scales(node, operand(node, 2), axes);
  else
    resizes = by_sizes(node, operand(node, 3), axes, policy);
  if (options.coordinates == "tf_crop_and_resize") read_roi(node, resizes);
  resize_all(node, options, resizes);
}

} // namespace svod
