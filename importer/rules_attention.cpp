// Attention and RotaryEmbedding of the standard, and their relatives of com.microsoft.
#include "importer/attention.h"
#include "importer/quantization.h"

#include <cmath>
#include <limits>

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr zero_offset(Graph& g) { return number(g, DType::I64, 0); }

// A mask shorter than the keys hides the rest.
Expr padded_mask(Expr mask, int64_t keys) {
  int64_t missing = keys - extent(mask, mask.rank() - 1);
  if (missing <= 0) return mask;
  Shape low(mask.shape().size(), 0), high = low;
  high.back() = missing;
  return pad(mask, low, high, mask.dtype() == DType::Bool ? 0 : -kInfinity);
}

void add_mask(NodeImport& node, AttentionParts& parts, Expr mask, const Shape& scores) {
  require(node, mask.rank() >= 1 && mask.rank() <= 4, "the mask must have 1 to 4 axes");
  mask = padded_mask(mask, scores.back());
  require_broadcast(node, mask.shape(), scores);
  Shape shape(4 - mask.shape().size(), 1);
  shape.insert(shape.end(), mask.shape().begin(), mask.shape().end());
  mask = reshape(mask, shape);
  if (mask.dtype() == DType::Bool)
    parts.allowed = parts.allowed ? both(*parts.allowed, mask) : mask;
  else
    parts.bias = convert(mask, parts.q.dtype());
  parts.row_may_be_empty = true;
}

// Appends to a cache [batch, heads, past, head] where there is one.
Expr with_past(NodeImport& node, size_t i, Expr x) {
  if (!node.has_input(i)) return x;
  Expr past = wide(node, i);
  Shape expected = x.shape();
  require(node, past.rank() == 4, "a cache must have 4 axes");
  expected[2] = extent(past, 2);
  require(node, past.shape() == expected, "a cache does not fit the new keys or values");
  return join({past, x}, 2);
}

// 4-D operands are used as they are, 3-D ones are split into the heads of the attribute.
Expr heads_of(NodeImport& node, Expr x, const char* attribute) {
  if (x.rank() == 4) return x;
  return split_heads(node, x, node.get_int(attribute));
}

// How far the queries stand among the keys, and with an external cache how many keys
// count.
Expr key_offset(NodeImport& node, AttentionParts& parts) {
  int64_t queries = extent(parts.q, 2);
  if (node.has_input(4))
    return number(node.g, DType::I64, static_cast<double>(node.shape(4)[2]));
  if (node.opset < 24 || !node.has_input(6)) return zero_offset(node.g);
  Expr valid = convert(operand(node, 6), DType::I64);
  require(node, valid.shape() == Shape{extent(parts.q, 0)},
          "nonpad_kv_seqlen must have one entry per batch");
  valid = reshape(valid, {extent(parts.q, 0), 1, 1, 1});
  Expr key = count_along(node.g, DType::I64, extent(parts.k, 2), 3, 4);
  parts.allowed = less(key, valid);
  parts.row_may_be_empty = true;
  return valid - static_cast<double>(queries);
}

void add_visibility(NodeImport& node, AttentionParts& parts, Expr offset) {
  Visibility view{extent(parts.q, 2), extent(parts.k, 2)};
  view.causal = node.get_int("is_causal") != 0;
  if (node.opset >= 25) {
    view.left = node.get_int("left_window_size");
    view.right = node.get_int("right_window_size");
    if (view.left >= 0 || view.right >= 0) parts.row_may_be_empty = true;
  }
  std::optional<Expr> seen = visible_keys(view, offset);
  if (seen) parts.allowed = parts.allowed ? both(*parts.allowed, *seen) : *seen;
}

// Positions [batch, sequence] or none select rows of a cache [positions, half].
Expr cache_rows(NodeImport& node, Expr cache, std::optional<Expr> positions) {
  if (!positions) return cache.rank() == 2 ? unsqueeze(cache, 0) : cache;
  require(node, cache.rank() == 2 && positions->rank() == 2,
          "position_ids or the caches have a wrong rank");
  require(node, is_integer(positions->dtype()), "position_ids must hold integers");
  positions = convert(*positions, DType::I64);
  Shape to = positions->shape();
  to.push_back(extent(cache, 1));
  Expr index = wrap_index(node, *positions, extent(cache, 0));
  return reshape(take(cache, 0, reshape(index, {element_count(index.shape())})), to);
}

struct Rotary {
  Expr x, cos, sin;
  std::optional<Expr> positions;
};

