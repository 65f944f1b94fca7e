// Resize and Upsample. Interpolation is separable, so each axis is resized on its own:
// output position -> source coordinate -> a few neighbours and their weights. All of that
// is arithmetic on the scale and the two sizes; known ones fold it into known positions
// and weights, others compute it at run time, within bounds (importer/bounded/bounded.h)
// or a shape that the model declares.
//
// The neighbours of coordinate x for n taps are ceil(x) - n/2 + t, t < n, and the
// fraction is taken in (0, 1]: a coordinate on a pixel leans on the pixel as its right
// neighbour.
#include "importer/bounded/bounded.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace svod::importer {
namespace {

struct ResizeOptions {
  std::string mode = "nearest", coordinates = "asymmetric", nearest = "floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

// One axis: sizes, scale, and for tf_crop_and_resize the window; these as F64 scalars.
struct AxisResize {
  int64_t axis;
  Size from, to;
  Expr scale;
  std::optional<Expr> roi_start, roi_end;
};

Expr f64(Graph& g, double value) { return number(g, DType::F64, value); }

std::optional<double> known_scalar(Expr x) {
  std::optional<std::vector<double>> values = known_floats(*x.g, x.id);
  return values ? std::optional(values->at(0)) : std::nullopt;
}

Expr length_of(const Size& size) { return convert(size.size, DType::F64); }

// The last place of the input's axis; 0 where a run has none.
Expr last_of(const AxisResize& resize) {
  return maximum(length_of(resize.from) - 1.0, 0);
}

Expr choose(Expr test, Expr yes, Expr no) {
  const auto value = known_ints(*test.g, test.id);
  if (value) return value->front() != 0 ? yes : no;
  return select(test, yes, no);
}

// The coordinate in the input of every output position, rank 1. The nearest element is
// found in float, as its implementations do: a scale that has no exact float (9 / 98)
// would put a coordinate that should be whole a hair before it, and the row before is
// taken.
Expr source_coordinates(NodeImport& node, const ResizeOptions& options,
                        const AxisResize& resize) {
  const std::string& mode = options.coordinates;
  const DType type = options.mode == "nearest" ? DType::F32 : DType::F64;
  const auto in_type = [&](Expr x) { return convert(x, type); };
  const Expr at = count_along(node.g, type, resize.to.bound, 0, 1);
  const Expr length = in_type(length_of(resize.from));
  const Expr resized = in_type(length_of(resize.to)), scale = in_type(resize.scale);
  const Expr one = equal(resized, 1.0);
  if (mode == "asymmetric") return at / scale;
  if (mode == "half_pixel") return (at + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel") return choose(one, at, (at + 0.5) / scale - 0.5);
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
  const Expr width = scale * length; // not rounded
  if (mode == "align_corners")
    return select(equal(width, 1.0), like(at, 0), at * (length - 1.0) / (width - 1.0));
  if (mode == "half_pixel_symmetric") {
    const Expr adjustment = resized / width;
    const Expr offset = (-adjustment + 1.0) * (length / 2.0);
    return offset + (at + 0.5) / scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    const Expr start = in_type(*resize.roi_start), end = in_type(*resize.roi_end);
    const Expr span = (end - start) * (length - 1.0);
    const Expr inner = choose(one, span / 2.0, at * span / (resized - 1.0));
    return inner + start * (length - 1.0);
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

Expr within(Expr position, Expr last) { return minimum(maximum(position, 0), last); }

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
  const Expr last = last_of(resize);
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
      Expr inside = both(less_equal(like(p, 0), p), less_equal(p, last));
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
    parts.push_back(take_at(x, resize.axis, within(positions[t], last)) * weight);
  }
  return total(parts);
}

Expr resize_axis(NodeImport& node, const ResizeOptions& options, const AxisResize& resize,
                 Expr x) {
  if (known(resize.from.size) && resize.from.bound == 0)
    node.invalid("an empty axis cannot be resized");
  const Expr at = convert(source_coordinates(node, options, resize), DType::F64);
  const Expr last = last_of(resize);
  Expr y = options.mode == "nearest"
               ? take_at(x, resize.axis,
                         within(nearest_position(node, options.nearest, at, resize.scale),
                                last))
               : interpolate(node, options, resize, x, at);
  if (options.coordinates != "tf_crop_and_resize") return y;
  const Expr inside = both(less_equal(like(at, 0), at), less_equal(at, last));
  return select(along(inside, resize.axis, x.rank()), y, like(y, options.extrapolation));
}

// Whether nothing changes along the axis.
bool is_same(const ResizeOptions& options, const AxisResize& resize) {
  if (known_scalar(resize.scale) != 1.0 || resize.from.size.id != resize.to.size.id ||
      resize.from.bound != resize.to.bound)
    return false;
  return options.coordinates != "tf_crop_and_resize" ||
         (known_scalar(*resize.roi_start) == 0.0 && known_scalar(*resize.roi_end) == 1.0);
}

// Axes that shrink go first, as given; those that grow last, and of them the innermost
// first: what the last one blends are then whole rows, with one pair of weights each
// (21 x 320 x 320 pixels of 20 x 20: 590 to 510 us).
std::vector<AxisResize> with_least_work(std::vector<AxisResize> resizes) {
  std::ranges::sort(resizes, {}, [](const AxisResize& r) {
    const bool grows = known_scalar(r.scale).value_or(0) > 1;
    return std::pair(grows, grows ? -r.axis : r.axis);
  });
  return resizes;
}

void resize_all(NodeImport& node, const ResizeOptions& options,
                std::vector<AxisResize> resizes) {
  Expr x = operand(node, 0);
  DType dtype = x.dtype();
  bool blends = options.mode == "linear" || options.mode == "cubic";
  if (!blends && options.mode != "nearest")
    node.invalid("mode '" + options.mode + "' is not in the specification");
  if (blends && dtype != DType::F64) x = convert(x, DType::F32);
  std::vector<Size> sizes = sizes_of(node, 0);
  for (const AxisResize& resize : with_least_work(std::move(resizes))) {
    sizes[static_cast<size_t>(resize.axis)] = resize.to;
    if (!is_same(options, resize)) x = resize_axis(node, options, resize, x);
  }
  if (blends && is_integer(dtype)) x = apply(Op::Round, x); // converting saturates
  give_bounded(node, 0, convert(x, dtype), sizes);
}

// A new size that only the run knows: the extent that the model declares, else bounded.
Size size_of_run(NodeImport& node, int64_t axis, Expr size) {
  const std::optional<Shape> declared = node.declared_shape(0);
  if (declared && std::ssize(*declared) == node.rank(0)) {
    const int64_t extent = (*declared)[static_cast<size_t>(axis)];
    promise(node, reshape(equal(size, static_cast<double>(extent)), {}));
    return known_size(node.g, extent);
  }
  return bounded_size(node, size);
}

// What a run may divide by, whatever its data: all of an empty axis is not meant.
Expr positive(Expr number) {
  return known(number) ? number : select(less(0, number), number, like(number, 1));
}

// From scales, rounded down in float as shape inference does.
Size scaled_size(NodeImport& node, int64_t axis, const Size& from, Expr scale) {
  const std::optional<double> value = known_scalar(scale);
  if (value && (!(*value > 0) || *value > 1e6)) node.invalid("scales must be positive");
  if (value == 1.0) return from;
  if (value && known(from.size))
    return known_size(node.g,
                      static_cast<int64_t>(std::floor(static_cast<float>(from.bound) *
                                                      static_cast<float>(*value))));
  const Expr wide = convert(from.size, DType::F32) * convert(scale, DType::F32);
  return size_of_run(node, axis, convert(apply(Op::Floor, wide), DType::I64));
}

std::vector<AxisResize> by_scales(NodeImport& node, Expr scales,
                                  const std::vector<int64_t>& axes) {
  if (element_count(scales.shape()) != static_cast<int64_t>(axes.size()))
    node.invalid("scales must have one entry per axis");
  const std::vector<Size> from = sizes_of(node, 0);
  std::vector<AxisResize> resizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr scale = cut(reshape(scales, {static_cast<int64_t>(axes.size())}), 0,
                     static_cast<int64_t>(i), 1);
    scale = reshape(convert(scale, DType::F64), {});
    const Size& have = from[static_cast<size_t>(axes[i])];
    const Size to = scaled_size(node, axes[i], have, scale);
    resizes.push_back({axes[i], have, to, positive(scale), {}, {}});
  }
  return resizes;
}

// Sizes give scales; a policy other than stretch then makes all scales the smallest or
// largest.
std::vector<AxisResize> by_sizes(NodeImport& node, Expr sizes,
                                 const std::vector<int64_t>& axes,
                                 const std::string& policy) {
  const auto count = static_cast<int64_t>(axes.size());
  if (element_count(sizes.shape()) != count)
    node.invalid("sizes must have one entry per axis");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    node.invalid("keep_aspect_ratio_policy '" + policy + "' is not in the specification");
  if (count == 0) return {}; // a scalar
  const std::vector<Size> all = sizes_of(node, 0);
  std::vector<Expr> wanted, scales;
  std::vector<Size> from;
  for (int64_t i = 0; i < count; ++i) {
    from.push_back(all[static_cast<size_t>(axes[static_cast<size_t>(i)])]);
    const Expr size = entry_of(sizes, i);
    const auto value = known_ints(node.g, size.id);
    if (from.back().bound == 0 || (value && value->front() < 0))
      node.invalid("sizes do not fit the input");
    wanted.push_back(size);
    scales.push_back(size.id == from.back().size.id
                         ? f64(node.g, 1)
                         : convert(size, DType::F64) /
                               maximum(length_of(from.back()), 1));
  }
  Expr low = scales[0], high = scales[0];
  for (Expr scale : scales) low = minimum(low, scale), high = maximum(high, scale);
  std::vector<AxisResize> resizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool stretch = policy == "stretch";
    const Expr scale = stretch ? scales[i] : policy == "not_larger" ? low : high;
    Expr size = wanted[i];
    if (!stretch)
      size = convert(apply(Op::Floor, scale * length_of(from[i]) + 0.5), DType::I64);
    if (policy == "not_larger") size = minimum(size, wanted[i]); // which bounds it
    const auto value = known_ints(node.g, size.id);
    const Size to = value                        ? known_size(node.g, value->front())
                    : size.id == from[i].size.id ? from[i]
                                                 : size_of_run(node, axes[i], size);
    resizes.push_back({axes[i], from[i], to, positive(scale), {}, {}});
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
  resize_all(node, options, std::move(resizes));
}

// The rule itself knows about sizes of the run; those of scales and sizes are known.
void bounded_resize(NodeImport& node, Rule rule) {
  for (size_t i = 1; i < node.input_count(); ++i)
    if (!node.counts(i).empty()) refuse_bounded(node, i, 0);
  rule(node);
}

} // namespace svod::importer
