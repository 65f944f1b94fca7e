// Operators of com.microsoft that a formula says: fusions of a few standard operators,
// and those of its training and decoder graphs that compute no more than elements and
// rows.
#include "importer/bounded/standardize.h"
#include "importer/formula/formula.h"

#include <algorithm>
#include <limits>

namespace svod::importer {

namespace {

Expr plus(NodeImport& node, Expr x, size_t i) {
  if (!node.has_input(i)) return x;
  require_broadcast(node, node.shape(i), x.shape());
  return x + convert(wide(node, i), x.dtype());
}

Expr silu(Expr x) { return x * sigmoid(x); }

Expr last_halves(NodeImport& node, Expr x, int64_t which) {
  const int64_t axis = x.rank() - 1;
  require(node, x.rank() >= 1 && extent(x, axis) % 2 == 0,
          "the last axis must have an even extent");
  const int64_t half = extent(x, axis) / 2;
  return cut(x, axis, which * half, half);
}

// Normalises the channels of each group together with all positions; channels are the
// last axis or the second.
Expr normalized_groups(NodeImport& node, Expr x) {
  require(node, x.rank() >= 3, "the input must have a batch, channels and positions");
  const bool last = node.get_int("channels_last") != 0;
  const int64_t rank = x.rank(), channels = extent(x, last ? rank - 1 : 1);
  const int64_t groups = node.get_int("groups");
  require(node, groups > 0 && channels % groups == 0,
          "groups does not divide the channels");
  int64_t positions = 1;
  for (int64_t axis = 1; axis < rank; ++axis)
    if (axis != (last ? rank - 1 : 1)) positions *= extent(x, axis);
  Shape split{extent(x, 0), groups, channels / groups, positions};
  if (last) split = {extent(x, 0), positions, groups, channels / groups};
  const std::vector<int64_t> axes =
      last ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{2, 3};
  const Expr y = standardize(reshape(x, split), axes, node.get_float("epsilon")).value;
  Shape parameter(static_cast<size_t>(rank), 1);
  parameter[last ? rank - 1 : 1] = channels;
  for (size_t i : {1, 2})
    require(node, node.shape(i) == Shape{channels},
            "gamma and beta must have one number per channel");
  const Expr scaled = reshape(y, Shape(x.shape())) * reshape(wide(node, 1), parameter) +
                      reshape(wide(node, 2), parameter);
  return node.get_int("activation") != 0 ? silu(scaled) : scaled;
}

// [.., 2] as its two parts.
Expr part_of_complex(NodeImport& node, size_t i, int64_t which) {
  const Expr x = wide(node, i);
  require(node, x.rank() >= 1 && extent(x, x.rank() - 1) == 2,
          "the last axis must hold a real and an imaginary part");
  return cut(x, x.rank() - 1, which, 1);
}

void complex_product(NodeImport& node, double sign) {
  const Expr a = part_of_complex(node, 0, 0), b = part_of_complex(node, 0, 1);
  const Expr c = part_of_complex(node, 1, 0), d = part_of_complex(node, 1, 1) * sign;
  broadcast_shape(node, {a.shape(), c.shape()});
  finish(node, join({a * c - b * d, a * d + b * c}, (a * c).rank() - 1));
}

// x / sqrt(mean of squares + epsilon) over the last `width` elements of each row.
Expr normalized_rows(NodeImport& node, Expr x, int64_t width) {
  require(node, x.rank() >= 1 && width > 0 && extent(x, x.rank() - 1) % width == 0,
          "the scale does not divide the last axis");
  Shape split = x.shape();
  split.back() /= width;
  split.push_back(width);
  const Expr rows = reshape(x, split);
  const Expr square = mean(rows * rows, {rows.rank() - 1});
  return rows * reciprocal(sqrt(square + node.get_float("epsilon")));
}

} // namespace

void import_bias_add(NodeImport& node) {
  finish(node, plus(node, plus(node, wide(node, 0), 1), 2));
}

// Inference: nothing is dropped.
void import_bias_dropout(NodeImport& node) {
  if (node.has_input(4) && known_int(node, 4) != 0)
    node.unsupported("training mode: its dropped elements are random");
  finish(node, plus(node, plus(node, wide(node, 0), 1), 2));
  if (node.wants_output(1))
    node.output(1, constant(node.g, DType::Bool, Shape(node.shape(0)), 1));
}

// The mask is a bit per element, in words.
void import_bitmask_dropout(NodeImport& node) {
  const bool biased = node.model_node.op_type == "BitmaskBiasDropout";
  const size_t training = biased ? 4 : 2;
  if (node.has_input(training) && known_int(node, training) != 0)
    node.unsupported("training mode: its dropped elements are random");
  const Expr x = wide(node, 0);
  finish(node, biased ? plus(node, plus(node, x, 1), 2) : x);
  const int64_t words = (element_count(x.shape()) + 31) / 32;
  if (node.wants_output(1))
    node.output(1, constant(node.g, DType::U32, {words}, 4294967295.0));
}

void import_bias_split_gelu(NodeImport& node) {
  const Expr x = plus(node, wide(node, 0), 1);
  finish(node, last_halves(node, x, 0) * gelu(last_halves(node, x, 1)));
}

void import_bias_softmax(NodeImport& node) {
  const Expr x = plus(node, wide(node, 0), 1);
  finish(node,
         softmax(x, axes_from(node.axis(node.get_int("axis"), x.rank()), x.rank())));
}

void import_vendor_group_norm(NodeImport& node) {
  finish(node, normalized_groups(node, wide(node, 0)));
}

// The skip may be [N, 1, 1, C] or [N, C], the bias [C].
void import_skip_group_norm(NodeImport& node) {
  Expr x = wide(node, 0);
  Expr skip = wide(node, 3);
  if (skip.rank() == 2 && x.rank() == 4) {
    require(node, node.get_int("channels_last") != 0, "the skip has too few axes");
    skip = unsqueeze(unsqueeze(skip, 1), 1);
  }
  require_broadcast(node, skip.shape(), x.shape());
  x = x + convert(skip, x.dtype());
  if (node.has_input(4)) {
    require(node, node.get_int("channels_last") != 0 || node.rank(4) == x.rank(),
            "the bias does not fit the channels");
    x = plus(node, x, 4);
  }
  finish(node, normalized_groups(node, x));
  if (node.wants_output(1)) finish(node, x, 1);
}

void import_scaled_silu(NodeImport& node) {
  const Expr x = wide(node, 0);
  if (!node.has_input(1)) return finish(node, silu(x * node.get_float("alpha")));
  require(node, element_count(node.shape(1)) == 1, "the scale must be one number");
  finish(node, silu(x * reshape(convert(wide(node, 1), x.dtype()), {})));
}

void import_gated_add(NodeImport& node) {
  const Expr x = wide(node, 0), y = wide(node, 1), gate = wide(node, 2);
  require(node, y.shape() == x.shape(), "X and Y differ in shape");
  require_broadcast(node, gate.shape(), x.shape());
  finish(node, x + y * gate);
}

void import_gated_rms_norm(NodeImport& node) {
  const Expr x = wide(node, 0), scale = wide(node, 1), gate = wide(node, 2);
  require(node, scale.rank() == 1 && gate.shape() == x.shape(),
          "scale or gate does not fit the input");
  const std::string how = node.get_string("activation");
  require(node, how == "silu" || how == "swish" || how == "sigmoid",
          "activation must be silu, swish or sigmoid");
  const Expr y = normalized_rows(node, x, extent(scale, 0)) * scale;
  finish(node,
         reshape(y, Shape(x.shape())) * (how == "sigmoid" ? sigmoid(gate) : silu(gate)));
}

void import_branchwise_rms_norm(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 1, "the input has no axis");
  const int64_t branches = node.get_int("num_branches");
  const int64_t last = extent(x, x.rank() - 1);
  require(node, branches >= 0 && (branches == 0 || last % branches == 0),
          "num_branches does not divide the last axis");
  Expr y = normalized_rows(node, x, branches > 0 ? last / branches : last);
  if (node.has_input(1)) {
    // [H], [C, H], or both in one axis.
    const Expr scale = wide(node, 1);
    const int64_t count = element_count(scale.shape());
    const int64_t width = branches > 0 ? last / branches : last;
    const int64_t outer = x.rank() > 1 ? extent(x, x.rank() - 2) : 1;
    require(node,
            count == width ||
                (width > 0 && count == width * (branches > 0 ? branches : outer)),
            "scale does not fit the input");
    if (branches > 0)
      y = y * reshape(scale, {count / (last / branches), last / branches});
    else if (count == last)
      y = y * reshape(scale, {last});
    else
      y = reshape(y, Shape(x.shape())) * reshape(scale, {count / last, last});
  }
  finish(node, reshape(y, Shape(x.shape())));
}

