// Attention of com.microsoft's encoders and decoders: over projected queries, keys and
// values, over what one weight projects, in floats or in 8 bits. Masks are lengths, flags
// or a bias; a hidden key gets a large negative score.
#include "importer/bounded/bounded.h"
#include "importer/formula/quantization.h"
#include "importer/rules/attention/attention.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {
namespace {

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
  std::optional<Expr> seen =
      visible_keys(view, number(node.g, DType::I64, static_cast<double>(keys - queries)));
  if (seen) parts.allowed = parts.allowed ? both(*parts.allowed, *seen) : *seen;
}

double scale_or_default(NodeImport& node, Expr q) {
  double scale = node.has("scale") ? node.get_float("scale") : 0;
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(q, 3)));
}

// Queries, keys and values [batch, heads, length, head] of MultiHeadAttention, before its
// bias: three tensors, keys and values packed [batch, length, heads, 2, head], or all
// three [batch, length, heads, 3, head].
struct Operands {
  Expr q, k, v;
};

Expr unpacked_part(Expr x, int64_t part) {
  return permute(squeeze(cut(x, 3, part, 1), 3), {0, 2, 1, 3});
}

Operands read_operands(NodeImport& node, int64_t heads) {
  const Expr q = wide(node, 0);
  if (q.rank() == 5) {
    require(node, extent(q, 2) == heads && extent(q, 3) == 3,
            "a packed query must be [batch, length, heads, 3, head]");
    return {unpacked_part(q, 0), unpacked_part(q, 1), unpacked_part(q, 2)};
  }
  const Expr queries = split_heads(node, q, heads), k = wide(node, 1);
  if (k.rank() == 5) {
    require(node, extent(k, 2) == heads && extent(k, 3) == 2,
            "packed keys must be [batch, length, heads, 2, head]");
    return {queries, unpacked_part(k, 0), unpacked_part(k, 1)};
  }
  const Expr v = wide(node, 2);
  require(node, (k.rank() == 3 || k.rank() == 4) && v.rank() == k.rank(),
          "key and value must both have 3 or 4 axes");
  if (k.rank() == 4) return {queries, k, v};
  return {queries, split_heads(node, k, heads), split_heads(node, v, heads)};
}

// Adds the bias of queries, keys and values [all their hidden sizes]; keys that come
// split into heads have theirs in them.
void add_projection_bias(NodeImport& node, size_t i, bool keys_are_biased, Operands& x) {
  if (!node.has_input(i)) return;
  const Expr bias = wide(node, i);
  const int64_t heads = extent(x.q, 1);
  const auto part = [&](Expr to, int64_t start) {
    const Expr row = cut(bias, 0, start, heads * extent(to, 3));
    return to + reshape(row, {1, heads, 1, extent(to, 3)});
  };
  const int64_t q = heads * extent(x.q, 3), k = heads * extent(x.k, 3);
  require(node, bias.shape() == Shape{q + k + heads * extent(x.v, 3)},
          "the bias does not fit queries, keys and values");
  x.q = part(x.q, 0);
  if (keys_are_biased) return;
  x.k = part(x.k, q);
  x.v = part(x.v, q + k);
}

// A past with room for what follows, of which past_sequence_length positions count: the
// new keys are written behind them, and later positions are hidden.
void write_into_past(NodeImport& node, size_t past, size_t length,
                     AttentionParts& parts) {
  require(node, element_count(node.shape(length)) == 1,
          "past_sequence_length must be one number");
  const Expr used = reshape(convert(operand(node, length), DType::I64), {1, 1, 1, 1});
  const int64_t fresh = extent(parts.k, 2);
  write_into_caches(node, past, parts, used);
  const Expr key = count_along(node.g, DType::I64, extent(parts.k, 2), 3, 4);
  const Expr seen = less(key, used + static_cast<double>(fresh));
  parts.allowed = parts.allowed ? both(*parts.allowed, seen) : seen;
}

// Keys or values behind the past [batch, heads, past, head], of which the run says how
// many places count: the new ones are written there, if need be into more room.
Expr behind_past(NodeImport& node, Expr before, Expr fresh, Expr used) {
  const int64_t most = bounded_size(node, used).bound + extent(fresh, 2);
  const int64_t more = std::max<int64_t>(most - extent(before, 2), 0);
  const Expr room = pad(before, {0, 0, 0, 0}, {0, 0, more, 0}, 0);
  return written_at(room, fresh, used, 2);
}

