// Operators that ONNX Runtime's optimiser puts in for a few standard ones (domain
// com.microsoft), and some of ONNX's first versions that never became standard.
#include "importer/bounded/bounded.h"
#include "importer/bounded/standardize.h"
#include "importer/formula/formula.h"

namespace svod::importer {

namespace {

Expr with_bias(NodeImport& node, size_t i) {
  const Expr x = wide(node, 0);
  if (!node.has_input(i)) return x;
  const Expr bias = wide(node, i);
  require(node, bias.dtype() == x.dtype(), "the operands' element types differ");
  require_broadcast(node, bias.shape(), x.shape());
  return x + bias;
}

// x + parameter i where there is one.
Expr plus_optional(NodeImport& node, Expr x, size_t i) {
  if (!node.has_input(i)) return x;
  require_broadcast(node, node.shape(i), x.shape());
  return x + convert(wide(node, i), x.dtype());
}

Expr times(NodeImport& node, Expr x, size_t i) {
  require_broadcast(node, node.shape(i), x.shape());
  return x * convert(wide(node, i), x.dtype());
}

// Rows of a table [rows, width] at indices of any shape.
Expr rows_at(NodeImport& node, size_t table, Expr index) {
  const Expr rows = wide(node, table);
  require(node, rows.rank() == 2, "an embedding must be a matrix");
  Shape shape = index.shape();
  const Expr flat = reshape(index, {element_count(shape)});
  shape.push_back(extent(rows, 1));
  return reshape(take(rows, 0, flat), shape);
}

} // namespace

void import_erf_gelu(NodeImport& node) { finish(node, gelu(wide(node, 0))); }
void import_bias_gelu(NodeImport& node) { finish(node, gelu(with_bias(node, 1))); }
void import_fast_gelu(NodeImport& node) { finish(node, gelu_tanh(with_bias(node, 1))); }

void import_quick_gelu(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, x * sigmoid(x * node.get_float("alpha")));
}

// input, skip, gamma, then beta and bias, or without the mean (Simplified) bias alone.
void import_skip_layer_norm(NodeImport& node) {
  const bool simplified = node.model_node.op_type.starts_with("SkipSimplified");
  Expr x = plus_optional(node, wide(node, 0), 1);
  x = plus_optional(node, x, simplified ? 3 : 4);
  require(node, x.rank() >= 1, "input 0 has no axis");
  const std::vector<int64_t> last{x.rank() - 1};
  const double epsilon = node.get_float("epsilon");
  if (simplified) {
    const Expr inverse = reciprocal(sqrt(mean(x * x, last) + epsilon));
    finish(node, times(node, x * inverse, 2));
    if (node.wants_output(1)) give(node, 1, like(inverse, 0)); // no mean is taken
    if (node.wants_output(2)) give(node, 2, inverse);
  } else {
    const Standardized parts = standardize(x, last, epsilon);
    finish(node, plus_optional(node, times(node, parts.value, 2), 3));
    if (node.wants_output(1)) give(node, 1, parts.mean);
    if (node.wants_output(2)) give(node, 2, parts.inverse_deviation);
  }
  if (node.wants_output(3)) finish(node, x, 3);
}

// Sum of word, position and segment embeddings, normalised. Inputs: word ids, segment
// ids, the three tables, gamma, beta, mask, position ids.
void import_embed_layer_norm(NodeImport& node) {
  const Expr words = operand(node, 0);
  require(node, words.rank() == 2, "the ids must be [batch, length]");
  const int64_t batch = extent(words, 0), length = extent(words, 1);
  Expr positions = counter(node.g, DType::I64, {1, length}, 1);
  if (node.has_input(8)) positions = operand(node, 8);
  Expr x = rows_at(node, 2, words);
  const Expr places = rows_at(node, 3, positions);
  require_broadcast(node, places.shape(), x.shape());
  x = x + places;
  if (node.has_input(1) && node.has_input(4)) {
    const Expr segments = rows_at(node, 4, operand(node, 1));
    require_broadcast(node, segments.shape(), x.shape());
    x = x + segments;
  }
  const Standardized parts = standardize(x, {2}, node.get_float("epsilon"));
  const DType dtype = node.dtype(2);
  const Expr y = plus_optional(node, times(node, parts.value, 5), 6);
  give(node, 0, convert(y, dtype));
  if (node.wants_output(1)) {
    Expr mask = number(node.g, DType::I32, 0);
    if (node.has_input(7)) {
      require(node, node.rank(7) == 2 && node.shape(7)[0] == batch,
              "the mask must be [batch, length]");
      mask = sum(convert(operand(node, 7), DType::I32), {1});
    }
    give(node, 1, broadcast(reshape(mask, {element_count(mask.shape())}), {batch}));
  }
  if (node.wants_output(2)) give(node, 2, convert(x, dtype));
}

