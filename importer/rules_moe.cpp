// Mixtures of experts. Which experts a token goes to is known at run time only, and a
// kernel's loops are fixed: every expert computes every token, and the router's weights,
// 0 for all but k experts, choose. It is exact, and costs experts / k times the work of a
// sparse mixture.
#include "importer/formula.h"

#include <limits>

namespace svod {

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
  if (how == "gelu") return gelu(x);
  if (how == "silu") return x * sigmoid(x);
  if (how == "identity") return x;
  if (how == "swiglu") return swiglu(node, x);
  node.invalid("activation_type '" + how + "' is not in the definition");
}

// x [experts or 1, tokens, in] by weights [experts, out, in], and the bias [experts,
// out].
Expr layer(NodeImport& node, Expr x, size_t weights, size_t bias) {
  const Expr w = wide(node, weights);
  require(node, w.rank() == 3 && extent(w, 2) == extent(x, 2),
          "an expert's weights do not fit its input");
  const Expr y = matmul(x, permute(convert(w, x.dtype()), {0, 2, 1}));
  if (!node.has_input(bias)) return y;
  const Expr b = wide(node, bias);
  require(node, b.shape() == Shape{extent(w, 0), extent(w, 1)},
          "an expert's bias does not fit its weights");
  return y + unsqueeze(convert(b, y.dtype()), 1);
}

} // namespace

// input, router, then weights and bias of three layers; the third gates the first.
void import_moe(NodeImport& node) {
  if (node.get_int("use_sparse_mixer") != 0) node.unsupported("the sparse mixer");
  const Expr input = wide(node, 0), logits = wide(node, 1);
  require(node, input.rank() == 2 || input.rank() == 3,
          "the input must be [tokens, hidden] or [batch, length, hidden]");
  const int64_t hidden = extent(input, input.rank() - 1);
  require(node, hidden > 0 && logits.rank() == 2, "the router must be [tokens, experts]");
  const int64_t tokens = element_count(input.shape()) / hidden;
  const int64_t experts = extent(logits, 1);
  require(node,
          extent(logits, 0) == tokens && node.rank(2) == 3 && node.shape(2)[0] == experts,
          "router, tokens and experts do not fit");
  const Expr x = reshape(input, {1, tokens, hidden});
  Expr inner = activated(node, layer(node, x, 2, 3));
  if (node.has_input(6)) {
    const Expr gate = layer(node, x, 6, 7);
    require(node, gate.shape() == inner.shape(), "fc3 does not fit fc1");
    inner = inner * gate;
  }
  const Expr y = layer(node, inner, 4, 5);
  require(node, y.shape() == (Shape{experts, tokens, hidden}),
          "fc2 does not lead back to the hidden size");
  const Expr share =
      unsqueeze(permute(routing(node, convert(logits, y.dtype())), {1, 0}), 2);
  finish(node, reshape(sum(y * share, {0}), Shape(input.shape())));
}

} // namespace svod