// An input with one place per key, of which the run says how many there are: as many
// places as there is room for keys.
void fit_keys(NodeImport& node, size_t input, Expr wanted, int64_t keys) {
  if (!node.has_input(input) || node.rank(input) < 2) return;
  Expr x = operand(node, input);
  const int64_t axis = x.rank() - 1;
  const NodeId count = count_along(node, input, axis);
  if (count == kNoNode) return;
  const int64_t have = extent(x, axis);
  if (wanted.id != count) {
    const Expr places = count_along(node.g, DType::I64, have, 0, 1);
    x = take(x, axis, if_kept(equal(wanted, Expr{&node.g, count}), places));
  }
  Shape none(x.shape().size(), 0), more = none;
  more.back() = std::max<int64_t>(keys - have, 0);
  node.replace_input(input, cut(pad(x, none, more, 0), axis, 0, keys).id);
}

// How many keys the run has: those of a past, and new ones behind them.
struct RunKeys {
  Expr past, all;
  bool open = false; // one of them is the run's to say
  std::optional<Expr> of_run() const { return open ? std::optional(all) : std::nullopt; }
};

RunKeys keys_of_run(NodeImport& node, std::optional<InputAxis> past, InputAxis fresh) {
  const Expr added = size_along(node, fresh.input, fresh.axis);
  RunKeys keys{like(added, 0), added,
               count_along(node, fresh.input, fresh.axis) != kNoNode};
  if (!past) return keys;
  keys.past = size_along(node, past->input, past->axis);
  keys.all = keys.past + added;
  keys.open |= count_along(node, past->input, past->axis) != kNoNode;
  return keys;
}

// Hides what the run leaves of the room for keys. A hidden value must still be a number:
// its weight is 0.
void hide_room(AttentionParts& parts, const RunKeys& keys, bool causal) {
  const int64_t queries = extent(parts.q, 2), room = extent(parts.k, 2);
  const Expr key = count_along(*parts.q.g, DType::I64, room, 3, 4);
  parts.allowed =
      causal ? visible_keys({queries, room, true}, keys.past) : less(key, keys.all);
  parts.v = masked(parts.v, {kNoNode, kNoNode, keys.all.id, kNoNode}, 0);
}

// The inputs of an attention over projected operands, by number.
struct AttentionInputs {
  size_t mask, bias, past, past_length, projection_bias;
};

// Both parts of a past whose length the run says.
void join_sized_past(NodeImport& node, const AttentionInputs& at, AttentionParts& parts) {
  const NodeId count = count_along(node, at.past, 2);
  for (auto [i, x] : {std::pair(at.past, &parts.k), std::pair(at.past + 1, &parts.v)}) {
    const Expr before = wide(node, i);
    Shape expected = x->shape();
    require(node, before.rank() == 4, "a cache must have 4 axes");
    expected[2] = extent(before, 2);
    require(node, before.shape() == expected && before.dtype() == x->dtype(),
            "a cache does not fit the new keys or values");
    if (count_along(node, i, 2) != count) refuse_bounded(node, i, 2);
    const Expr used{&node.g, count};
    const int64_t bound = expected[2] + extent(*x, 2);
    const auto grown = written_behind(node, i, 2, *x, used, bound);
    *x = grown ? *grown : behind_past(node, before, *x, used);
  }
}

// Where the new keys of MultiHeadAttention have their length.
InputAxis key_length(const NodeImport& node) {
  if (node.rank(0) == 5) return {0, 1};
  return {1, node.rank(1) == 4 ? 2 : 1};
}

void attend_operands(NodeImport& node, const AttentionInputs& at) {
  const bool sized = node.has_input(at.past) && count_along(node, at.past, 2) != kNoNode;
  const int64_t heads = node.get_int("num_heads");
  const bool keys_are_biased = node.has_input(1) && node.rank(1) == 4;
  Operands x = read_operands(node, heads);
  add_projection_bias(node, at.projection_bias, keys_are_biased, x);
  AttentionParts parts{x.q, x.k, x.v};
  if (node.has_input(at.past_length) && node.has_input(at.past)) {
    write_into_past(node, at.past, at.past_length, parts);
  } else if (sized) {
    join_sized_past(node, at, parts);
  } else {
    parts.k = with_past(node, at.past, parts.k);
    parts.v = with_past(node, at.past + 1, parts.v);
  }
  std::optional<InputAxis> past;
  if (node.has_input(at.past)) past = {at.past, 2};
  const InputAxis fresh = key_length(node);
  const RunKeys keys = keys_of_run(node, past, fresh);
  if (keys.open && node.has_input(at.past_length))
    refuse_bounded(node, fresh.input, fresh.axis);
  const bool causal = node.has("unidirectional") && node.get_int("unidirectional") != 0;
  const Expr values = parts.v;
  if (keys.open) {
    hide_room(parts, keys, causal);
    for (size_t i : {at.mask, at.bias}) fit_keys(node, i, keys.all, extent(parts.k, 2));
  }
  parts.scale = scale_or_default(node, parts.q);
  add_key_mask(node, parts, at.mask);
  add_vendor_bias(node, parts, at.bias);
  if (causal && !keys.open) add_unidirectional(node, parts);
  const AttentionResult result = attend(node, parts);
  finish(node, join_heads(result.y));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, values, 2);
  if (node.wants_output(3)) finish(node, result.weights, 3);
  give_sizes(node, keys.of_run(), {1, 2}, 2);
  if (node.wants_output(3))
    node.set_counts(3, tidy({count_along(node, 0, 0), kNoNode, count_along(node, 0, 1),
                             keys.open ? keys.all.id : kNoNode}));
}

} // namespace