void rotary_embedding(NodeImport& node, const Rotary& parts) {
  bool flat = parts.x.rank() == 3;
  require(node, flat || parts.x.rank() == 4, "the input must have 3 or 4 axes");
  int64_t width = node.get_int("rotary_embedding_dim"), heads = node.get_int("num_heads");
  int64_t half = extent(parts.cos, parts.cos.rank() - 1);
  if (flat && heads == 0) heads = extent(parts.x, 2) / (2 * half);
  Expr x = flat ? split_heads(node, parts.x, heads) : parts.x;
  if (width == 0) width = extent(x, 3);
  Expr y = rotate(node, x, cache_rows(node, parts.cos, parts.positions),
                  cache_rows(node, parts.sin, parts.positions), width,
                  node.get_int("interleaved") != 0);
  finish(node, flat ? join_heads(y) : y);
}

// com.microsoft: [batch, keys] with 1 for keys that count, or [batch] with their number.
void add_key_mask(NodeImport& node, AttentionParts& parts, size_t i) {
  if (!node.has_input(i)) return;
  Expr mask = convert(operand(node, i), DType::I64);
  int64_t batch = extent(parts.q, 0), keys = extent(parts.k, 2),
          queries = extent(parts.q, 2);
  Expr key = count_along(node.g, DType::I64, keys, 3, 4);
  Expr allowed = mask;
  if (mask.shape() == Shape{batch})
    allowed = less(key, reshape(mask, {batch, 1, 1, 1}));
  else if (mask.shape() ==
           Shape{2 * batch}) { // where the keys end, then where they start
    const Expr end = reshape(cut(mask, 0, 0, batch), {batch, 1, 1, 1});
    const Expr start = reshape(cut(mask, 0, batch, batch), {batch, 1, 1, 1});
    allowed = both(less(key, end), less_equal(start, key));
  } else if (mask.rank() == 4 && extent(mask, 0) == batch && extent(mask, 1) == 1 &&
             extent(mask, 2) >= keys && extent(mask, 3) >= keys) {
    // Of all positions: this run's queries are the last of its keys.
    const Expr rows = cut(mask, 2, keys - queries, queries);
    allowed = less(0.0, cut(rows, 3, 0, keys));
  } else if (mask.shape() == Shape{batch, keys})
    allowed = less(0.0, reshape(mask, {batch, 1, 1, keys}));
  else if (mask.shape() == Shape{batch, queries, keys})
    allowed = less(0.0, reshape(mask, {batch, 1, queries, keys}));
  else
    node.unsupported("a key mask of shape " + shape_text(mask.shape()));
  Expr zero = number(node.g, parts.q.dtype(), 0);
  Expr bias = select(allowed, zero, like(zero, node.get_float("mask_filter_value")));
  parts.bias = parts.bias ? *parts.bias + bias : bias;
}

void add_vendor_bias(NodeImport& node, AttentionParts& parts, size_t i) {
  if (!node.has_input(i)) return;
  Expr bias = wide(node, i);
  require_broadcast(
      node, bias.shape(),
      {extent(parts.q, 0), extent(parts.q, 1), extent(parts.q, 2), extent(parts.k, 2)});
  parts.bias = parts.bias ? *parts.bias + bias : bias;
}

void add_unidirectional(NodeImport& node, AttentionParts& parts) {
  if (!node.get_int("unidirectional")) return;
  int64_t queries = extent(parts.q, 2), keys = extent(parts.k, 2);
  Visibility view{queries, keys, true};
  parts.allowed =
      visible_keys(view, number(node.g, DType::I64, static_cast<double>(keys - queries)));
}

double scale_or_default(NodeImport& node, Expr q) {
  double scale = node.has("scale") ? node.get_float("scale") : 0;
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(q, 3)));
}

// A graph of the model that maps a tensor to one of the same type and shape.
std::function<Expr(Expr)> changed_by(NodeImport& node, const char* attribute) {
  if (!node.has(attribute)) return {};
  return [&node, attribute](Expr x) {
    const std::vector<NodeId> results = node.run_graph(attribute, {x.id});
    const Expr y = with(x, results[0]);
    if (results.size() != 1 || is_compound(y.id) || y.shape() != x.shape() ||
        y.dtype() != x.dtype())
      node.invalid(std::string(attribute) +
                   " must give one tensor of the type and shape that it takes");
    return y;
  };
}

} // namespace

// Attention whose scores and weights go through graphs of the model.
void import_flex_attention(NodeImport& node) {
  for (size_t i : {0, 1, 2})
    require(node, node.rank(i) == 4, "queries, keys and values must have 4 axes");
  AttentionParts parts{wide(node, 0), wide(node, 1), wide(node, 2)};
  require(node, extent(parts.k, 2) == extent(parts.v, 2) && extent(parts.q, 3) > 0,
          "keys and values differ in length");
  parts.scale = node.has("scale") ? node.get_float("scale")
                                  : 1 / std::sqrt(double(extent(parts.q, 3)));
  parts.softmax_type = parts.q.dtype();
  if (node.has("softmax_precision")) {
    auto dtype = dtype_from_onnx(static_cast<int>(node.get_int("softmax_precision")));
    require(node, dtype && is_float(*dtype),
            "softmax_precision must be a floating point type");
    parts.softmax_type = *dtype;
  }
  parts.change_scores = changed_by(node, "score_mod");
  parts.change_weights = changed_by(node, "prob_mod");
  finish(node, attend(node, parts).y);
}