void import_linear_attention_gate(NodeImport& node) {
  const Expr a = wide(node, 0);
  for (size_t i : {1, 2}) require_broadcast(node, node.shape(i), a.shape());
  finish(node, softplus(a + wide(node, 1)) * wide(node, 2));
  if (node.wants_output(1)) finish(node, sigmoid(wide(node, 3)), 1);
}

void import_is_all_finite(NodeImport& node) {
  const bool only_nan = node.get_int("isnan_only") != 0;
  const bool only_infinite = node.get_int("isinf_only") != 0;
  Expr bad = number(node.g, DType::I32, 0);
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Expr x = wide(node, i), is_nan = apply(Op::IsNan, x);
    const Expr infinite = equal(absolute(x), std::numeric_limits<double>::infinity());
    const Expr here = only_nan        ? is_nan
                      : only_infinite ? infinite
                                      : either(is_nan, infinite);
    const Expr any =
        reduce(Op::ReduceMax, convert(here, DType::I32), axes_from(0, x.rank()));
    bad = maximum(bad, reshape(any, {}));
  }
  give(node, 0, equal(bad, 0));
}

void import_complex_mul(NodeImport& node) { complex_product(node, 1); }
void import_complex_mul_conj(NodeImport& node) { complex_product(node, -1); }

