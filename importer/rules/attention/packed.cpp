// com.microsoft's transformers without padding. The tokens of all sequences stand one
// after the other, [tokens, width]; token_offset [batch, length] says where each of them
// is in [batch * length], those of padding last, and cumulative_sequence_length [batch +
// 1] where each sequence begins. Attention moves the tokens to their places, attends as
// ever, hiding what lies behind a sequence's end, and moves the results back.
#include "importer/bounded/bounded.h"
#include "importer/rules/attention/attention.h"

#include <cmath>

namespace svod::importer {
namespace {

struct PackedTokens {
  Expr places; // [tokens], in [batch * length]
  Expr counts; // [batch], tokens of each sequence
  int64_t tokens, batch, length;
};

PackedTokens packed_tokens(NodeImport& node, int64_t tokens, size_t offset,
                           size_t cumulative) {
  const Expr all = convert(operand(node, offset), DType::I64);
  require(node, all.rank() == 2, "token_offset must be [batch, length]");
  const int64_t batch = extent(all, 0), length = extent(all, 1);
  require(node, tokens <= batch * length, "there are more tokens than places for them");
  const Expr starts = convert(operand(node, cumulative), DType::I64);
  require(node, starts.shape() == Shape{batch + 1},
          "cumulative_sequence_length must have one entry more than the batch");
  const Expr counts = cut(starts, 0, 1, batch) - cut(starts, 0, 0, batch);
  return {cut(reshape(all, {batch * length}), 0, 0, tokens), counts, tokens, batch,
          length};
}

// [tokens, heads, size] as [batch, heads, length, size], zeros where there is no token.
Expr padded_heads(const PackedTokens& at, Expr x) {
  const int64_t heads = extent(x, 1), size = extent(x, 2);
  const Shape rows{at.batch * at.length, heads * size};
  const Expr none = with(x, constant(*x.g, x.dtype(), rows, 0));
  const Expr index = broadcast(unsqueeze(at.places, 1), {at.tokens, heads * size});
  const Expr moved =
      scatter(none, index, reshape(x, {at.tokens, heads * size}), 0, Combiner::Set);
  return permute(reshape(moved, {at.batch, at.length, heads, size}), {0, 2, 1, 3});
}

// [tokens, heads, size] each; attends and gives [tokens, heads * value size].
void give_packed_attention(NodeImport& node, Expr q, Expr k, Expr v,
                           const PackedTokens& at, size_t bias) {
  AttentionParts parts{padded_heads(at, q), padded_heads(at, k), padded_heads(at, v)};
  const double scale = node.has("scale") ? node.get_float("scale") : 0;
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(q, 2)));
  const Expr key = count_along(node.g, DType::I64, at.length, 3, 4);
  parts.allowed = less(key, reshape(at.counts, {at.batch, 1, 1, 1}));
  parts.row_may_be_empty = true;
  if (node.has_input(bias)) {
    parts.bias = wide(node, bias);
    require_broadcast(node, parts.bias->shape(),
                      {at.batch, extent(q, 1), at.length, at.length});
  }
  const Expr y = join_heads(attend(node, parts).y);
  const Expr rows = reshape(y, {at.batch * at.length, extent(y, 2)});
  finish(node, take(rows, 0, at.places));
}

// [tokens, heads * size] as [tokens, heads, size].
Expr in_heads(NodeImport& node, Expr x, int64_t heads) {
  require(node, x.rank() == 2 && heads > 0 && extent(x, 1) % heads == 0,
          "the number of heads does not divide the hidden size");
  return reshape(x, {extent(x, 0), heads, extent(x, 1) / heads});
}

// Bias of queries, keys and values one after the other, each of its width.
Expr with_bias_from(NodeImport& node, Expr x, size_t bias, int64_t& at) {
  if (!node.has_input(bias)) return x;
  const Expr all = wide(node, bias);
  require(node, all.rank() == 1 && at + extent(x, 1) <= extent(all, 0),
          "the bias does not fit queries, keys and values");
  at += extent(x, 1);
  return x + cut(all, 0, at - extent(x, 1), extent(x, 1));
}

} // namespace

