// Linear attention: a state S [B, H, d_k, d_v] that every token decays, corrects and
// reads.
//     S = exp(g) S + k (beta (v - (exp(g) S)^T k))^T,    o = scale q^T S
// without what the update rule leaves out. The tokens are written out one after another.
#include "importer/formula/formula.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {

namespace {

// Every step makes some twenty nodes; longer sequences would be loops.
constexpr int64_t kMostTokens = 512;

struct Update {
  bool decays, corrects;
};

Update read_rule(NodeImport& node) {
  const std::string name = node.get_string("update_rule");
  const bool known =
      name == "linear" || name == "gated" || name == "delta" || name == "gated_delta";
  require(node, known, "update_rule must be linear, gated, delta or gated_delta");
  return {name.starts_with("gated"), name.ends_with("delta")};
}

// Token t of a packed tensor [B, T, H * d] as [B, H, d].
Expr token(Expr packed, int64_t t, int64_t heads) {
  return reshape(cut(packed, 1, t, 1),
                 {extent(packed, 0), heads, extent(packed, 2) / heads});
}

// q^T S: [B, H, d_v] from [B, H, d_k] and the state.
Expr read_state(Expr state, Expr q) {
  const Shape shape = state.shape();
  return reshape(sum(unsqueeze(q, 3) * state, {2}), {shape[0], shape[1], shape[3]});
}

// What query heads [B, heads, d_k] read, side by side: [B, 1, width]. Those that share a
// state stand together, as do states that share a query.
Expr read_heads(Expr query, Expr state) {
  const int64_t batch = extent(state, 0), heads = extent(state, 1),
                d_k = extent(state, 2);
  const int64_t shared = std::max<int64_t>(extent(query, 1) / heads, 1);
  const int64_t repeated = std::max<int64_t>(heads / extent(query, 1), 1);
  const Expr each =
      broadcast(unsqueeze(query, 2), {batch, extent(query, 1), repeated, d_k});
  const Expr read = matmul(reshape(each, {batch, heads, shared, d_k}), state);
  return reshape(read, {batch, 1, heads * shared * extent(state, 3)});
}

void check_inputs(NodeImport& node, Expr q, Expr k, Expr v, int64_t q_heads,
                  int64_t heads) {
  require(node, q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
          "query, key and value must be [batch, tokens, heads * size]");
  require(node,
          heads >= 1 && q_heads >= 1 && (q_heads % heads == 0 || heads % q_heads == 0) &&
              extent(q, 2) % q_heads == 0 && extent(k, 2) % heads == 0 &&
              extent(v, 2) % heads == 0 && extent(q, 2) / q_heads == extent(k, 2) / heads,
          "the numbers of heads do not fit the inputs");
  const int64_t batch = extent(q, 0), tokens = extent(q, 1);
  require(node,
          extent(k, 0) == batch && extent(v, 0) == batch && extent(k, 1) == tokens &&
              extent(v, 1) == tokens,
          "query, key and value differ in batch or tokens");
  if (tokens > kMostTokens || tokens == 0)
    node.unsupported("LinearAttention over " + std::to_string(tokens) + " tokens");
}

} // namespace

void import_linear_attention(NodeImport& node) {
  const Update rule = read_rule(node);
  if (!node.model_node.domain.empty() && node.get_int("state_window") != 0)
    node.unsupported("a window of states");
  const Expr q = wide(node, 0), k = wide(node, 1), v = wide(node, 2);
  const int64_t q_heads = node.get_int("q_num_heads"),
                heads = node.get_int("kv_num_heads");
  check_inputs(node, q, k, v, q_heads, heads);
  const int64_t batch = extent(q, 0), tokens = extent(q, 1);
  const int64_t d_k = extent(k, 2) / heads, d_v = extent(v, 2) / heads;
  const double given = node.get_float("scale");
  const double scale = given != 0 ? given : 1 / std::sqrt(double(d_k));

  const Shape shape{batch, heads, d_k, d_v};
  Expr state = with(q, constant(node.g, q.dtype(), shape, 0));
  if (node.has_input(3)) {
    require(node, node.shape(3) == shape, "past_state must be [batch, heads, d_k, d_v]");
    state = wide(node, 3);
  }
  const auto gate = [&](size_t i) {
    const Expr x = wide(node, i);
    require(node, x.rank() == 3 && extent(x, 0) == batch && extent(x, 1) == tokens,
            "decay and beta must be [batch, tokens, ..]");
    return x;
  };
  std::vector<Expr> results;
  for (int64_t t = 0; t < tokens; ++t) {
    const Expr key = token(k, t, heads);
    Expr value = token(v, t, heads);
    if (rule.decays) {
      const Expr decay = gate(4);
      require(node, extent(decay, 2) == heads || extent(decay, 2) == heads * d_k,
              "decay must have one number per head or per key element");
      state = state * unsqueeze(exp(token(decay, t, heads)), 3);
    }
    if (rule.corrects) {
      const Expr beta = gate(5);
      require(node, extent(beta, 2) == heads || extent(beta, 2) == 1,
              "beta must have one number per head");
      value = (value - read_state(state, key)) * token(beta, t, extent(beta, 2));
    }
    state = state + unsqueeze(key, 3) * unsqueeze(value, 2);
    results.push_back(read_heads(token(q, t, q_heads), state) * scale);
  }
  finish(node, join(results, 1));
  if (node.wants_output(1)) {
    const DType dtype = node.has_input(3) ? node.dtype(3) : node.dtype(0);
    give(node, 1, convert(state, dtype));
  }
}

} // namespace svod::importer
