// Scaled dot-product attention and rotary position embedding, shared by the standard
// operators and those of com.microsoft, which differ in how they name heads, masks and
// caches.
#pragma once

#include "importer/formula/formula.h"

#include <functional>
#include <limits>

namespace svod::importer {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct AttentionParts {
  Expr q, k,
      v; // [batch, heads, queries, head], [batch, key heads, keys, head], .. value head]
  double scale = 1, softcap = 0;
  std::optional<Expr> allowed = {}; // boolean; a key that is not allowed has weight 0
  std::optional<Expr> bias = {};    // added to the scores
  std::optional<Expr> sink = {};    // [heads] or []: a score more that takes weight
  bool row_may_be_empty = false; // a query may have no allowed key: its result is then 0
  DType softmax_type = DType::F32;
  // What happens to the scores before the softmax and to the weights after it.
  std::function<Expr(Expr)> change_scores = {}, change_weights = {};
};

struct AttentionResult {
  Expr y;                            // [batch, heads, queries, value head]
  Expr raw, capped, biased, weights; // [batch, heads, queries, keys] as they come about
};

// Query heads may be a multiple of key heads, which are then shared by neighbours.
AttentionResult attend(NodeImport& node, const AttentionParts& parts);

// x behind the cache [batch, heads, past, head] that is input i, where there is one.
Expr with_past(NodeImport& node, size_t i, Expr x);
// Keys and values written into their caches, inputs i and i + 1, which have room.
void write_into_caches(NodeImport& node, size_t i, AttentionParts& parts, Expr offset);

// Gives the result [batch, queries, width] the sizes of input 0, and the outputs of keys
// and values theirs: along `axis` the keys, where the run says how many, the batch along
// the second before it.
void give_sizes(NodeImport& node, std::optional<Expr> keys,
                const std::vector<size_t>& outputs, size_t axis);

// [batch, sequence, heads * head] as [batch, heads, sequence, head], and back.
Expr split_heads(NodeImport& node, Expr x, int64_t heads);
Expr join_heads(Expr x);

// Which keys a query may see. Queries stand at `offset` + 0, 1, .. among the keys, a
// number or [batch, 1, 1, 1]; windows < 0 are open. None when every key is visible.
struct Visibility {
  int64_t queries, keys;
  bool causal = false;
  int64_t left = -1, right = -1;
};
std::optional<Expr> visible_keys(const Visibility& view, Expr offset);

// x [batch, heads, sequence, head] rotated by cos and sin [batch or 1, sequence, width /
// 2]: the first `width` elements of a head as pairs, neighbours (interleaved) or halves.
Expr rotate(NodeImport& node, Expr x, Expr cos, Expr sin, int64_t width,
            bool interleaved);

} // namespace svod::importer
