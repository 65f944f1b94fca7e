// Normalisations: mean and variance over some axes, then scale and shift. Half precision
// is computed in f32 throughout and rounded once.
#include "importer/bounded/standardize.h"
#include "importer/formula/formula.h"

#include <algorithm>

namespace svod::importer {

namespace {

void require_channels(NodeImport& node, size_t i, int64_t channels) {
  if (node.shape(i) != Shape{channels})
    node.invalid("input " + std::to_string(i) + " must have the shape [" +
                 std::to_string(channels) + "], not " + shape_text(node.shape(i)));
}

// Parameter i laid along the channels, in x's type.
Expr channel_parameter(NodeImport& node, size_t i, Expr x) {
  require(node, x.rank() >= 2, "input 0 must have a batch and a channel axis");
  require_channels(node, i, extent(x, 1));
  return per_channel(convert(wide(node, i), x.dtype()), x.rank());
}

// Before opset 9, spatial = 0 gives every element of [C, s..] its own parameter.
Expr batch_parameter(NodeImport& node, size_t i, Expr x) {
  if (!node.has("spatial") || node.get_int("spatial"))
    return channel_parameter(node, i, x);
  Shape shape = x.shape();
  shape[0] = 1;
  const Expr value = convert(wide(node, i), x.dtype());
  require(node, element_count(value.shape()) == element_count(shape),
          "a parameter must have one number per element of an image");
  return reshape(value, shape);
}

// y = x * a + b with a and b known when the parameters are: a convolution takes them in.
void finish_batch_norm(NodeImport& node, Expr x, Expr center, Expr variance) {
  const Expr scale =
      batch_parameter(node, 1, x) / sqrt(variance + node.get_float("epsilon"));
  const Expr shift = batch_parameter(node, 2, x) - center * scale;
  finish(node, x * scale + shift);
}

// Training: the batch's own mean and variance, and running ones as further results.
void import_batch_norm_training(NodeImport& node, Expr x) {
  std::vector<int64_t> axes = axes_from(0, x.rank());
  axes.erase(axes.begin() + 1);
  const Expr center = mean(x, axes), difference = x - center;
  const Expr variance = mean(difference * difference, axes);
  finish_batch_norm(node, x, center, variance);
  const double momentum = node.get_float("momentum");
  const auto give_running = [&](size_t i, size_t input, Expr now) {
    if (!node.wants_output(i)) return;
    const Expr before = channel_parameter(node, input, x);
    const Expr after = before * momentum + now * (1 - momentum);
    give(node, i, convert(reshape(after, {extent(x, 1)}), node.dtype(input)));
  };
  give_running(1, 3, center);
  give_running(2, 4, variance);
}

// The type of a stage by its stash_type attribute, 0 being the input's own; computing in
// a wider one is allowed.
DType stash_dtype(NodeImport& node) {
  if (node.get_int("stash_type") == 0) return node.dtype(0);
  const auto dtype = dtype_from_onnx(static_cast<int>(node.get_int("stash_type")));
  require(node, dtype && is_float(*dtype), "stash_type must be a floating point type");
  return *dtype;
}

// Scale and bias of the last axes.
Expr trailing_parameter(NodeImport& node, size_t i, Expr x) {
  require_broadcast(node, node.shape(i), Shape(x.shape()));
  return convert(wide(node, i), x.dtype());
}

} // namespace

void import_batch_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 2, "input 0 must have a batch and a channel axis");
  require(node, is_float(x.dtype()), "input 0 must hold floating point numbers");
  if (node.has("training_mode") && node.get_int("training_mode"))
    return import_batch_norm_training(node, x);
  for (size_t i = 1; i < node.output_count(); ++i)
    if (node.wants_output(i)) node.unsupported("BatchNormalization in training mode");
  finish_batch_norm(node, x, batch_parameter(node, 3, x), batch_parameter(node, 4, x));
}

// Fewer positions are not worth sums of their own.
static constexpr int64_t kFewestPositions = 8;

static bool has_positions(const Shape& x) {
  return x.size() >= 3 && element_count(x) >= kFewestPositions * x[0] * x[1];
}

// Channels and positions that x merges group by group, as exporters write a group
// normalisation; x where it does not.
static Expr before_groups(Expr x) {
  const Node& node = (*x.g)[x.id];
  if (node.op != Op::Reshape) return x;
  const Expr picture{x.g, node.inputs[0]};
  const Shape &from = picture.shape(), &to = x.shape();
  const bool groups = has_positions(from) && from[0] == to[0] && to[1] > 0 &&
                      from[1] > to[1] && from[1] % to[1] == 0;
  return groups ? picture : x;
}

