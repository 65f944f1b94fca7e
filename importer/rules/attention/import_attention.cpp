// Attention and RotaryEmbedding of the standard, and com.microsoft's RotaryEmbedding.
#include "importer/bounded/bounded.h"
#include "importer/rules/attention/attention.h"

#include <cmath>
#include <limits>

namespace svod::importer {
namespace {

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
  require(node, parts.cos.rank() > 0, "the caches must have 2 or 3 axes");
  int64_t half = extent(parts.cos, parts.cos.rank() - 1);
  require(node, half > 0, "the caches must have columns");
  if (flat && heads == 0) heads = extent(parts.x, 2) / (2 * half);
  Expr x = flat ? split_heads(node, parts.x, heads) : parts.x;
  if (width == 0) width = extent(x, 3);
  Expr y = rotate(node, x, cache_rows(node, parts.cos, parts.positions),
                  cache_rows(node, parts.sin, parts.positions), width,
                  node.get_int("interleaved") != 0);
  finish(node, flat ? join_heads(y) : y);
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
  const Expr offset = key_offset(node, parts);
  if (const Counts& counts = node.counts(1);
      !counts.empty()) { // importer/bounded/bounded.h
    const NodeId keys = counts[counts.size() - 2];
    if (keys != kNoNode)
      parts.allowed = along(meant({&node.g, keys}, extent(parts.k, 2)), 3, 4);
  }
  add_visibility(node, parts, offset);
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

// com.microsoft: cosines and sines of the embedding itself, and halves turned beforehand.
void import_gemma_rotary_embedding(NodeImport& node) {
  const Expr angle = wide(node, 0);
  require(node, angle.rank() == 3, "emb must be [batch, length, size]");
  for (size_t i : {1, 3}) {
    const Expr x = wide(node, i), turned = wide(node, i + 1);
    require(node, x.rank() == 4 && turned.shape() == x.shape(),
            "q, k and their turned halves must be [batch, heads, length, size]");
    const DType dtype = node.dtype(i);
    const auto factor = [&](Op op) {
      return unsqueeze(convert(convert(apply(op, angle), dtype), x.dtype()), 1);
    };
    const Expr cos = factor(Op::Cos), sin = factor(Op::Sin);
    require_broadcast(node, cos.shape(), x.shape());
    give(node, i == 1 ? 0 : 1, convert(x * cos + turned * sin, dtype));
  }
}

// com.microsoft: three positions per token, in time, height and width; each pair of
// elements turns by one of them, in sections or every third.
void import_multimodal_rotary_embedding(NodeImport& node) {
  if (node.has("scale") && node.get_float("scale") != 1)
    node.unsupported("a scale other than 1");
  const Expr positions = operand(node, 1);
  const Expr cos = wide(node, 2), sin = wide(node, 3);
  const std::vector<int64_t> sections = node.get_ints("mrope_section");
  require(node, positions.rank() == 3 && extent(positions, 0) == 3 && cos.rank() == 2,
          "position_ids must be [3, batch, length]");
  const int64_t half = extent(cos, 1);
  require(node,
          sections.size() == 3 && sections[0] >= 0 && sections[1] >= 0 &&
              sections[2] >= 0 && sections[0] <= half && sections[1] <= half &&
              sections[0] + sections[1] + sections[2] == half,
          "mrope_section must be three sizes that make half the rotated size");
  std::vector<int64_t> stream;
  for (int64_t j = 0; j < half; ++j) {
    const auto every_third = [&](int64_t which) {
      return j % 3 == which && j < 3 * sections[static_cast<size_t>(which)];
    };
    const int64_t by_section = j < sections[0]                 ? 0
                               : j < sections[0] + sections[1] ? 1
                                                               : 2;
    const bool interleaved = node.get_int("mrope_layout") != 0;
    stream.push_back(!interleaved     ? by_section
                     : every_third(1) ? 1
                     : every_third(2) ? 2
                                      : 0);
  }
  const Expr which = {&node.g, tensor_i64(node.g, {1, 1, half}, stream)};
  const auto chosen = [&](Expr cache) {
    const auto rows = [&](int64_t i) {
      return cache_rows(node, cache, squeeze(cut(positions, 0, i, 1), 0));
    };
    return select(equal(which, 0), rows(0), select(equal(which, 1), rows(1), rows(2)));
  };
  rotary_embedding(node, {wide(node, 0), chosen(cos), chosen(sin), {}});
}

// Positions come second; one number is the position of the first element of every batch.
void import_rotary_embedding_vendor(NodeImport& node) {
  Rotary parts{wide(node, 0), wide(node, 2), wide(node, 3), operand(node, 1)};
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

namespace {

// The batch and the length of x, of its positions, and of cosines where there are none.
void bounded_rotary(NodeImport& node, Rule rule, size_t positions, bool of_positions) {
  const int64_t length = node.rank(0) == 4 ? 2 : 1;
  std::vector<std::vector<InputAxis>> groups = {{{0, 0}}, {{0, length}}};
  for (const int64_t axis : {0, 1}) {
    std::vector<InputAxis>& group = groups[static_cast<size_t>(axis)];
    if (node.has_input(positions) && node.rank(positions) == 2)
      group.push_back({positions, axis});
    if (!of_positions) group.insert(group.end(), {{1, axis}, {2, axis}});
  }
  agree_on_groups(node, groups);
  zero_beyond(node, positions);
  rule(node);
  node.set_counts(0, node.counts(0));
}

} // namespace

void bounded_rotary_embedding(NodeImport& node, Rule rule) {
  bounded_rotary(node, rule, 3, node.has_input(3));
}

void bounded_rotary_embedding_vendor(NodeImport& node, Rule rule) {
  bounded_rotary(node, rule, 1, true);
}

} // namespace svod::importer