// input, weights, bias, token_offset, cumulative_sequence_length, attention_bias.
void import_packed_attention(NodeImport& node) {
  const Expr x = wide(node, 0), w = wide(node, 1), bias = wide(node, 2);
  require(node, x.rank() == 2 && w.rank() == 2 && extent(x, 1) == extent(w, 0),
          "weights do not fit the input");
  require(node, bias.shape() == Shape{extent(w, 1)}, "the bias does not fit the weights");
  const PackedTokens at = packed_tokens(node, extent(x, 0), 3, 4);
  const int64_t heads = node.get_int("num_heads"), width = extent(w, 1);
  std::vector<int64_t> sizes = node.get_ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, width / 3);
  require(node,
          sizes.size() == 3 && sizes[0] >= 0 && sizes[0] == sizes[1] && sizes[2] >= 0 &&
              sizes[0] + sizes[1] + sizes[2] == width,
          "qkv_hidden_sizes do not fit the weights");
  const Expr all = matmul(x, w) + bias;
  const auto part = [&](int64_t start, int64_t size) {
    return in_heads(node, cut(all, 1, start, size), heads);
  };
  give_packed_attention(node, part(0, sizes[0]), part(sizes[0], sizes[1]),
                        part(sizes[0] + sizes[1], sizes[2]), at, 5);
}

// query, key, value, bias, token_offset, cumulative_sequence_length, attention_bias. One
// query [tokens, heads, 3, size] may hold all three.
void import_packed_multi_head_attention(NodeImport& node) {
  const Expr query = wide(node, 0);
  const int64_t heads = node.get_int("num_heads");
  const PackedTokens at = packed_tokens(node, extent(query, 0), 4, 5);
  Expr q = query, k = query, v = query;
  if (query.rank() == 4) {
    require(node, extent(query, 1) == heads && extent(query, 2) == 3,
            "a packed query must be [tokens, heads, 3, size]");
    const auto part = [&](int64_t which) {
      return reshape(cut(query, 2, which, 1), {at.tokens, heads * extent(query, 3)});
    };
    q = part(0), k = part(1), v = part(2);
  } else {
    k = wide(node, 1), v = wide(node, 2);
    require(node,
            q.rank() == 2 && k.shape() == q.shape() && v.rank() == 2 &&
                extent(v, 0) == at.tokens,
            "query, key and value must be [tokens, hidden size]");
  }
  int64_t used = 0;
  q = with_bias_from(node, q, 3, used);
  k = with_bias_from(node, k, 3, used);
  v = with_bias_from(node, v, 3, used);
  give_packed_attention(node, in_heads(node, q, heads), in_heads(node, k, heads),
                        in_heads(node, v, heads), at, 6);
}

namespace {

// How many tokens each sequence has, [batch], and the places of all in [batch * length],
// those of padding last.
struct Padding {
  Expr counts, order;
  int64_t batch, length;
};

Padding padding_of(NodeImport& node, int64_t batch, int64_t length) {
  const Expr counts = convert(operand(node, 1), DType::I64);
  require(node, counts.shape() == Shape{batch},
          "sequence_token_count must have one entry per sequence");
  const Expr place = count_along(node.g, DType::I64, length, 1, 2);
  const Expr behind = less_equal(reshape(counts, {batch, 1}), place);
  const Expr key = reshape(convert(behind, DType::U8), {batch * length});
  return {counts, with(key, argsort(node.g, key.id, 0, false)), batch, length};
}

} // namespace

// Tokens without those of padding, token_offset, where each sequence begins, and the
// longest of them.
void import_remove_padding(NodeImport& node) {
  const Expr x = operand(node, 0);
  require(node, x.rank() == 3, "the input must be [batch, length, width]");
  const int64_t batch = extent(x, 0), length = extent(x, 1), width = extent(x, 2);
  const Padding padding = padding_of(node, batch, length);
  const Expr total = sum(padding.counts, {0});
  const Expr rows = take(reshape(x, {batch * length, width}), 0, padding.order);
  if (const auto known = known_ints(node.g, total.id))
    give(node, 0, cut(rows, 0, 0, std::clamp<int64_t>(known->at(0), 0, batch * length)));
  else
    give_bounded(node, 0, rows,
                 {{reshape(total, {}), batch * length}, known_size(node.g, width)});
  const auto as_int = [](Expr value) { return convert(value, DType::I32); };
  if (node.wants_output(1))
    give(node, 1, reshape(as_int(padding.order), {batch, length}));
  if (node.wants_output(2)) {
    const Expr ends = with(total, scan(node.g, Op::ScanSum, padding.counts.id, 0));
    give(node, 2, as_int(pad(ends, {1}, {0}, 0)));
  }
  if (node.wants_output(3))
    give(node, 3, as_int(reduce(Op::ReduceMax, padding.counts, {0})));
}

