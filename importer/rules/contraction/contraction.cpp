// Convolutions and products of matrices. Half precision is summed in f32.
#include "importer/formula/convolution.h"
#include "importer/formula/formula.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {

namespace {

Expr add_bias(NodeImport& node, Expr y, size_t index) {
  if (!node.has_input(index)) return y;
  const Expr bias = wide(node, index);
  require(node, bias.dtype() == y.dtype() && bias.shape() == Shape{extent(y, 1)},
          "the bias must be one number per output channel");
  return y + per_channel(bias, y.rank());
}

Expr convolution(NodeImport& node) {
  const Expr x = wide(node, 0), w = wide(node, 1);
  require(node, x.dtype() == w.dtype() && is_float(x.dtype()),
          "input and weights must have one floating point type");
  return add_bias(node, checked_convolution(node, x, w), 2);
}

// Extents and start of a transposed convolution: from output_shape, or from the pads.
// Which side has the odd element of padding is as opset 11 says it; the text of opset 1
// has the sides exchanged, against its own description of auto_pad.
Placement read_placement(NodeImport& node, const Shape& extents, const Windows& windows) {
  const size_t count = extents.size();
  const Shape more = ints_or(node, "output_padding", count, 0);
  Shape wanted = node.get_ints("output_shape");
  if (wanted.size() == count + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  require(node, wanted.empty() || wanted.size() == count,
          "output_shape has another number of axes than the input");
  const std::string mode = node.get_string("auto_pad");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  Placement result;
  for (size_t i = 0; i < count; ++i) {
    require(node, more[i] >= 0 && more[i] < (int64_t{1} << 31),
            "output_padding is negative or too large");
    const int64_t full =
        (extents[i] - 1) * windows.stride[i] + windows.reach(i) + more[i];
    if (wanted.empty() && !same) {
      result.start.push_back(windows.low[i]);
      result.extent.push_back(full - windows.low[i] - windows.high[i]);
    } else {
      const int64_t size = wanted.empty() ? extents[i] * windows.stride[i] : wanted[i];
      const int64_t excess = std::max<int64_t>(full - size, 0);
      result.start.push_back(mode == "SAME_UPPER" ? excess / 2 : excess - excess / 2);
      result.extent.push_back(size);
    }
    require(node, result.extent[i] > 0, "the result would be empty");
  }
  return result;
}

// Opset < 7 broadcasts C only when told to.
Expr gemm_addend(NodeImport& node, const Shape& product) {
  const Expr c = wide(node, 2);
  if (node.opset < 7 && node.model_node.domain.empty() && !node.get_int("broadcast"))
    require(node, c.shape() == product, "C has another shape than the product");
  require_broadcast(node, c.shape(), product);
  return c;
}

// x times a scalar attribute. On integers the scalar must be whole.
Expr scaled(NodeImport& node, Expr x, double factor) {
  if (factor == 1) return x;
  if (!is_float(x.dtype()) && factor != std::floor(factor))
    node.unsupported("integers scaled by a fraction");
  return x * factor;
}

Expr product_of_matrices(NodeImport& node) {
  Expr a = wide(node, 0), b = wide(node, 1);
  require(node, a.rank() == 2 && b.rank() == 2, "A and B must be matrices");
  if (node.get_int("transA")) a = with(a, permute_last_two(node.g, a.id));
  if (node.get_int("transB")) b = with(b, permute_last_two(node.g, b.id));
  Expr y = scaled(node, checked_matmul(node, a, b), node.get_float("alpha"));
  if (node.has_input(2)) {
    const Expr c = gemm_addend(node, Shape(y.shape()));
    require(node, c.dtype() == y.dtype(), "the operands' element types differ");
    y = y + scaled(node, c, node.get_float("beta"));
  }
  return y;
}

} // namespace

void import_conv(NodeImport& node) { finish(node, convolution(node)); }

// com.microsoft: a convolution, optionally the addition of input 3, and an activation.
static Expr fused_convolution(NodeImport& node) {
  Expr y = convolution(node);
  if (node.has_input(3)) {
    const Expr z = wide(node, 3);
    require(node, z.dtype() == y.dtype(), "the operands' element types differ");
    require_broadcast(node, z.shape(), y.shape());
    y = y + z;
  }
  return activation(node, node.get_string("activation"), y,
                    node.get_floats("activation_params"));
}

void import_fused_conv(NodeImport& node) { finish(node, fused_convolution(node)); }

// The same with channels as the last axis of inputs 0 and 3 and of the result; weights
// are as ever.
void import_nhwc_conv(NodeImport& node) {
  for (size_t i : {0, 3})
    if (node.has_input(i))
      node.replace_input(i, channels_second(node, operand(node, i)).id);
  const bool fused = node.model_node.op_type == "NhwcFusedConv";
  finish(node, channels_last(fused ? fused_convolution(node) : convolution(node)));
}

// `pads`: in place of the attribute.
static void transpose_convolution(NodeImport& node, const std::vector<int64_t>& pads,
                                  size_t bias) {
  const Expr x = wide(node, 0), w = wide(node, 1);
  require(node, x.dtype() == w.dtype() && is_float(x.dtype()),
          "input and weights must have one floating point type");
  const Shape input = x.shape(), weights = w.shape();
  Windows windows = convolution_windows(node, input, weights, kLongerResult);
  for (size_t i = 0; !pads.empty() && i < windows.axes(); ++i) {
    require(node, pads.size() == 2 * windows.axes(),
            "there must be two pads per spatial axis");
    windows.low[i] = within_reach(node, pads[i], "a pad");
    windows.high[i] = within_reach(node, pads[windows.axes() + i], "a pad");
  }
  require(node, weights[0] == input[1], "the weights' channels do not fit the input's");
  const int64_t groups = read_groups(node, input[1], weights[0]);
  const Shape extents(input.begin() + 2, input.end());
  for (int64_t size : extents) require(node, size > 0, "a spatial axis is empty");
  const Placement placement = read_placement(node, extents, windows);
  finish(node,
         add_bias(node, convolve_transposed(x, w, windows, groups, placement), bias));
}

void import_conv_transpose(NodeImport& node) { transpose_convolution(node, {}, 2); }

// com.microsoft: the pads are input 2.
void import_conv_transpose_with_pads(NodeImport& node) {
  transpose_convolution(
      node, node.has_input(2) ? node.known_ints(2) : std::vector<int64_t>{}, 3);
}

void import_matmul(NodeImport& node) {
  finish(node, checked_matmul(node, wide(node, 0), wide(node, 1)));
}

void import_gemm(NodeImport& node) { finish(node, product_of_matrices(node)); }

// com.microsoft: alpha * op(A) op(B), where trans* swaps the last two axes and
// transBatch* moves the first axis of [batch.., M, K] before the last: [M, batch.., K].
static Expr fused_product(NodeImport& node) {
  const auto prepared = [&](size_t i, const char* transpose, const char* batch) {
    Expr x = wide(node, i);
    if (node.has(batch) && node.get_int(batch)) {
      require(node, x.rank() >= 3, "transBatch wants a batch axis");
      std::vector<int64_t> order = axes_from(0, x.rank());
      std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
      x = permute(x, order);
    }
    if (node.get_int(transpose) && x.rank() >= 2)
      x = with(x, permute_last_two(node.g, x.id));
    return x;
  };
  const Expr a = prepared(0, "transA", "transBatchA");
  const Expr b = prepared(1, "transB", "transBatchB");
  return scaled(node, checked_matmul(node, a, b), node.get_float("alpha"));
}

void import_fused_matmul(NodeImport& node) { finish(node, fused_product(node)); }

// Parameters of an activation that are attributes of their own.
static std::vector<float> activation_parameters(const NodeImport& node) {
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (node.has(name)) parameters.push_back(static_cast<float>(node.get_float(name)));
  return parameters;
}

// com.microsoft: with an activation behind it.
void import_fused_gemm(NodeImport& node) {
  const Expr y = product_of_matrices(node);
  finish(node,
         activation(node, node.get_string("activation"), y, activation_parameters(node)));
}

void import_fused_matmul_activation(NodeImport& node) {
  if (node.has("activation_axis")) node.unsupported("an activation along an axis");
  const Expr y = fused_product(node);
  finish(node,
         activation(node, node.get_string("activation"), y, activation_parameters(node)));
}

// A depthwise convolution along time over the input and what came before it; the last
// elements are the state for the next call.
void import_causal_conv_with_state(NodeImport& node) {
  const Expr x = wide(node, 0), w = wide(node, 1);
  require(node,
          x.rank() == 3 && w.rank() == 3 && extent(w, 1) == 1 &&
              extent(w, 0) == extent(x, 1),
          "input must be [batch, channels, length], weights [channels, 1, k]");
  int64_t dilation = 1;
  if (!node.model_node.domain.empty()) {
    if (node.get_int("ndim") != 1) node.unsupported("more than one spatial axis");
    if (node.get_int("channels_last") != 0) node.unsupported("channels_last");
    if (node.get_int("state_window") != 0) node.unsupported("a window of states");
    dilation = within_reach(node, node.get_int("dilation"), "dilation");
    require(node, dilation > 0, "dilation must be positive");
  }
  const int64_t kept = (extent(w, 2) - 1) * dilation, channels = extent(x, 1);
  require(node, kept >= 0, "the kernel is empty");
  Expr all = pad(x, {0, 0, kept}, {0, 0, 0}, 0);
  if (node.has_input(3)) {
    const Expr past = wide(node, 3);
    require(node, past.shape() == Shape{extent(x, 0), channels, kept},
            "past_state must be [batch, channels, (k - 1) * dilation]");
    all = join({past, x}, 2);
  }
  Expr y = all;
  if (extent(x, 2) == 0)
    y = x;
  else
    y = add_bias(
        node, convolve(all, w, {{extent(w, 2)}, {1}, {dilation}, {0}, {0}}, channels), 2);
  const std::string name = node.get_string("activation");
  require(node, name == "none" || name == "silu" || name == "swish",
          "activation must be 'none', 'silu' or 'swish'");
  finish(node, name == "none" ? y : y * sigmoid(y));
  if (node.wants_output(1)) finish(node, cut(all, 2, extent(all, 2) - kept, kept), 1);
}

// Gaussian elimination, written out: each step takes the row with the largest leading
// element, and the determinant is the product of those elements, its sign turned by each
// exchange.
void import_det(NodeImport& node) {
  Expr a = wide(node, 0);
  const Shape shape = a.shape();
  require(node, shape.size() >= 2 && shape.back() == shape[shape.size() - 2],
          "the input must hold square matrices");
  const int64_t n = shape.back();
  if (n > 16) node.unsupported("the determinant of a matrix of more than 16 rows");
  const Shape batch(shape.begin(), shape.end() - 2);
  const int64_t row = static_cast<int64_t>(batch.size()), column = row + 1;
  Shape one = batch;
  one.insert(one.end(), {1, 1});
  Expr result = with(a, constant(node.g, a.dtype(), one, 1));
  for (int64_t left = n; left > 0; --left) {
    const Expr lead = cut(a, column, 0, 1);
    const Expr best =
        with(a, arg_reduce(node.g, Op::ArgMax, absolute(lead).id, row, false));
    Shape width = one;
    width.back() = left;
    const Expr pivot_row = gather(a, broadcast(best, width), row);
    const Expr pivot = cut(pivot_row, column, 0, 1);
    result = result * select(equal(best, 0), pivot, -pivot);
    if (left == 1) break;
    // The exchange puts row 0 where the pivot's row was.
    const Expr here = equal(counter(node.g, DType::I64, Shape(a.shape()), row), best);
    const Expr rest = cut(select(here, cut(a, row, 0, 1), a), row, 1, left - 1);
    const Expr factor = select(equal(pivot, 0), like(pivot, 0), reciprocal(pivot));
    a = rest - cut(rest, column, 0, 1) * factor * pivot_row;
    a = cut(a, column, 1, left - 1);
  }
  finish(node, reshape(result, batch));
}

} // namespace svod::importer
