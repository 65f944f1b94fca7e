// Attention of com.microsoft's decoders with weights of their own: over the positions so
// far or over an encoder's, by inputs that say which (DecoderAttention), and of one new
// position after a cache with room for all (DecoderMaskedSelfAttention).
#include "importer/rules/attention/attention.h"

#include <cmath>

namespace svod::importer {
namespace {

// A bool that says what is computed, and so must be known when packing.
bool known_flag(const NodeImport& node, size_t i) { return known_int(node, i) != 0; }

// [length, batch, width] times weights, with a part of the bias, in heads.
Expr projected(NodeImport& node, size_t input, Expr weight, Expr bias, int64_t heads) {
  const Expr x = wide(node, input);
  require(node, x.rank() == 3 && extent(x, 2) == extent(weight, 0),
          "query and key must be [length, batch, hidden size]");
  const Expr y = matmul(x, weight) + bias;
  return split_heads(node, permute(y, {1, 0, 2}), heads);
}

} // namespace

// query, key, q_weight, kv_weight, bias, key_padding_mask, key_cache, value_cache,
// static_kv, use_past, has_layer_state, has_key_padding_mask.
void import_decoder_attention(NodeImport& node) {
  const int64_t heads = node.get_int("num_heads");
  const bool cross = known_flag(node, 8);
  const bool cached = known_flag(node, 9) && known_flag(node, 10);
  const Expr w = wide(node, 2), pair = wide(node, 3), bias = wide(node, 4);
  const int64_t size = node.rank(0) == 3 ? node.shape(0)[2] : 0;
  require(node,
          w.shape() == Shape{size, size} && pair.shape() == Shape{size, 2 * size} &&
              bias.shape() == Shape{3 * size},
          "the weights do not fit the hidden size");
  const auto part = [&](size_t input, int64_t which) {
    return projected(node, input, cut(pair, 1, (which - 1) * size, size),
                     cut(bias, 0, which * size, size), heads);
  };
  const Expr q = projected(node, 0, w, cut(bias, 0, 0, size), heads);
  AttentionParts parts{q, q, q};
  if (cached && cross) {
    parts.k = wide(node, 6), parts.v = wide(node, 7);
  } else {
    const size_t from = cross ? 1 : 0;
    parts.k = part(from, 1), parts.v = part(from, 2);
    if (cached) parts.k = with_past(node, 6, parts.k);
    if (cached) parts.v = with_past(node, 7, parts.v);
  }
  const int64_t batch = extent(q, 0), keys = extent(parts.k, 2);
  parts.scale = 1 / std::sqrt(static_cast<double>(extent(q, 3)));
  if (known_flag(node, 11)) {
    const Expr hidden = operand(node, 5);
    require(node, hidden.shape() == Shape{batch, keys},
            "key_padding_mask must be [batch, keys]");
    const Expr here = reshape(hidden, {batch, 1, 1, keys});
    const Expr zero = number(node.g, q.dtype(), 0);
    parts.bias = select(here, like(zero, node.get_float("mask_filter_value")), zero);
  }
  const Expr y = join_heads(attend(node, parts).y);
  finish(node, permute(y, {1, 0, 2}));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, parts.v, 2);
}