// Zeros where a token is padding.
void import_restore_padding(NodeImport& node) {
  Expr x = operand(node, 0);
  const Expr offset = operand(node, 1);
  require(node,
          x.rank() == 2 && offset.rank() == 2 &&
              extent(x, 0) <= element_count(offset.shape()),
          "the input must be [tokens, width], token_offset [batch, length]");
  const int64_t tokens = extent(x, 0), width = extent(x, 1);
  const int64_t places = element_count(offset.shape());
  if (const NodeId count = count_along(node, 0, 0); count != kNoNode)
    x = masked(x, node.counts(0), 0);
  const Expr flat = reshape(convert(offset, DType::I64), {places});
  const Expr index = broadcast(unsqueeze(cut(flat, 0, 0, tokens), 1), {tokens, width});
  const Expr none = with(x, constant(node.g, x.dtype(), {places, width}, 0));
  const Expr y = scatter(none, index, x, 0, Combiner::Set);
  give(node, 0, reshape(y, {extent(offset, 0), extent(offset, 1), width}));
}

namespace {

// Only the number of tokens may be of the run, and it is one.
NodeId token_count(const NodeImport& node, size_t last) {
  const NodeId count = count_along(node, 0, 0);
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis) {
      const NodeId here = count_along(node, i, axis);
      if (here != kNoNode && (i > last || axis != 0 || here != count))
        refuse_bounded(node, i, axis);
    }
  return count;
}

} // namespace

// Tokens of padding stand behind those that count and have places of their own, so they
// may take part: no token sees them.
void bounded_packed_attention(NodeImport& node, Rule rule) {
  const NodeId count = token_count(node, 2);
  rule(node);
  node.set_counts(0, {count, kNoNode});
}

void bounded_restore_padding(NodeImport& node, Rule rule) {
  token_count(node, 0);
  rule(node);
}

// Position scores by gates that the query computes: query_layer, its bias, rel_pos,
// weight and bias of the gates, eco_a, and token_offset where the query is packed.
void import_gated_relative_position_bias(NodeImport& node) {
  const int64_t heads = node.get_int("num_heads");
  Expr q = wide(node, 0);
  const Expr bias = wide(node, 1), positions = wide(node, 2), weight = wide(node, 3);
  require(node, q.rank() >= 2 && bias.shape() == Shape{extent(q, q.rank() - 1)},
          "query_bias does not fit the query");
  q = q + bias;
  if (node.has_input(6)) {
    const Expr offset = operand(node, 6);
    require(node,
            q.rank() == 2 && offset.rank() == 2 &&
                extent(q, 0) <= element_count(offset.shape()),
            "a packed query must be [tokens, hidden size]");
    const int64_t places = element_count(offset.shape());
    const Expr flat = reshape(convert(offset, DType::I64), {places});
    const PackedTokens at{cut(flat, 0, 0, extent(q, 0)), flat, extent(q, 0),
                          extent(offset, 0), extent(offset, 1)};
    q = padded_heads(at, in_heads(node, q, heads));
  } else {
    q = split_heads(node, q, heads);
  }
  const int64_t batch = extent(q, 0), length = extent(q, 2), width = extent(weight, 1);
  require(node,
          weight.rank() == 2 && extent(weight, 0) == extent(q, 3) && width % 2 == 0 &&
              node.shape(4) == Shape{width} && element_count(node.shape(5)) == heads &&
              positions.shape() == Shape{1, heads, length, length},
          "the gates' weights or rel_pos do not fit the heads");
  const Expr sums = matmul(q, weight) + wide(node, 4);
  const Expr gates =
      sigmoid(sum(reshape(sums, {batch, heads, length, 2, width / 2}), {4}));
  const auto gate = [&](int64_t which) {
    return reshape(cut(gates, 3, which, 1), {batch, heads, length, 1});
  };
  const Expr factor = reshape(wide(node, 5), {1, heads, 1, 1});
  finish(node, (gate(0) * (gate(1) * factor - 1.0) + 2.0) * positions);
}

} // namespace svod::importer
