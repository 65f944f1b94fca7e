// Everything stays a plain composition: two contractions around a softmax, masks as
// selects with minus infinity. Shared key heads become one more axis of the batch, never
// copies.
#include "importer/rules/attention/attention.h"

#include "importer/bounded/bounded.h"

#include <cmath>
#include <limits>

namespace svod::importer {
namespace {

Expr transposed(Expr x) { return with(x, permute_last_two(*x.g, x.id)); }

// q [b, h, s, d] times k [b, g, d, t] with h a multiple of g.
Expr grouped_matmul(NodeImport& node, Expr q, Expr k) {
  int64_t batch = extent(q, 0), heads = extent(q, 1), groups = extent(k, 1);
  require(node, groups > 0 && heads % groups == 0 && extent(k, 0) == batch,
          "heads or batches of queries and keys do not fit");
  require(node, extent(q, 3) == extent(k, 2), "head sizes do not fit");
  require(node, q.dtype() == k.dtype(), "queries, keys and values differ in type");
  if (heads == groups) return matmul(q, k);
  Expr wide = reshape(q, {batch, groups, heads / groups, extent(q, 2), extent(q, 3)});
  Expr y = matmul(wide, unsqueeze(k, 2));
  return reshape(y, {batch, heads, extent(q, 2), extent(k, 3)});
}

// Whether a row has no key at all: nothing allowed, or a bias of minus infinity
// everywhere.
Expr empty_rows(const AttentionParts& parts) {
  Expr reach = parts.bias ? *parts.bias : number(*parts.q.g, DType::F32, 0);
  if (parts.allowed) reach = select(*parts.allowed, reach, like(reach, -kInfinity));
  return equal(reduce(Op::ReduceMax, reach, {reach.rank() - 1}), -kInfinity);
}

// Softmax over the keys, with the sink's score beside them.
Expr weights_of(Expr scores, std::optional<Expr> sink) {
  if (!sink) return softmax(scores, {3});
  Expr other = convert(*sink, scores.dtype());
  if (other.rank() == 1) other = reshape(other, {1, extent(other, 0), 1, 1});
  Expr highest = maximum(reduce(Op::ReduceMax, scores, {3}), other);
  Expr shares = exp(scores - highest);
  return shares / (sum(shares, {3}) + exp(other - highest));
}

} // namespace

AttentionResult attend(NodeImport& node, const AttentionParts& parts) {
  Expr scores = grouped_matmul(node, parts.q * parts.scale, transposed(parts.k));
  AttentionResult result{scores, scores, scores, scores, scores};
  if (parts.softcap > 0) scores = tanh(scores / parts.softcap) * parts.softcap;
  result.capped = scores;
  if (parts.bias) scores = scores + *parts.bias;
  if (parts.allowed) scores = select(*parts.allowed, scores, like(scores, -kInfinity));
  result.biased = scores;
  Expr logits = convert(scores, parts.softmax_type);
  if (parts.change_scores) logits = parts.change_scores(logits);
  Expr weights = weights_of(logits, parts.sink);
  if (parts.row_may_be_empty && (parts.bias || parts.allowed))
    weights = select(empty_rows(parts), like(weights, 0), weights);
  if (parts.change_weights) weights = parts.change_weights(weights);
  result.weights = convert(weights, scores.dtype());
  result.y = grouped_matmul(node, result.weights, parts.v);
  return result;
}

Expr with_past(NodeImport& node, size_t i, Expr x) {
  if (!node.has_input(i)) return x;
  Expr past = wide(node, i);
  Shape expected = x.shape();
  require(node, past.rank() == 4, "a cache must have 4 axes");
  expected[2] = extent(past, 2);
  require(node, past.shape() == expected && past.dtype() == x.dtype(),
          "a cache does not fit the new keys or values");
  return join({past, x}, 2);
}

void write_into_caches(NodeImport& node, size_t i, AttentionParts& parts, Expr offset) {
  for (auto [input, x] : {std::pair(i, &parts.k), std::pair(i + 1, &parts.v)}) {
    const Expr cache = wide(node, input);
    Shape expected = x->shape();
    require(node, cache.rank() == 4, "a cache must have 4 axes");
    expected[2] = extent(cache, 2);
    require(node,
            cache.shape() == expected && cache.dtype() == x->dtype() &&
                expected[2] >= extent(*x, 2),
            "a cache does not fit the new keys or values");
    *x = written_at(cache, *x, offset, 2);
  }
}

void give_sizes(NodeImport& node, std::optional<Expr> keys,
                const std::vector<size_t>& outputs, size_t axis) {
  const NodeId batch = count_along(node, 0, 0);
  node.set_counts(0, tidy({batch, count_along(node, 0, 1), kNoNode}));
  for (const size_t out : outputs) {
    if (!node.wants_output(out)) continue;
    Counts counts(axis + 2, kNoNode);
    counts[axis - 2] = batch;
    if (keys) counts[axis] = keys->id;
    node.set_counts(out, tidy(std::move(counts)));
  }
}

Expr split_heads(NodeImport& node, Expr x, int64_t heads) {
  require(node, x.rank() == 3 && heads > 0 && extent(x, 2) % heads == 0,
          "the number of heads does not divide the hidden size");
  Expr split = reshape(x, {extent(x, 0), extent(x, 1), heads, extent(x, 2) / heads});
  return permute(split, {0, 2, 1, 3});
}

Expr join_heads(Expr x) {
  Expr back = permute(x, {0, 2, 1, 3});
  return reshape(back, {extent(x, 0), extent(x, 2), extent(x, 1) * extent(x, 3)});
}

std::optional<Expr> visible_keys(const Visibility& view, Expr offset) {
  std::optional<Expr> seen;
  auto add = [&](Expr condition) { seen = seen ? both(*seen, condition) : condition; };
  Expr query = count_along(*offset.g, DType::I64, view.queries, 2, 4) + offset;
  Expr key = count_along(*offset.g, DType::I64, view.keys, 3, 4);
  if (view.causal) add(less_equal(key, query));
  if (view.left >= 0) add(less_equal(query - static_cast<double>(view.left), key));
  if (view.right >= 0) add(less_equal(key, query + static_cast<double>(view.right)));
  if (!seen) return seen;
  // A single query after its cache sees every key: no mask then.
  if (auto values = known_ints(*offset.g, seen->id)) {
    bool all = true;
    for (int64_t value : *values) all = all && value != 0;
    if (all) return std::nullopt;
  }
  return seen;
}

Expr rotate(NodeImport& node, Expr x, Expr cos, Expr sin, int64_t width,
            bool interleaved) {
  int64_t head = extent(x, 3), half = width / 2, batch = extent(x, 0),
          heads = extent(x, 1);
  int64_t sequence = extent(x, 2);
  require(node,
          width % 2 == 0 && width <= head && cos.rank() == 3 &&
              cos.shape() == sin.shape() && extent(cos, 1) == sequence &&
              extent(cos, 2) == half,
          "the caches of cosines and sines do not fit the input");
  require(node, extent(cos, 0) == 1 || extent(cos, 0) == batch,
          "the caches' batch differs");
  Expr turned = cut(x, 3, 0, width), rest = cut(x, 3, width, head - width);
  Expr first = cut(turned, 3, 0, half), second = cut(turned, 3, half, half);
  if (interleaved) {
    Expr pairs = reshape(turned, {batch, heads, sequence, half, 2});
    first = squeeze(cut(pairs, 4, 0, 1), 4);
    second = squeeze(cut(pairs, 4, 1, 1), 4);
  }
  cos = unsqueeze(convert(cos, x.dtype()), 1);
  sin = unsqueeze(convert(sin, x.dtype()), 1);
  Expr real = cos * first - sin * second, imaginary = sin * first + cos * second;
  Expr y = real;
  if (interleaved)
    y = reshape(join({unsqueeze(real, 4), unsqueeze(imaginary, 4)}, 4), turned.shape());
  else
    y = join({real, imaginary}, 3);
  return head == width ? y : join({y, rest}, 3);
}

} // namespace svod::importer