void import_multi_head_attention(NodeImport& node) {
  if (node.has_input(9)) node.unsupported("cache_indirection");
  attend_operands(node, {4, 5, 6, 8, 3});
}

// One query after its cache.
void import_decoder_masked_attention(NodeImport& node) {
  if (node.has_input(9)) node.unsupported("cache_indirection");
  require(node, node.rank(0) == 3 && node.shape(0)[1] == 1,
          "the query must be one position");
  attend_operands(node, {3, 4, 5, 7, 10});
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

// Joins the new keys and values with the past [2, batch, heads, past, head].
void join_past(NodeImport& node, size_t input, AttentionParts& parts) {
  if (!node.has_input(input)) return;
  const Expr past = wide(node, input);
  require(node, past.rank() == 5 && extent(past, 0) == 2, "past has a wrong shape");
  const NodeId count = count_along(node, input, 3);
  for (auto [kind, x] : {std::pair(0, &parts.k), std::pair(1, &parts.v)}) {
    const Expr before = squeeze(cut(past, 0, kind, 1), 0);
    Shape expected = x->shape();
    expected[2] = extent(before, 2);
    require(node, before.shape() == expected && before.dtype() == x->dtype(),
            "past does not fit the new keys");
    *x = count == kNoNode ? join({before, *x}, 2)
                          : behind_past(node, before, *x, {&node.g, count});
  }
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
  join_past(node, past_input, parts);
  std::optional<InputAxis> past;
  if (node.has_input(past_input)) past = {past_input, 3};
  const RunKeys keys = keys_of_run(node, past, {0, 1});
  if (keys.open) {
    hide_room(parts, keys, node.get_int("unidirectional") != 0);
    fit_keys(node, mask, keys.all, extent(parts.k, 2));
  }
  parts.scale = scale_or_default(node, parts.q);
  add_key_mask(node, parts, mask);
  if (bias) add_vendor_bias(node, parts, *bias);
  if (!keys.open) add_unidirectional(node, parts);
  give(node, 0, join_heads(attend(node, parts).y));
  if (node.wants_output(1))
    give(node, 1, join({unsqueeze(parts.k, 0), unsqueeze(parts.v, 0)}, 0));
  give_sizes(node, keys.of_run(), {1}, 3);
}

// Results in the type of the model's floats.
void round_results(NodeImport& node, DType to) {
  for (size_t i = 0; i < node.results().size(); ++i)
    node.output(i, cast(node.g, node.results()[i], to));
}

} // namespace

namespace {

// Inputs, by number, whose sizes are those of others.
struct Shared {
  size_t mask; // [batch], [batch, keys] or [batch, queries, keys]
  size_t bias; // has a place per key
};

// The groups are batch, queries and others. The last axis of what has a place per key is
// compared with all keys that there are, when it is used.
void agree_on_sizes(NodeImport& node, std::vector<std::vector<InputAxis>> groups,
                    const Shared& shared) {
  if (node.has_input(shared.mask)) {
    const int64_t rank = node.rank(shared.mask);
    const bool lengths =
        node.rank(0) > 0 && node.shape(shared.mask) == Shape{node.shape(0)[0]};
    if (rank == 2 || rank == 3 || lengths) groups[0].push_back({shared.mask, 0});
    if (rank == 3) groups[1].push_back({shared.mask, 1});
  }
  for (const size_t i : {shared.mask, shared.bias})
    if (node.has_input(i) && node.rank(i) > 1) groups.push_back({{i, node.rank(i) - 1}});
  agree_on_groups(node, groups);
}

} // namespace

void bounded_attention(NodeImport& node, Rule rule) {
  agree_on_sizes(node, {{{0, 0}, {4, 1}}, {{0, 1}}, {{4, 3}}}, {3, 5});
  rule(node);
}

void bounded_multi_head_attention(NodeImport& node, Rule rule) {
  std::vector<InputAxis> keys;
  for (const size_t i : {1, 2})
    if (node.has_input(i)) keys.push_back({i, node.rank(i) == 4 ? 2 : 1});
  agree_on_sizes(
      node, {{{0, 0}, {1, 0}, {2, 0}, {6, 0}, {7, 0}}, {{0, 1}}, keys, {{6, 2}, {7, 2}}},
      {4, 5});
  rule(node);
}

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

} // namespace svod::importer
