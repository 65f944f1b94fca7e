// Attention of decoders with grouped heads and a cache. The past comes in as a tensor and
// goes out as one with the new keys written into it; nothing is kept between runs.
#include "importer/rules/attention/attention.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {
namespace {

// Where the new keys of GroupQueryAttention stand: right after the past of their batch
// entry.
struct CachePlace {
  int64_t total = 0;          // keys of the result
  std::optional<Expr> offset; // [batch, 1, 1, 1]; none: `start` for every entry
  int64_t start = 0;
};

CachePlace cache_place(NodeImport& node, int64_t batch, int64_t past, int64_t fresh) {
  std::vector<int64_t> total = node.known_ints(6);
  require(node, total.size() == 1 && total[0] >= fresh,
          "total_sequence_length is less than the new keys");
  CachePlace place{std::max(past, total[0]), {}, 0};
  if (fresh == total[0]) return place; // the first prompt: the cache starts here
  place.start = past;
  if (batch == 1 && past + fresh == total[0]) return place;
  Expr last = convert(operand(node, 5), DType::I64);
  require(node, element_count(last.shape()) == batch,
          "seqlens_k must have one entry per batch");
  place.offset = reshape(last, {batch, 1, 1, 1}) + static_cast<double>(1 - fresh);
  return place;
}

Expr offset_of(NodeImport& node, const CachePlace& place) {
  return place.offset ? *place.offset
                      : number(node.g, DType::I64, static_cast<double>(place.start));
}

// The cache with the new keys or values [batch, heads, fresh, head] written into their
// place.
Expr updated_cache(NodeImport& node, size_t i, Expr fresh, const CachePlace& place) {
  Shape shape = fresh.shape();
  shape[2] = place.total;
  Expr cache = with(fresh, constant(node.g, fresh.dtype(), shape, 0));
  if (node.has_input(i)) {
    Expr past = wide(node, i);
    Shape expected = fresh.shape();
    expected[2] = past.rank() == 4 ? extent(past, 2) : 0;
    require(node, past.shape() == expected && expected[2] <= place.total,
            "a past tensor does not fit the new keys or values");
    cache = pad(past, Shape(4, 0), {0, 0, place.total - expected[2], 0}, 0);
  }
  int64_t count = extent(fresh, 2);
  if (!place.offset)
    return join({cut(cache, 2, 0, place.start), fresh,
                 cut(cache, 2, place.start + count, place.total - place.start - count)},
                2);
  return written_at(cache, fresh, *place.offset);
}

Expr rotary_rows(NodeImport& node, size_t i, Expr positions) {
  Expr cache = wide(node, i);
  require(node, cache.rank() == 2, "a cache of cosines or sines must be a matrix");
  Shape to = positions.shape();
  to.push_back(extent(cache, 1));
  Expr flat = reshape(positions, {element_count(positions.shape())});
  return reshape(take(cache, 0, flat), to);
}

// Queries, keys and values, split into heads; one packed tensor holds them side by side.
AttentionParts grouped_operands(NodeImport& node, int64_t heads, int64_t key_heads) {
  Expr q = wide(node, 0);
  within_reach(node, heads, "num_heads");
  within_reach(node, key_heads, "kv_num_heads");
  require(node, q.rank() == 3 && heads > 0 && key_heads > 0, "query must have 3 axes");
  if (node.has_input(1))
    return {split_heads(node, q, heads), split_heads(node, wide(node, 1), key_heads),
            split_heads(node, wide(node, 2), key_heads)};
  int64_t head = extent(q, 2) / (heads + 2 * key_heads);
  require(node, extent(q, 2) == head * (heads + 2 * key_heads),
          "the packed query does not fit");
  return {split_heads(node, cut(q, 2, 0, heads * head), heads),
          split_heads(node, cut(q, 2, heads * head, key_heads * head), key_heads),
          split_heads(node, cut(q, 2, (heads + key_heads) * head, key_heads * head),
                      key_heads)};
}

// A bias of the scores, and what takes weight beside the keys: a learnt score per head,
// or 0 where smooth_softmax asks for it.
void add_bias_and_sink(NodeImport& node, AttentionParts& parts) {
  if (node.has_input(10)) {
    parts.bias = wide(node, 10);
    require_broadcast(
        node, parts.bias->shape(),
        {extent(parts.q, 0), extent(parts.q, 1), extent(parts.q, 2), extent(parts.k, 2)});
  }
  if (node.has_input(11)) {
    parts.sink = wide(node, 11);
    require(node, parts.sink->shape() == Shape{extent(parts.q, 1)},
            "head_sink must have one score per head");
  } else if (node.get_int("smooth_softmax") > 0) {
    parts.sink = number(node.g, parts.q.dtype(), 0);
  }
}

} // namespace

void import_group_query_attention(NodeImport& node) {
  if (node.get_string("k_quant_type") != "NONE" ||
      node.get_string("v_quant_type") != "NONE")
    node.unsupported("a quantised cache");
  if (node.get_int("sliding_window_cache") != 0) node.unsupported("a cache that slides");
  for (size_t i = 12; i < node.input_count(); ++i)
    if (node.has_input(i)) node.unsupported("input " + std::to_string(i));
  AttentionParts parts =
      grouped_operands(node, node.get_int("num_heads"), node.get_int("kv_num_heads"));
  int64_t batch = extent(parts.q, 0), fresh = extent(parts.k, 2);
  int64_t past = node.has_input(3) && node.rank(3) == 4 ? node.shape(3)[2] : 0;
  CachePlace place = cache_place(node, batch, past, fresh);
  Expr offset = offset_of(node, place);
  if (node.get_int("do_rotary")) {
    Expr positions = offset + count_along(node.g, DType::I64, fresh, 3, 4);
    positions = reshape(broadcast(positions, {batch, 1, 1, fresh}), {batch, fresh});
    if (node.has_input(9)) positions = convert(operand(node, 9), DType::I64);
    require(node, positions.shape() == Shape{batch, fresh},
            "position_ids has a wrong shape");
    Expr cos = rotary_rows(node, 7, positions), sin = rotary_rows(node, 8, positions);
    bool interleaved = node.get_int("rotary_interleaved") != 0;
    int64_t width = 2 * extent(cos, 2);
    parts.q = rotate(node, parts.q, cos, sin, width, interleaved);
    parts.k = rotate(node, parts.k, cos, sin, width, interleaved);
  }
  parts.k = updated_cache(node, 3, parts.k, place);
  parts.v = updated_cache(node, 4, parts.v, place);
  double scale = node.get_float("scale");
  parts.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(parts.q, 3)));
  parts.softcap = node.get_float("softcap");
  Visibility view{fresh, place.total, node.get_int("causal") != 0};
  // The window counts the query itself.
  if (int64_t local = node.get_int("local_window_size"); local > 0) view.left = local - 1;
  parts.allowed = visible_keys(view, offset);
  add_bias_and_sink(node, parts);
  finish(node, join_heads(attend(node, parts).y));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, parts.v, 2);
}

} // namespace svod::importer
