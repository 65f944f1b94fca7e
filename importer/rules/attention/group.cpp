// Attention of decoders with grouped heads and a cache. The past comes in as a tensor and
// goes out as one with the new keys written into it; nothing is kept between runs.
#include "importer/bounded/bounded.h"
#include "importer/rules/attention/attention.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {
namespace {

// Where the new keys of GroupQueryAttention stand: right after the past of their batch
// entry.
struct CachePlace {
  int64_t total = 0;          // keys of the result, or room for them
  std::optional<Expr> offset; // [batch, 1, 1, 1]; none: `start` for every entry
  int64_t start = 0;
  // Of them the run's, and those that there are of the result; none: total.
  std::optional<Expr> seen = {}, kept = {};
};

bool sizes_are_open(const NodeImport& node) {
  return !node.counts(0).empty() || (node.has_input(3) && !node.counts(3).empty());
}

// Where the run says how long the prompt, its past and both are. There is room for the
// longest of each; a past that has room for all is no longer for it.
CachePlace place_of_run(NodeImport& node, int64_t batch, int64_t past, int64_t fresh) {
  require(node,
          node.has_input(5) && node.has_input(6) &&
              element_count(node.shape(5)) == batch && element_count(node.shape(6)) == 1,
          "total_sequence_length must be one number, and seqlens_k have one per batch");
  const Expr total = convert(reshape(operand(node, 6), {}), DType::I64);
  const Expr prompt = size_along(node, 0, 1);
  const Expr before = past > 0 ? size_along(node, 3, 2) : like(total, 0);
  CachePlace place{past + fresh, {}, 0};
  const Expr kept = maximum(before, total);
  if (const auto known = known_ints(node.g, kept.id)) {
    require(node, known->front() <= place.total,
            "total_sequence_length is more than the past and the new keys");
    place.total = known->front();
  }
  const Expr room = like(kept, static_cast<double>(place.total));
  place.kept = checked(kept, less_equal(kept, room));
  place.seen = total;
  const Expr last = convert(reshape(operand(node, 5), {batch}), DType::I64);
  const Expr first_prompt = equal(prompt, total);
  Expr offset = select(first_prompt, like(last, 0), last + (1.0 - prompt));
  if (!node.counts(5).empty()) offset = masked(offset, {node.counts(5)[0]}, 0);
  place.offset = reshape(offset, {batch, 1, 1, 1});
  return place;
}

CachePlace cache_place(NodeImport& node, int64_t batch, int64_t past, int64_t fresh) {
  if (sizes_are_open(node)) return place_of_run(node, batch, past, fresh);
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
  if (place.kept)
    if (const auto grown = written_behind(node, i, 2, fresh, *place.offset, place.total))
      return *grown;
  Shape shape = fresh.shape();
  shape[2] = place.total;
  Expr cache = with(fresh, constant(node.g, fresh.dtype(), shape, 0));
  if (node.has_input(i)) {
    Expr past = wide(node, i);
    Shape expected = fresh.shape();
    expected[2] = past.rank() == 4 ? extent(past, 2) : 0;
    require(node,
            past.shape() == expected && past.dtype() == fresh.dtype() &&
                expected[2] <= place.total,
            "a past tensor does not fit the new keys or values");
    cache = pad(past, Shape(4, 0), {0, 0, place.total - expected[2], 0}, 0);
  }
  int64_t count = extent(fresh, 2);
  if (!place.offset)
    return join({cut(cache, 2, 0, place.start), fresh,
                 cut(cache, 2, place.start + count, place.total - place.start - count)},
                2);
  return written_at(cache, fresh, *place.offset, 2);
}

// What nobody means must be numbers: a key that is not seen has weight 0, but 0 times
// what is none is none.
Expr only_kept(Expr cache, const CachePlace& place) {
  if (!place.kept) return cache;
  return masked(cache, {kNoNode, kNoNode, place.kept->id, kNoNode}, 0);
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
    // Behind the prompt there are no rows of cosines, maybe.
    const Counts& sizes = node.counts(0);
    if (!sizes.empty()) positions = masked(positions, {sizes[0], sizes[1]}, 0);
    Expr cos = rotary_rows(node, 7, positions), sin = rotary_rows(node, 8, positions);
    bool interleaved = node.get_int("rotary_interleaved") != 0;
    int64_t width = 2 * extent(cos, 2);
    parts.q = rotate(node, parts.q, cos, sin, width, interleaved);
    parts.k = rotate(node, parts.k, cos, sin, width, interleaved);
  }
  parts.k = updated_cache(node, 3, parts.k, place);
  const Expr values = updated_cache(node, 4, parts.v, place);
  parts.v = only_kept(values, place);
  double scale = node.get_float("scale");
  parts.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(parts.q, 3)));
  parts.softcap = node.get_float("softcap");
  Visibility view{fresh, place.total, node.get_int("causal") != 0};
  // The window counts the query itself.
  if (int64_t local = node.get_int("local_window_size"); local > 0) view.left = local - 1;
  parts.allowed = visible_keys(view, offset);
  if (place.seen && !view.causal) {
    const Expr key = count_along(node.g, DType::I64, place.total, 3, 4);
    const Expr there = less(key, *place.seen);
    parts.allowed = parts.allowed ? both(*parts.allowed, there) : there;
  }
  add_bias_and_sink(node, parts);
  finish(node, join_heads(attend(node, parts).y));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, values, 2);
  give_sizes(node, place.kept, {1, 2}, 2);
}

// The batch, the prompt and the past may be of the run's sizes.
void bounded_group_query_attention(NodeImport& node, Rule rule) {
  agree_on_groups(node, {{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {9, 0}},
                         {{0, 1}, {1, 1}, {2, 1}, {9, 1}},
                         {{3, 2}, {4, 2}}});
  rule(node);
}

} // namespace svod::importer