void import_attention(NodeImport& node) {
  bool flat = node.rank(0) == 3;
  AttentionParts parts{heads_of(node, wide(node, 0), "q_num_heads"),
                       heads_of(node, wide(node, 1), "kv_num_heads"),
                       heads_of(node, wide(node, 2), "kv_num_heads")};
  require(node, parts.q.rank() == 4 && parts.k.rank() == 4 && parts.v.rank() == 4,
          "Q, K and V must have 3 or 4 axes");
  require(node, node.has_input(4) == node.has_input(5),
          "past_key and past_value must be given together");
  parts.k = with_past(node, 4, parts.k);
  parts.v = with_past(node, 5, parts.v);
  require(node, extent(parts.k, 2) == extent(parts.v, 2),
          "keys and values differ in length");
  parts.scale = node.has("scale")
                    ? node.get_float("scale")
                    : 1 / std::sqrt(static_cast<double>(extent(parts.q, 3)));
  parts.softcap = node.get_float("softcap");
  parts.softmax_type = parts.q.dtype();
  if (node.has("softmax_precision") && node.get_int("softmax_precision") == 11)
    parts.softmax_type = DType::F64;
  add_visibility(node, parts, key_offset(node, parts));
  Shape scores{extent(parts.q, 0), extent(parts.q, 1), extent(parts.q, 2),
               extent(parts.k, 2)};
  if (node.has_input(3)) add_mask(node, parts, operand(node, 3), scores);
  AttentionResult result = attend(node, parts);
  finish(node, flat ? join_heads(result.y) : result.y);
  if (node.wants_output(1)) give(node, 1, convert(parts.k, node.dtype(1)));
  if (node.wants_output(2)) give(node, 2, convert(parts.v, node.dtype(2)));
  if (!node.wants_output(3)) return;
  int64_t mode = node.get_int("qk_matmul_output_mode");
  require(node, mode >= 0 && mode <= 3, "qk_matmul_output_mode must be 0 to 3");
  const Expr stages[] = {result.raw, result.capped, result.biased, result.weights};
  finish(node, stages[mode], 3);
}

void import_rotary_embedding(NodeImport& node) {
  Rotary parts{wide(node, 0), wide(node, 1), wide(node, 2), {}};
  if (node.has_input(3)) parts.positions = operand(node, 3);
  rotary_embedding(node, parts);
}

// Positions come second; one number is the position of the first element of every batch.
void import_rotary_embedding_vendor(NodeImport& node) {
  Rotary parts{wide(node, 0), wide(node, 2), wide(node, 3), operand(node, 1)};
  if (node.get_int("is_packed_batching")) node.unsupported("packed batching");
  if (node.get_float("scale") != 1) node.unsupported("a scale other than 1");
  Expr x = parts.x;
  int64_t sequence = extent(x, x.rank() == 4 ? 2 : 1);
  if (element_count(parts.positions->shape()) == 1 && parts.positions->rank() < 2) {
    Expr steps = count_along(node.g, parts.positions->dtype(), sequence, 1, 2);
    parts.positions =
        broadcast(steps + reshape(*parts.positions, {1, 1}), {extent(x, 0), sequence});
  }
  rotary_embedding(node, parts);
}

// Projected queries, keys and values, or keys and values already split into heads.
void import_multi_head_attention(NodeImport& node) {
  if (!node.has_input(1) || !node.has_input(2))
    node.unsupported("packed keys and values");
  if (node.has_input(8) || node.has_input(9))
    node.unsupported("past_sequence_length and cache_indirection");
  int64_t heads = node.get_int("num_heads");
  Expr q = wide(node, 0), k = wide(node, 1), v = wide(node, 2);
  bool projected = k.rank() == 3;
  require(node, q.rank() == 3 && (projected || k.rank() == 4) && v.rank() == k.rank(),
          "query must have 3 axes, key and value both 3 or both 4");
  if (node.has_input(3)) {
    Expr bias = wide(node, 3);
    int64_t q_size = extent(q, 2), k_size = projected ? extent(k, 2) : q_size;
    int64_t v_size = projected ? extent(v, 2) : extent(bias, 0) - 2 * q_size;
    require(node, bias.shape() == Shape{q_size + k_size + v_size},
            "the bias does not fit queries, keys and values");
    q = q + cut(bias, 0, 0, q_size);
    if (projected) {
      k = k + cut(bias, 0, q_size, k_size);
      v = v + cut(bias, 0, q_size + k_size, v_size);
    }
  }
  AttentionParts parts{split_heads(node, q, heads),
                       projected ? split_heads(node, k, heads) : k,
                       projected ? split_heads(node, v, heads) : v};
  parts.k = with_past(node, 6, parts.k);
  parts.v = with_past(node, 7, parts.v);
  parts.scale = scale_or_default(node, parts.q);
  add_key_mask(node, parts, 4);
  add_vendor_bias(node, parts, 5);
  add_unidirectional(node, parts);
  finish(node, join_heads(attend(node, parts).y));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, parts.v, 2);
}