namespace {

// mask_index and attention_bias, which may end before the room for keys does.
void add_decoder_biases(NodeImport& node, AttentionParts& parts) {
  const int64_t batch = extent(parts.q, 0), keys = extent(parts.k, 2);
  if (node.has_input(3)) {
    Expr mask = operand(node, 3);
    require(node, mask.rank() == 2 && extent(mask, 0) == batch && extent(mask, 1) <= keys,
            "mask_index must be [batch, total length]");
    mask = pad(mask, {0, 0}, {0, keys - extent(mask, 1)}, 1);
    const Expr here = reshape(equal(mask, 0), {batch, 1, 1, keys});
    const Expr zero = number(node.g, parts.q.dtype(), 0);
    parts.bias = select(here, like(zero, node.get_float("mask_filter_value")), zero);
  }
  if (!node.has_input(5)) return;
  Expr more = wide(node, 5);
  require(node, more.rank() == 4 && extent(more, 3) <= keys,
          "attention_bias must be [batch, heads, 1, total length]");
  more = pad(more, Shape(4, 0), {0, 0, 0, keys - extent(more, 3)}, 0);
  require_broadcast(node, more.shape(), {batch, extent(parts.q, 1), 1, keys});
  parts.bias = parts.bias ? *parts.bias + more : more;
}

// Half of a shared past [2, batch, heads, room, size]. Its keys lie as [batch, heads,
// size / x, room, x] with x elements of 16 bytes together.
Expr shared_half(NodeImport& node, Expr past, int64_t which, bool give_back) {
  const int64_t each = 16 / byte_size(node.dtype(0));
  const Expr half = give_back ? past : squeeze(cut(past, 0, which, 1), 0);
  if (which == 1) return half;
  const Shape shape = half.shape(); // [batch, heads, room, size]
  require(node, shape[3] % each == 0, "the head size is not a multiple of 16 bytes");
  const Shape lying{shape[0], shape[1], shape[3] / each, shape[2], each};
  const Shape split{shape[0], shape[1], shape[2], shape[3] / each, each};
  if (give_back) return reshape(permute(reshape(half, split), {0, 1, 3, 2, 4}), shape);
  return reshape(permute(reshape(half, lying), {0, 1, 3, 2, 4}), shape);
}

} // namespace

// input, weights, bias, mask_index, past, attention_bias, past_sequence_length.
void import_decoder_masked_self_attention(NodeImport& node) {
  if (node.get_int("do_rotary") != 0) node.unsupported("do_rotary");
  if (node.has_input(8)) node.unsupported("cache_indirection");
  const Expr x = wide(node, 0), w = wide(node, 1), bias = wide(node, 2);
  const Expr past = wide(node, 4);
  const int64_t heads = node.get_int("num_heads");
  require(node,
          x.rank() == 3 && extent(x, 1) == 1 && w.rank() == 2 &&
              extent(w, 0) == extent(x, 2) && bias.shape() == Shape{extent(w, 1)} &&
              past.rank() == 5 && extent(past, 0) == 2 && heads > 0,
          "weights, bias and past do not fit the input");
  const int64_t size = heads * extent(past, 4), batch = extent(x, 0);
  require(node, extent(w, 1) == 3 * size && extent(past, 1) == batch,
          "weights and past do not fit the heads");
  const Expr all = matmul(x, w) + bias;
  const auto part = [&](int64_t i) {
    return split_heads(node, cut(all, 2, i * size, size), heads);
  };
  AttentionParts parts{part(0), part(1), part(2)};
  const bool shared = node.get_int("past_present_share_buffer") != 0;
  Expr* const fresh[] = {&parts.k, &parts.v};
  Expr used = number(node.g, DType::I64, 0);
  if (shared) {
    require(node, element_count(node.shape(6)) == 1,
            "past_sequence_length must be one number");
    used = reshape(convert(operand(node, 6), DType::I64), {1, 1, 1, 1});
  }
  for (int64_t i = 0; i < 2; ++i) {
    const Expr half =
        shared ? shared_half(node, past, i, false) : squeeze(cut(past, 0, i, 1), 0);
    *fresh[i] =
        shared ? written_at(half, *fresh[i], used, 2) : join({half, *fresh[i]}, 2);
  }
  const int64_t keys = extent(parts.k, 2);
  if (shared) {
    const Expr key = count_along(node.g, DType::I64, keys, 3, 4);
    parts.allowed = less_equal(key, used);
  }
  const double scale = node.has("scale") ? node.get_float("scale") : 0;
  parts.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(parts.q, 3)));
  add_decoder_biases(node, parts);
  finish(node, join_heads(attend(node, parts).y));
  if (!node.wants_output(1)) return;
  const Expr k = shared ? shared_half(node, parts.k, 0, true) : parts.k;
  finish(node, join({unsqueeze(k, 0), unsqueeze(parts.v, 0)}, 0), 1);
}

} // namespace svod::importer