void import_instance_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 3, "input 0 must have a batch, a channel and spatial axes");
  const Expr picture = before_groups(x);
  if (picture.id != x.id && node.counts(0).empty()) {
    const Expr y = reshape(
        standardize_groups(picture, extent(x, 1), node.get_float("epsilon")), x.shape());
    finish(node, y * channel_parameter(node, 1, x) + channel_parameter(node, 2, x));
    return;
  }
  const Expr y =
      standardize(x, axes_from(2, x.rank()), node.get_float("epsilon"), node.counts(0))
          .value;
  finish(node, y * channel_parameter(node, 1, x) + channel_parameter(node, 2, x));
}

void import_layer_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  const DType stash = stash_dtype(node);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const Standardized parts =
      standardize(x, axes_from(axis, x.rank()), node.get_float("epsilon"));
  Expr y = parts.value * trailing_parameter(node, 1, x);
  if (node.has_input(2)) y = y + trailing_parameter(node, 2, x);
  // com.microsoft's, before the standard had it, gives the type of the scale.
  give(node, 0, convert(y, node.dtype(node.opset < 17 ? 1 : 0)));
  if (node.wants_output(1)) give(node, 1, convert(parts.mean, stash));
  if (node.wants_output(2)) give(node, 2, convert(parts.inverse_deviation, stash));
}

// Scale and bias are per group in opset 18, per channel since 21.
void import_group_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 2, "input 0 must have a batch and a channel axis");
  const Shape shape = x.shape();
  const int64_t groups = node.get_int("num_groups");
  require(node, groups >= 1 && shape[1] % groups == 0,
          "num_groups does not divide the channels");
  const bool by_group = node.opset < 21;
  if (node.counts(0).empty() && has_positions(shape) && element_count(shape) > 0 &&
      !by_group) {
    const Expr y = standardize_groups(x, groups, node.get_float("epsilon"));
    finish(node, y * channel_parameter(node, 1, x) + channel_parameter(node, 2, x));
    return;
  }
  Shape split = shape;
  split[1] = groups;
  split.insert(split.begin() + 2, shape[1] / groups);
  const Expr grouped = reshape(x, split);
  Counts counts = node.counts(0);
  if (!counts.empty()) counts.insert(counts.begin() + 2, kNoNode);
  const Expr y = standardize(grouped, axes_from(2, grouped.rank()),
                             node.get_float("epsilon"), counts)
                     .value;
  const Expr base = by_group ? y : reshape(y, shape);
  finish(node, reshape(base * channel_parameter(node, 1, base) +
                           channel_parameter(node, 2, base),
                       shape));
}

void import_rms_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  stash_dtype(node);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const Expr square = mean(x * x, axes_from(axis, x.rank()));
  const Expr y = x * reciprocal(sqrt(square + node.get_float("epsilon")));
  finish(node, y * trailing_parameter(node, 1, x));
}

void import_lp_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  const int64_t p = node.get_int("p");
  require(node, p == 1 || p == 2, "p must be 1 or 2");
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const Expr norm = p == 1 ? sum(absolute(x), {axis}) : sqrt(sum(x * x, {axis}));
  finish(node, select(equal(norm, 0), like(x, 0), x / norm));
}

void import_lrn(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 2, "input 0 must have a batch and a channel axis");
  const int64_t size = node.get_int("size");
  require(node, size >= 1 && size < (1 << 24), "size is out of range");
  Shape low(x.shape().size(), 0), high = low;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  const Expr squares = pad(x * x, low, high, 0);
  const Expr region = with(x, window(node.g, squares.id, 1, size, 1, 1));
  const Expr total = reshape(sum(region, {x.rank()}), Shape(x.shape()));
  const double alpha = node.get_float("alpha") / static_cast<double>(size);
  finish(node, x / power(total * alpha + node.get_float("bias"), node.get_float("beta")));
}

void import_mean_variance_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  std::vector<int64_t> axes = node.get_ints("axes");
  for (int64_t& axis : axes) axis = node.axis(axis, x.rank());
  const Expr difference = x - mean(x, axes);
  finish(node, difference / (sqrt(mean(difference * difference, axes)) + 1e-9));
}

} // namespace svod::importer
