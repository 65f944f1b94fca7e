// Mixtures of experts. Which experts a token goes to is known at run time only, and a
// kernel's loops are fixed: every expert computes every token, and the router's weights,
// 0 for all but k experts, choose. It is exact, and costs experts / k times the work of a
// sparse mixture.
#include "importer/formula/formula.h"
#include "importer/formula/packing.h"
#include "importer/formula/quantization.h"

#include <limits>

namespace svod::importer {

namespace {

// [tokens, experts]: the softmax of the router where an expert is among the k best, of
// equal ones the first, and 0 elsewhere.
Expr routing(NodeImport& node, Expr logits) {
  const int64_t experts = extent(logits, 1), k = node.get_int("k");
  require(node, k >= 1 && k <= experts, "k must be 1 to the number of experts");
  const Expr weights = softmax(logits, {1});
  const Expr order = with(logits, argsort(node.g, logits.id, 1, true));
  const Expr rank = with(logits, argsort(node.g, order.id, 1, false));
  const Expr chosen =
      select(less(rank, static_cast<double>(k)), weights, like(weights, 0));
  if (node.get_int("normalize_routing_weights") == 0) return chosen;
  return chosen / sum(chosen, {1});
}

// Pairs of a gate and a value, side by side or as two halves.
Expr swiglu(NodeImport& node, Expr x) {
  const int64_t fusion = node.get_int("swiglu_fusion"), last = x.rank() - 1;
  require(node, extent(x, last) % 2 == 0, "SwiGLU needs an even inner size");
  const int64_t half = extent(x, last) / 2;
  Expr gate = cut(x, last, 0, half), value = cut(x, last, half, half);
  if (fusion == 1) {
    Shape pairs = x.shape();
    pairs.back() = half;
    pairs.push_back(2);
    const Expr split = reshape(x, pairs);
    gate = squeeze(cut(split, last + 1, 0, 1), last + 1);
    value = squeeze(cut(split, last + 1, 1, 1), last + 1);
  } else if (fusion != 2) {
    node.unsupported("SwiGLU of separate gates");
  }
  if (node.has("swiglu_limit")) {
    const double limit = node.get_float("swiglu_limit");
    gate = minimum(gate, limit);
    value = clamp(value, -limit, limit);
  }
  return gate * sigmoid(gate * node.get_float("activation_alpha")) *
         (value + node.get_float("activation_beta"));
}

Expr activated(NodeImport& node, Expr x) {
  const std::string how = node.get_string("activation_type");
  if (how == "relu") return maximum(x, 0);
  if (how == "gelu") return gelu_tanh(x);
  if (how == "silu") return x * sigmoid(x);
  if (how == "identity") return x;
  if (how == "swiglu") return swiglu(node, x);
  node.invalid("activation_type '" + how + "' is not in the definition");
}

// x [experts or 1, tokens, in] by weights [experts, out, in], and the bias [experts,
// out].
Expr layer(NodeImport& node, Expr x, Expr w, size_t bias) {
  require(node, w.rank() == 3 && extent(w, 2) == extent(x, 2),
          "an expert's weights do not fit its input");
  const Expr y = matmul(x, permute(convert(w, x.dtype()), {0, 2, 1}));
  if (!node.has_input(bias)) return y;
  const Expr b = wide(node, bias);
  require(node, b.shape() == (Shape{extent(w, 0), extent(w, 1)}),
          "an expert's bias does not fit its weights");
  return y + unsqueeze(convert(b, y.dtype()), 1);
}

// What a layer needs, by number of its input; weights of few bits have a scale per row,
// or per block of `block` columns, and zero points packed like the weights.
struct Layer {
  size_t weights, bias;
  std::optional<size_t> scales = {}, zeros = {};
  int64_t bits = 8, block = 0;
};

// A scale or zero point [experts, rows] or [experts, rows, blocks] for every weight.
Expr spread(NodeImport& node, Expr parameter, int64_t columns, int64_t block) {
  if (block <= 0) return unsqueeze(parameter, 2);
  const int64_t blocks = extent(parameter, 2);
  require(node, blocks * block >= columns, "the scales do not fit the weights");
  Shape wide = parameter.shape(), flat = wide;
  wide.push_back(block);
  flat[2] *= block;
  return cut(reshape(broadcast(unsqueeze(parameter, 3), wide), flat), 2, 0, columns);
}

Expr weights_of(NodeImport& node, const Layer& at) {
  if (!at.scales) return wide(node, at.weights);
  const Expr packed = operand(node, at.weights), scales = wide(node, *at.scales);
  const bool blocked = at.block > 0;
  require(node,
          packed.dtype() == DType::U8 && packed.rank() == 3 &&
              scales.rank() == (blocked ? 3 : 2) &&
              extent(scales, 0) == extent(packed, 0) &&
              extent(scales, 1) == extent(packed, 1),
          "an expert's weights or scales have a wrong shape");
  const Expr values = convert(unpacked_bits(packed, at.bits), DType::F32);
  const int64_t columns = extent(values, 2);
  Expr zero = number(node.g, DType::F32, static_cast<double>(1 << (at.bits - 1)));
  if (at.zeros && node.has_input(*at.zeros)) {
    const Expr bytes = unpacked_bits(operand(node, *at.zeros), at.bits);
    const int64_t last = bytes.rank() - 1, count = extent(scales, scales.rank() - 1);
    require(node, bytes.rank() == scales.rank() && extent(bytes, last) >= count,
            "an expert's zero points have a wrong shape");
    const Expr zeros = cut(bytes, last, 0, count);
    require(node, zeros.shape() == scales.shape(),
            "an expert's zero points have a wrong shape");
    zero = spread(node, convert(zeros, DType::F32), columns, at.block);
  }
  return (values - zero) * spread(node, convert(scales, DType::F32), columns, at.block);
}

// The mixture of three layers; the third, where there is one, gates the first.
void mix(NodeImport& node, const Layer& first, const Layer& second, const Layer& third) {
  if (node.get_int("use_sparse_mixer") != 0) node.unsupported("the sparse mixer");
  const Expr input = wide(node, 0), logits = wide(node, 1);
  require(node, input.rank() == 2 || input.rank() == 3,
          "the input must be [tokens, hidden] or [batch, length, hidden]");
  const int64_t hidden = extent(input, input.rank() - 1);
  require(node, hidden > 0 && logits.rank() == 2, "the router must be [tokens, experts]");
  const int64_t tokens = element_count(input.shape()) / hidden;
  const int64_t experts = extent(logits, 1);
  require(node,
          extent(logits, 0) == tokens && node.rank(first.weights) == 3 &&
              node.shape(first.weights)[0] == experts,
          "router, tokens and experts do not fit");
  const Expr x = reshape(input, {1, tokens, hidden});
  Expr inner = activated(node, layer(node, x, weights_of(node, first), first.bias));
  if (node.has_input(third.weights)) {
    const Expr gate = layer(node, x, weights_of(node, third), third.bias);
    require(node, gate.shape() == inner.shape(), "fc3 does not fit fc1");
    inner = inner * gate;
  }
  const Expr y = layer(node, inner, weights_of(node, second), second.bias);
  require(node, y.shape() == (Shape{experts, tokens, hidden}),
          "fc2 does not lead back to the hidden size");
  const Expr weights = routing(node, convert(logits, y.dtype()));
  const Expr share = unsqueeze(permute(weights, {1, 0}), 2);
  finish(node, reshape(sum(y * share, {0}), Shape(input.shape())));
}

} // namespace

// input, router, then weights and bias of each layer.
void import_moe(NodeImport& node) { mix(node, {2, 3}, {4, 5}, {6, 7}); }

// input, router, then weights, scales and bias of each layer, then their zero points.
void import_qmoe(NodeImport& node) {
  if (node.get_string("quant_type") != "int")
    node.unsupported("weights of quant_type " + node.get_string("quant_type"));
  if (node.get_int("weights_prepacked") > 0)
    node.unsupported("weights packed for one kernel of another runtime");
  for (size_t i = 14; i < node.input_count(); ++i)
    if (node.has_input(i)) node.unsupported("input " + std::to_string(i));
  const int64_t block = node.has("block_size") ? node.get_int("block_size") : 0;
  const auto at = [&](size_t weights, size_t zeros, const char* bits_of) {
    Layer layer{weights,
                weights + 2,
                weights + 1,
                zeros,
                node.has(bits_of) ? node.get_int(bits_of)
                                  : node.get_int("expert_weight_bits"),
                block};
    if (layer.bits != 2 && layer.bits != 4 && layer.bits != 8)
      node.unsupported("weights of " + std::to_string(layer.bits) + " bits");
    return layer;
  };
  mix(node, at(2, 11, "fc1_expert_weight_bits"), at(5, 12, "fc2_expert_weight_bits"),
      at(8, 13, "fc3_expert_weight_bits"));
}

} // namespace svod::importer