void import_mul_integer(NodeImport& node) {
  const auto centered = [&](size_t i) {
    const Expr x = convert(operand(node, i), DType::I32);
    if (!node.has_input(i + 1)) return x;
    require(node, element_count(node.shape(i + 1)) == 1,
            "a zero point must be one number");
    return x - reshape(convert(operand(node, i + 1), DType::I32), {});
  };
  broadcast_shape(node, {node.shape(0), node.shape(2)});
  give(node, 0, centered(0) * centered(2));
}

void import_reduce_sum_integer(NodeImport& node) {
  const Expr x = convert(operand(node, 0), DType::I32);
  std::vector<int64_t> axes;
  Shape kept;
  for (int64_t axis : node.get_ints("axes")) axes.push_back(node.axis(axis, x.rank()));
  const auto is_reduced = [&](int64_t axis) {
    return std::ranges::find(axes, axis) != axes.end();
  };
  std::vector<int64_t> sorted;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (is_reduced(axis)) sorted.push_back(axis);
    if (!is_reduced(axis)) kept.push_back(extent(x, axis));
  }
  const Expr y = sum(x, sorted);
  give(node, 0, node.get_int("keepdims") != 0 ? y : reshape(y, kept));
}

void import_sample_op(NodeImport& node) { node.output(0, node.input(0)); }

void import_expand_dims(NodeImport& node) {
  const int64_t rank = node.rank(0) + 1;
  give(node, 0, unsqueeze(operand(node, 0), node.axis(known_int(node, 1), rank)));
}

// Rows of a table; the training attributes change gradients only.
void import_torch_embedding(NodeImport& node) {
  const Expr table = operand(node, 0);
  require(node, table.rank() == 2, "the table must be a matrix");
  const Expr index = wrap_index(node, operand(node, 1), extent(table, 0));
  Shape shape = index.shape();
  const Expr flat = reshape(index, {element_count(shape)});
  shape.push_back(extent(table, 1));
  give(node, 0, reshape(take(table, 0, flat), shape));
}

// Distances of all rows of A to all rows of B.
void import_cdist(NodeImport& node) {
  const Expr a = wide(node, 0), b = wide(node, 1);
  require(node, a.rank() == 2 && b.rank() == 2 && extent(a, 1) == extent(b, 1),
          "A and B must be matrices of equally long rows");
  const std::string metric = node.get_string("metric");
  if (metric != "sqeuclidean" && metric != "euclidean")
    node.unsupported("metric '" + metric + "'");
  const Expr difference = unsqueeze(a, 1) - unsqueeze(b, 0);
  const Expr square = squeeze(sum(difference * difference, {2}), 2);
  finish(node, metric == "euclidean" ? sqrt(square) : square);
}

// Windows along an axis become a new last axis.
void import_unfold_tensor(NodeImport& node) {
  const Expr x = operand(node, 0);
  const int64_t axis = node.axis(node.get_int("dim"), x.rank());
  const int64_t size = within_reach(node, node.get_int("size"), "size");
  const int64_t step = within_reach(node, node.get_int("step"), "step");
  require(node, size > 0 && step > 0 && size <= extent(x, axis),
          "size or step does not fit the axis");
  give(node, 0, with(x, window(node.g, x.id, axis, size, step, 1)));
}

void import_gemm_fast_gelu(NodeImport& node) {
  finish(node,
         gelu_tanh(plus(node, checked_matmul(node, wide(node, 0), wide(node, 1)), 2)));
}

} // namespace svod::importer