// Words, segments, mask and places are [batch, length].
void bounded_embed_layer_norm(NodeImport& node, Rule rule) {
  agree_on_groups(node,
                  {{{0, 0}, {1, 0}, {7, 0}, {8, 0}}, {{0, 1}, {1, 1}, {7, 1}, {8, 1}}});
  for (const size_t i : {0, 1, 7, 8}) zero_beyond(node, i);
  rule(node);
  const NodeId batch = count_along(node, 0, 0), length = count_along(node, 0, 1);
  for (const size_t out : {0, 2})
    if (node.wants_output(out)) node.set_counts(out, tidy({batch, length, kNoNode}));
  if (node.wants_output(1)) node.set_counts(1, tidy({batch}));
}

void import_affine(NodeImport& node) {
  finish(node, wide(node, 0) * node.get_float("alpha") + node.get_float("beta"));
}

void import_scaled_tanh(NodeImport& node) {
  finish(node, node.get_float("alpha") * tanh(wide(node, 0) * node.get_float("beta")));
}

void import_parametric_softplus(NodeImport& node) {
  const Expr x = wide(node, 0) * node.get_float("beta");
  finish(node, node.get_float("alpha") * softplus(x));
}

void import_image_scaler(NodeImport& node) {
  const Expr x = wide(node, 0);
  const std::vector<float> bias = node.get_floats("bias");
  require(node, x.rank() >= 2 && std::ssize(bias) == extent(x, 1),
          "attribute 'bias' must have one number per channel");
  const Expr values = with(x, tensor_f32(node.g, {std::ssize(bias)}, bias));
  finish(node,
         x * node.get_float("scale") + per_channel(convert(values, x.dtype()), x.rank()));
}

// Removes a border [left, top, right, bottom], or with `scale` keeps [height, width] from
// the border's corner on.
void import_crop(NodeImport& node) {
  const Expr x = operand(node, 0);
  const std::vector<int64_t> border = node.get_ints("border");
  const std::vector<int64_t> scale = node.get_ints("scale");
  require(node,
          x.rank() == 4 && border.size() == 4 && (scale.empty() || scale.size() == 2),
          "Crop wants an image batch, four borders and two extents");
  int64_t height = extent(x, 2) - border[1] - border[3];
  int64_t width = extent(x, 3) - border[0] - border[2];
  if (!scale.empty()) {
    height = scale[0];
    width = scale[1];
  }
  const auto inside = [](int64_t start, int64_t count, int64_t size) {
    return start >= 0 && count >= 0 && start <= size && count <= size - start;
  };
  require(node,
          inside(border[1], height, extent(x, 2)) &&
              inside(border[0], width, extent(x, 3)),
          "the border is larger than the image");
  give(node, 0, cut(cut(x, 2, border[1], height), 3, border[0], width));
}

// Caffe2's: the shape is an attribute, the input's own, or with input_as_shape the
// input's values, and extra_shape follows it.
void import_constant_fill(NodeImport& node) {
  Shape shape = node.get_ints("shape");
  if (node.input_count() > 0 && !node.has("shape"))
    shape = node.get_int("input_as_shape") != 0 ? node.known_ints(0) : node.shape(0);
  for (int64_t extra : node.get_ints("extra_shape")) shape.push_back(extra);
  for (int64_t size : shape) within_reach(node, size, "an extent of the shape");
  const auto dtype = dtype_from_onnx(static_cast<int>(node.get_int("dtype")));
  if (!dtype) node.unsupported("this element type");
  node.output(0, constant(node.g, *dtype, shape, node.get_float("value")));
}

// The negative and the positive part.
void import_neg_pos(NodeImport& node) {
  const Expr x = wide(node, 0);
  finish(node, minimum(x, 0));
  if (node.wants_output(1)) finish(node, maximum(x, 0), 1);
}

} // namespace svod::importer
