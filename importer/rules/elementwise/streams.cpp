// com.microsoft's hyper-connections: a hidden state of several streams [.., C, H] that a
// block's input is mixed from and its output is mixed into, and the gate of Engram.
#include "importer/formula/formula.h"

#include <cmath>

namespace svod::importer {
namespace {

// [.., C, H], from a flat last axis where num_branches says so.
Expr streams_of(NodeImport& node, Expr x) {
  const int64_t branches = node.get_int("num_branches");
  require(node, x.rank() >= 1 && branches >= 0 && branches < (int64_t{1} << 31),
          "num_branches is out of range");
  if (branches > 0) {
    Shape shape = x.shape();
    require(node, shape.back() % branches == 0, "num_branches does not divide the width");
    shape.back() /= branches;
    shape.insert(shape.end() - 1, branches);
    return reshape(x, shape);
  }
  require(node, x.rank() >= 2, "streams must be [.., branches, width]");
  return x;
}

// Gates per branch [.., C], or per element, flat or not, as [.., C, 1 or H].
Expr gates_of(NodeImport& node, size_t i, Expr streams) {
  Expr gate = convert(wide(node, i), streams.dtype());
  Shape whole = streams.shape(), flat = whole, per_branch = whole;
  flat.pop_back(), per_branch.pop_back();
  flat.back() *= whole.back();
  if (gate.shape() == per_branch) return unsqueeze(gate, gate.rank());
  if (gate.shape() == flat) return reshape(gate, whole);
  require_broadcast(node, gate.shape(), whole);
  require(node, gate.rank() == streams.rank(), "gates must have an axis of branches");
  return gate;
}

// Without the mean, times a scale [C, H].
Expr normalized(NodeImport& node, Expr x, size_t scale) {
  const std::vector<int64_t> last{x.rank() - 1};
  const Expr y = x * reciprocal(sqrt(mean(x * x, last) + node.get_float("epsilon")));
  require_broadcast(node, node.shape(scale), x.shape());
  return y * convert(wide(node, scale), x.dtype());
}

} // namespace

void import_hyper_connection_pre_mix(NodeImport& node) {
  const Expr x = streams_of(node, wide(node, 0));
  const int64_t branches = x.rank() - 2;
  const Expr y = sum(x * gates_of(node, 1, x), {branches});
  finish(node, squeeze(y * node.get_float("reduction_scale"), branches));
}

// Y[k] = sum_c mix[c, k] X[c] + gate[k] block.
void import_hyper_connection_post_mix(NodeImport& node) {
  const Expr given = wide(node, 0), x = streams_of(node, given);
  const Expr block = convert(wide(node, 1), x.dtype());
  Shape features = x.shape();
  features.erase(features.end() - 2);
  require(node, block.shape() == features, "block_output must be [.., width]");
  Expr kept = x;
  if (node.has_input(3)) {
    const Expr mix = convert(wide(node, 3), x.dtype());
    Shape expected = x.shape();
    expected.back() = expected[expected.size() - 2];
    require(node, mix.shape() == expected, "stream_mix must be [.., branches, branches]");
    kept = matmul(with(mix, permute_last_two(node.g, mix.id)), x);
  }
  const Expr y = kept + gates_of(node, 2, x) * unsqueeze(block, block.rank() - 1);
  finish(node, reshape(y, Shape(given.shape())));
}

// sigmoid(sign(d) sqrt(|d|)) times the value, d the product of normalised key and query.
void import_engram_gate(NodeImport& node) {
  const Expr key = wide(node, 0), query = wide(node, 1), value = wide(node, 2);
  require(node,
          key.rank() == 4 && query.shape() == key.shape() &&
              value.shape() == Shape{extent(key, 0), extent(key, 1), extent(key, 3)},
          "key and query must be [batch, length, branches, width], value [batch, length, "
          "width]");
  constexpr double kLeast = 1e-6;
  const Expr product = normalized(node, key, 3) * normalized(node, query, 4);
  const Expr dot = sum(product, {3}) * (1 / std::sqrt(double(extent(key, 3))));
  const Expr size = sqrt(maximum(absolute(dot), kLeast));
  const Expr gated = sigmoid(apply(Op::Sign, dot) * size) * unsqueeze(value, 2);
  finish(node, gated);
  if (node.wants_output(1)) finish(node, normalized(node, gated, 5), 1);
}

} // namespace svod::importer
