// Attention in which a query sees few keys by construction: Phi-3's blocks, listed per
// head in compressed rows, and Longformer's window with a few tokens that see and are
// seen by all. The pattern becomes a mask; what it hides has weight 0.
#include "importer/rules/attention/attention.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {
namespace {

// Blocks of keys that rows of blocks of queries see, as 0 and 1, [layouts, rows, rows],
// from the compressed rows: where each row begins in the list, and the list of columns.
struct Layout {
  int64_t layouts, rows;
  std::vector<int64_t> seen;
};

Layout read_layout(NodeImport& node, size_t row_input) {
  const Shape &starts = node.shape(row_input), &list = node.shape(row_input + 1);
  require(node,
          starts.size() == 2 && list.size() == 2 && starts[0] == list[0] &&
              starts[0] > 0 && starts[1] > 1,
          "block_row_indices and block_col_indices must be [layouts, ..]");
  const std::vector<int64_t> row = node.known_ints(row_input);
  const std::vector<int64_t> column = node.known_ints(row_input + 1);
  Layout out{starts[0], starts[1] - 1, {}};
  constexpr int64_t kMostBlocks = int64_t{1} << 24;
  if (out.rows > kMostBlocks / out.rows / out.layouts)
    node.unsupported("a block mask of " + std::to_string(out.rows) + " rows");
  out.seen.resize(static_cast<size_t>(out.layouts * out.rows * out.rows));
  for (int64_t l = 0; l < out.layouts; ++l)
    for (int64_t r = 0; r < out.rows; ++r) {
      const auto at = static_cast<size_t>(l * (out.rows + 1) + r);
      const int64_t end = row[at + 1];
      require(node, row[at] >= 0 && row[at] <= end && end <= list[1],
              "block_row_indices do not rise within block_col_indices");
      for (int64_t i = row[at]; i < end; ++i) {
        const int64_t c = column[static_cast<size_t>(l * list[1] + i)];
        require(node, c >= 0 && c < out.rows, "a block column is out of range");
        out.seen[static_cast<size_t>((l * out.rows + r) * out.rows + c)] = 1;
      }
    }
  return out;
}

// bool [batch, heads, queries, keys]: what the layout lets queries at `positions` [batch,
// queries] see. Heads take the layouts in turn.
Expr seen_blocks(NodeImport& node, const Layout& layout, Expr positions, int64_t block,
                 int64_t heads, int64_t keys) {
  const int64_t batch = extent(positions, 0), queries = extent(positions, 1);
  require(node, heads % layout.layouts == 0,
          "the number of layouts does not divide num_heads");
  require(node, (keys + block - 1) / block <= layout.rows,
          "the block mask is smaller than the cache");
  Expr mask{&node.g,
            tensor_i64(node.g, {layout.layouts, layout.rows, layout.rows}, layout.seen)};
  std::vector<int64_t> block_of_key;
  for (int64_t key = 0; key < keys; ++key) block_of_key.push_back(key / block);
  mask = take(convert(mask, DType::U8), 2, block_of_key);
  const Expr row = positions / static_cast<double>(block);
  mask = take(mask, 1, reshape(row, {batch * queries}));
  mask = reshape(mask, {1, layout.layouts, batch, queries, keys});
  const int64_t each = heads / layout.layouts;
  mask = broadcast(mask, {each, layout.layouts, batch, queries, keys});
  mask = permute(mask, {2, 0, 1, 3, 4});
  return less(0.0, reshape(mask, {batch, heads, queries, keys}));
}

// Rows of a cache [positions, width] at places [batch, queries].
Expr cache_rows(NodeImport& node, size_t i, Expr places) {
  const Expr cache = wide(node, i);
  require(node, cache.rank() == 2, "a cache of cosines or sines must be a matrix");
  const Expr rows = take(cache, 0, reshape(places, {element_count(places.shape())}));
  return reshape(rows, {extent(places, 0), extent(places, 1), extent(cache, 1)});
}

// Queries, keys and values in heads; one packed query holds all three.
AttentionParts sparse_operands(NodeImport& node, int64_t heads, int64_t key_heads) {
  const Expr q = wide(node, 0);
  require(node, q.rank() == 3 && heads > 0 && key_heads > 0 && heads % key_heads == 0,
          "the query must be [batch, length, hidden size]");
  within_reach(node, heads, "num_heads");
  if (node.has_input(1))
    return {split_heads(node, q, heads), split_heads(node, wide(node, 1), key_heads),
            split_heads(node, wide(node, 2), key_heads)};
  const int64_t size = extent(q, 2) / (heads + 2 * key_heads);
  const auto part = [&](int64_t start, int64_t count) {
    return split_heads(node, cut(q, 2, start * size, count * size), count);
  };
  require(node, extent(q, 2) == size * (heads + 2 * key_heads),
          "the packed query does not fit the heads");
  return {part(0, heads), part(heads, key_heads), part(heads + key_heads, key_heads)};
}

} // namespace