namespace {

// The input times its weight, and the bias: queries, keys and values side by side.
Expr projected(NodeImport& node, Expr product, size_t bias) {
  require(node, product.rank() == 3, "weights do not fit the input");
  if (!node.has_input(bias)) return product;
  const Expr b = wide(node, bias);
  require(node, b.shape() == Shape{extent(product, 2)},
          "the bias does not fit the weights");
  return product + convert(b, product.dtype());
}

// Attends over what is projected; the inputs of mask, past and bias by number.
void attend_projected(NodeImport& node, Expr all, std::vector<int64_t> sizes, size_t mask,
                      size_t past_input, std::optional<size_t> bias) {
  const int64_t heads = node.get_int("num_heads"), width = extent(all, 2);
  if (sizes.empty()) sizes.assign(3, width / 3);
  require(node,
          sizes.size() == 3 && sizes[0] >= 0 && sizes[1] >= 0 && sizes[2] >= 0 &&
              sizes[0] + sizes[1] + sizes[2] == width,
          "qkv_hidden_sizes do not fit the weights");
  AttentionParts parts{
      split_heads(node, cut(all, 2, 0, sizes[0]), heads),
      split_heads(node, cut(all, 2, sizes[0], sizes[1]), heads),
      split_heads(node, cut(all, 2, sizes[0] + sizes[1], sizes[2]), heads)};
  if (node.has_input(past_input)) {
    Expr past = wide(node, past_input);
    require(node, past.rank() == 5 && extent(past, 0) == 2, "past has a wrong shape");
    for (auto [kind, x] : {std::pair(0, &parts.k), std::pair(1, &parts.v)}) {
      const Expr before = squeeze(cut(past, 0, kind, 1), 0);
      Shape expected = x->shape();
      expected[2] = extent(before, 2);
      require(node, before.shape() == expected, "past does not fit the new keys");
      *x = join({before, *x}, 2);
    }
  }
  parts.scale = scale_or_default(node, parts.q);
  add_key_mask(node, parts, mask);
  if (bias) add_vendor_bias(node, parts, *bias);
  add_unidirectional(node, parts);
  give(node, 0, join_heads(attend(node, parts).y));
  if (node.wants_output(1))
    give(node, 1, join({unsqueeze(parts.k, 0), unsqueeze(parts.v, 0)}, 0));
}

// Results in the type of the model's floats.
void round_results(NodeImport& node, DType to) {
  for (size_t i = 0; i < node.results().size(); ++i)
    node.output(i, cast(node.g, node.results()[i], to));
}

} // namespace

// Projects with one weight for queries, keys and values, then attends.
void import_attention_vendor(NodeImport& node) {
  if (node.get_int("do_rotary")) node.unsupported("do_rotary");
  if (node.has_input(6)) node.unsupported("past_sequence_length");
  Expr x = wide(node, 0), w = wide(node, 1);
  require(node, x.rank() == 3 && w.rank() == 2 && extent(x, 2) == extent(w, 0),
          "weights do not fit the input");
  attend_projected(node, projected(node, matmul(x, w), 2),
                   node.get_ints("qkv_hidden_sizes"), 3, 4, 5);
  round_results(node, node.dtype(0));
}

// The same from 8-bit input and weights: input, weight, bias, their scales, mask, their
// zero points, past.
void import_qattention(NodeImport& node) {
  if (node.get_int("do_rotary")) node.unsupported("do_rotary");
  const Expr x = operand(node, 0), w = operand(node, 1);
  require(node, x.rank() == 3 && w.rank() == 2, "weights do not fit the input");
  const auto parameter = [&](size_t i, const Shape& shape) -> std::optional<Expr> {
    if (!node.has_input(i)) return std::nullopt;
    return quantization_parameter(node, operand(node, i), shape, -1);
  };
  const Expr product = checked_matmul(node, centered(x, parameter(6, x.shape())),
                                      centered(w, parameter(7, w.shape())));
  node.input(3), node.input(4);
  const Expr scale = *parameter(3, x.shape()) * *parameter(4, product.shape());
  require_broadcast(node, scale.shape(), product.shape());
  const Expr real = convert(product, DType::F32) * widen(scale);
  attend_projected(node, projected(node, real, 2), {}, 5, 8, {});
  round_results(node, node.dtype(3));
}

} // namespace svod