// query, key, value, past_key, past_value, block_row_indices, block_col_indices,
// total_sequence_length, key_total_sequence_lengths, cos_cache, sin_cache. The caches
// have room for all positions; the new keys are written behind those that count.
void import_sparse_attention(NodeImport& node) {
  const int64_t heads = node.get_int("num_heads");
  const int64_t key_heads = node.get_int("kv_num_heads");
  const int64_t block = node.get_int("sparse_block_size");
  require(node, block > 0, "sparse_block_size is not positive");
  AttentionParts parts = sparse_operands(node, heads, key_heads);
  const int64_t batch = extent(parts.q, 0), fresh = extent(parts.q, 2);
  const Expr lengths = convert(operand(node, 8), DType::I64);
  require(node, lengths.shape() == Shape{batch},
          "key_total_sequence_lengths must have one entry per batch");
  // A first prompt starts at 0, whatever of it is padding.
  const Expr total = reshape(convert(operand(node, 7), DType::I64), {1});
  const Expr behind = lengths - static_cast<double>(fresh);
  const Expr first = equal(total, static_cast<double>(fresh));
  const Expr start = select(broadcast(first, {batch}), like(behind, 0), behind);
  const Expr offset = reshape(start, {batch, 1, 1, 1});
  const Expr positions =
      reshape(start, {batch, 1}) + count_along(node.g, DType::I64, fresh, 1, 2);
  if (node.get_int("do_rotary") != 0) {
    const Expr cos = cache_rows(node, 9, positions),
               sin = cache_rows(node, 10, positions);
    const bool interleaved = node.get_int("rotary_interleaved") != 0;
    const int64_t width = 2 * extent(cos, 2);
    parts.q = rotate(node, parts.q, cos, sin, width, interleaved);
    parts.k = rotate(node, parts.k, cos, sin, width, interleaved);
  }
  write_into_caches(node, 3, parts, offset);
  const int64_t keys = extent(parts.k, 2);
  const double scale = node.has("scale") ? node.get_float("scale") : 0;
  parts.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(parts.q, 3)));
  parts.allowed =
      both(*visible_keys({fresh, keys, true}, offset),
           seen_blocks(node, read_layout(node, 5), positions, block, heads, keys));
  parts.row_may_be_empty = true;
  finish(node, join_heads(attend(node, parts).y));
  if (node.wants_output(1)) finish(node, parts.k, 1);
  if (node.wants_output(2)) finish(node, parts.v, 2);
}

namespace {

// [batch, length, width] times weights and bias, as queries, keys and values in heads.
AttentionParts projected_heads(NodeImport& node, size_t weights, int64_t heads) {
  const Expr x = wide(node, 0), w = wide(node, weights), bias = wide(node, weights + 1);
  require(node,
          x.rank() == 3 && w.rank() == 2 && extent(w, 0) == extent(x, 2) &&
              extent(w, 1) == 3 * extent(x, 2) && bias.shape() == Shape{extent(w, 1)},
          "weights and bias do not fit the input");
  const Expr all = matmul(x, w) + bias;
  const int64_t size = extent(x, 2);
  const auto part = [&](int64_t i) {
    return split_heads(node, cut(all, 2, i * size, size), heads);
  };
  return {part(0), part(1), part(2)};
}

} // namespace

// input, weight, bias, mask, global_weight, global_bias, global. A token sees `window`
// tokens on either side and all global ones; a global token sees everything, by weights
// of its own.
void import_longformer_attention(NodeImport& node) {
  const int64_t heads = node.get_int("num_heads"), window = node.get_int("window");
  require(node, window > 0 && window < (int64_t{1} << 31), "window is out of range");
  AttentionParts local = projected_heads(node, 1, heads);
  AttentionParts global = projected_heads(node, 4, heads);
  const int64_t batch = extent(local.q, 0), length = extent(local.q, 2);
  const Expr mask = wide(node, 3), flags = operand(node, 6);
  require(node, mask.shape() == Shape{batch, length} && flags.shape() == mask.shape(),
          "mask and global must be [batch, length]");
  const Expr is_global = apply(Op::Not, equal(flags, 0));
  const Expr key_is_global = reshape(is_global, {batch, 1, 1, length});
  const Expr bias = reshape(mask, {batch, 1, 1, length});
  const auto near = visible_keys({length, length, false, window, window},
                                 number(node.g, DType::I64, 0));
  for (AttentionParts* parts : {&local, &global}) {
    parts->scale = 1 / std::sqrt(static_cast<double>(extent(parts->q, 3)));
    parts->bias = bias;
  }
  if (near) local.allowed = either(*near, key_is_global);
  const Expr y = select(reshape(is_global, {batch, 1, length, 1}), attend(node, global).y,
                        attend(node, local).y);
  finish(node, join_heads(y));
}

} // namespace svod::importer
