#include "compiler/rewrite/integer_contractions.h"

#include "compiler/contraction/contraction.h"
#include "compiler/ir/fold.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/rewrite/byte_weights.h"
#include "compiler/rewrite/known_values.h"
#include "compiler/rewrite/scaled_sums.h"

#include <algorithm>

namespace svod::rewrite {

namespace {

// Longer sums of 255 * 128 could leave 32 bits.
constexpr int64_t kLongestSum = 65536;
// Elements of weights that are looked at.
constexpr int64_t kLargestWeights = int64_t{1} << 28;

// A factor of a product as it was found: views over scale * (bytes - zero).
struct Factor {
  std::vector<NodeId> views; // outermost first
  NodeId bytes = kNoNode;    // of U8 or I8
  NodeId zero = kNoNode;     // of I32 and the shape of `bytes`; none: 0
  NodeId scale = kNoNode;    // of F32 and the shape of `bytes`; none: an integer factor
};

// What known weights become: signed bytes, and what their sums are taken of. Of weights
// minus their zero point that need nine bits, some products are taken apart: those with
// `rest`, what the bytes lack, `at` coordinates of the summed axes. Where too many lack
// something, weights are two bytes each that add up to them, along an axis of their own
// behind all others.
struct Weights {
  NodeId bytes = kNoNode;
  NodeId whole = kNoNode;
  int64_t parts = 1;
  NodeId rest = kNoNode;
  std::vector<Shape> at;
};

class Pass {
public:
  Pass(const Graph& from, const IntegerOptions& options)
      : from_(from), options_(options) {}
  Graph run();

private:
  NodeId convert(NodeId id);
  std::optional<Factor> factor(const Operand& operand) const;
  bool centered(NodeId id, Factor& out) const;
  NodeId contraction(NodeId id);
  NodeId integer_sum(const Node& sum, const Factor& x, const Factor& w);
  NodeId sum_of_products(const Node& sum, NodeId bytes, const Weights& weights);
  NodeId factor_bytes(const Factor& x, NodeId& zero);
  NodeId products_apart(const Node& sum, NodeId bytes, const Weights& weights);
  Weights signed_weights(const Factor& w, const Node& sum);
  Weights nine_bit_weights(const Factor& w, NodeId wide, const ByteWeights& values,
                           const Node& sum);
  NodeId both_vary(const Node& sum, const Factor& x, const Factor& w);
  NodeId scale_of(const Factor& w, const Node& sum);
  NodeId through(const std::vector<NodeId>& views, NodeId bytes, uint64_t fill,
                 int64_t parts = 1);
  NodeId weight_sum(NodeId weights, const Node& sum);
  NodeId inner_weight_sum(NodeId weights, const Factor& x, const Node& sum);
  bool is_padded(const Factor& x) const;
  int64_t length_of(const Node& sum) const;

  const Graph& from_;
  const IntegerOptions& options_;
  ScaledSums sums_;
  Graph g;
};

// bytes - zero in 32 bits.
bool Pass::centered(NodeId id, Factor& out) const {
  if (g[id].dtype != DType::I32) return false;
  if (g[id].op == Op::Sub) {
    out.zero = g[id].inputs[1];
    id = g[id].inputs[0];
  }
  if (g[id].op != Op::Cast || !is_byte(g[g[id].inputs[0]].dtype)) return false;
  out.bytes = g[id].inputs[0];
  return true;
}

std::optional<Factor> Pass::factor(const Operand& operand) const {
  Factor out;
  const auto end = std::ranges::find_if(
      operand.views, [&](const OperandView& view) { return !is_view(g[view.node].op); });
  for (auto view = operand.views.begin(); view != end; ++view)
    out.views.push_back(view->node);
  const NodeId id = end->node;
  if (g[id].dtype == DType::I32) {
    if (!centered(id, out)) return std::nullopt;
    return out;
  }
  if (g[id].op != Op::Mul || g[id].dtype != DType::F32) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeId cast = g[id].inputs[i];
    if (g[cast].op != Op::Cast || !centered(g[cast].inputs[0], out)) continue;
    out.scale = g[id].inputs[1 - i];
    return out;
  }
  return std::nullopt;
}

// Products that a sum adds up.
int64_t Pass::length_of(const Node& sum) const {
  int64_t length = 1;
  for (int64_t axis : sum.payload)
    length *= g[sum.inputs[0]].shape[static_cast<size_t>(axis)];
  return length;
}

// The views again, over other bytes, with all of their last axis where they come in
// parts. Pads are filled with `fill`.
NodeId Pass::through(const std::vector<NodeId>& views, NodeId bytes, uint64_t fill,
                     int64_t parts) {
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    Node again = g[*view];
    again.dtype = g[bytes].dtype;
    again.inputs = {bytes};
    if (again.op == Op::Pad) again.payload.back() = static_cast<int64_t>(fill);
    if (parts != 1) {
      if (again.op == Op::Permute)
        again.payload.push_back(static_cast<int64_t>(again.shape.size()));
      again.shape.push_back(parts);
    }
    bytes = rebuild(g, again);
  }
  return bytes;
}

bool Pass::is_padded(const Factor& x) const {
  return std::any_of(x.views.begin(), x.views.end(),
                     [&](NodeId view) { return g[view].op == Op::Pad; });
}

// The sum of the weights that meet no pad: at the edges fewer do. For a zero point that
// is not known when packing, as it cannot fill the border then. kNoNode: too large.
NodeId Pass::inner_weight_sum(NodeId weights, const Factor& x, const Node& sum) {
  constexpr int64_t kMost = int64_t{1} << 26;
  if (element_count(g[weights].shape) > kMost) return kNoNode;
  NodeId ones = constant_int(g, DType::U8, g[x.bytes].shape, 1);
  NodeId product =
      map(g, Op::Mul,
          {cast(g, through(x.views, ones, 0), DType::I32), cast(g, weights, DType::I32)});
  NodeId total = reduce(g, Op::ReduceSum, product, sum.payload);
  return fold_known(g, total, kMost);
}

// Activations as the bytes that products take, their zero point as I32 of shape [].
NodeId Pass::factor_bytes(const Factor& x, NodeId& zero) {
  zero = x.zero == kNoNode ? constant_int(g, DType::I32, {}, 0) : one_element(g, x.zero);
  if (zero == kNoNode) return kNoNode;
  NodeId bytes = x.bytes;
  const bool is_signed = g[bytes].dtype == DType::I8;
  if (is_signed && options_.factors == ByteFactors::Unsigned) {
    bytes = bitcast(g, bytes, DType::U8);
    bytes = map(g, Op::Xor, {bytes, constant_int(g, DType::U8, g[bytes].shape, 128)});
    zero = map(g, Op::Add, {zero, constant_int(g, DType::I32, {}, 128)});
  } else if (!is_signed && options_.factors == ByteFactors::Signed) {
    bytes = map(g, Op::Xor, {bytes, constant_int(g, DType::U8, g[bytes].shape, 128)});
    bytes = bitcast(g, bytes, DType::I8);
    zero = map(g, Op::Sub, {zero, constant_int(g, DType::I32, {}, 128)});
  }
  const std::optional<uint64_t> known = splat_bits(g, zero);
  for (NodeId view : x.views)
    if (g[view].op == Op::Pad && g[view].payload.back() != 0) return kNoNode;
  // The border is the zero point, which may be none of these bytes.
  const auto border = static_cast<int32_t>(known.value_or(0));
  const uint64_t fill = scalar_bits_int(g[bytes].dtype, border);
  if (is_padded(x) && scalar_value(g[bytes].dtype, fill) != border) return kNoNode;
  return through(x.views, bytes, fill);
}

// w - zw as I8, where that fits.
Weights Pass::signed_weights(const Factor& w, const Node& sum) {
  for (NodeId view : w.views) {
    Op op = g[view].op;
    if (op != Op::Reshape && op != Op::Permute && op != Op::Expand) return {};
  }
  Weights out;
  if (w.zero == kNoNode && g[w.bytes].dtype == DType::I8) {
    out.bytes = out.whole = through(w.views, w.bytes, 0);
    return out;
  }
  NodeId wide = cast(g, w.bytes, DType::I32);
  if (w.zero != kNoNode) wide = map(g, Op::Sub, {wide, w.zero});
  const std::optional<Tensor> values = unnoted_tensor(g, wide, kLargestWeights);
  if (!values) return {};
  std::optional<ByteWeights> narrow = byte_weights(*values);
  const ValueFact fits{.question = ValueQuestion::FitsByte,
                       .number = static_cast<int64_t>(DType::I8)};
  if (narrow && narrow->rest.bytes.empty()) {
    note_fact(g, wide, fits);
    const Node bytes{Op::Cast, DType::I8, g[wide].shape, {}, {wide}};
    const NodeId folded = folded_node(g, bytes, std::move(narrow->bytes));
    out.bytes = out.whole = through(w.views, folded, 0);
    return out;
  }
  note_equals(trace_of(g, wide), values->bytes);
  return narrow ? nine_bit_weights(w, wide, *narrow, sum) : out;
}

Weights Pass::nine_bit_weights(const Factor& w, NodeId wide, const ByteWeights& values,
                               const Node& sum) {
  Weights out;
  out.whole = through(w.views, wide, 0);
  // A product apart costs what four steps of four cost, pairs as many steps again.
  const int64_t length = length_of(sum), most = length / 16;
  const NodeId rest = through(w.views, tensor_node(g, values.rest), 0);
  const NodeId base = base_of(g, rest);
  const bool repeats = std::ranges::any_of(sum.payload, [&](int64_t axis) {
    const auto at = static_cast<size_t>(axis);
    return g[base].shape[at] != g[rest].shape[at];
  });
  const std::optional<Tensor> known = known_tensor(g, base, kLargestWeights);
  if (!repeats && known) {
    if (auto at = where_not_zero(*known, sum.payload, static_cast<size_t>(most))) {
      out.bytes = through(w.views, tensor_node(g, values.bytes), 0);
      out.rest = rest;
      out.at = std::move(*at);
      return out;
    }
  }
  // Five taps of a row fill two steps of four, badly. Twice the dot products of longer
  // sums are still a half of what 32 bits take.
  constexpr int64_t kShortest = 64;
  if (!options_.dot_products || length < kShortest || 2 * length > kLongestSum) return {};
  out.bytes = through(w.views, tensor_node(g, pairs_of(values)), 0, 2);
  out.parts = 2;
  return out;
}

// The weights' scale with the axes of the sum's result; kNoNode where it varies along
// what is summed.
NodeId Pass::scale_of(const Factor& w, const Node& sum) {
  NodeId scale = base_of(g, w.scale);
  Shape full = g[w.scale].shape;
  for (auto view = w.views.rbegin(); view != w.views.rend(); ++view) {
    const Node& node = g[*view];
    Shape to = node.shape;
    if (node.op == Op::Reshape) {
      auto small = shape_through_reshape(g[scale].shape, full, to);
      if (!small) return kNoNode;
      scale = reshape(g, scale, *small);
    } else if (node.op == Op::Permute) {
      scale = permute(g, scale, node.payload);
    }
    full = std::move(to);
  }
  for (int64_t axis : sum.payload)
    if (g[scale].shape[static_cast<size_t>(axis)] != 1) return kNoNode;
  return expand(g, scale, sum.shape);
}

// The sum of the weights at every position of the result; every position that the sum
// repeats counts.
NodeId Pass::weight_sum(NodeId weights, const Node& sum) {
  const Shape full = g[weights].shape;
  NodeId base = base_of(g, weights);
  int64_t repeats = 1;
  for (int64_t axis : sum.payload) {
    auto at = static_cast<size_t>(axis);
    if (g[base].shape[at] != full[at]) repeats *= full[at];
  }
  NodeId total = reduce(g, Op::ReduceSum, cast(g, base, DType::I32), sum.payload);
  NodeId factor = constant_int(g, DType::I32, g[total].shape, repeats);
  return map(g, Op::Mul, {total, factor});
}

// The sum of all products, those with each part of the weights.
NodeId Pass::sum_of_products(const Node& sum, NodeId bytes, const Weights& weights) {
  Payload axes = sum.payload;
  if (weights.parts != 1) {
    Shape shape = g[bytes].shape;
    axes.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(1);
    bytes = reshape(g, bytes, shape);
    shape.back() = weights.parts;
    bytes = expand(g, bytes, shape);
  }
  NodeId product =
      map(g, Op::Mul, {cast(g, bytes, DType::I32), cast(g, weights.bytes, DType::I32)});
  return reshape(g, reduce(g, Op::ReduceSum, product, axes), sum.shape);
}

// The sum and the products taken apart from it.
NodeId Pass::products_apart(const Node& sum, NodeId bytes, const Weights& weights) {
  NodeId result = sum_of_products(sum, bytes, weights);
  for (const Shape& at : weights.at) {
    NodeId x = bytes, w = weights.rest;
    for (size_t i = 0; i < at.size(); ++i) {
      x = slice_axis(g, x, sum.payload[i], at[i], 1);
      w = slice_axis(g, w, sum.payload[i], at[i], 1);
    }
    NodeId product = map(g, Op::Mul, {cast(g, x, DType::I32), w});
    result = map(g, Op::Add, {result, reshape(g, product, sum.shape)});
  }
  return result;
}

NodeId Pass::integer_sum(const Node& sum, const Factor& x, const Factor& w) {
  NodeId zero = kNoNode;
  const NodeId bytes = factor_bytes(x, zero);
  if (bytes == kNoNode) return kNoNode;
  const Weights weights = signed_weights(w, sum);
  if (weights.bytes == kNoNode) return kNoNode;
  NodeId result = products_apart(sum, bytes, weights);
  if (splat_bits(g, zero) == uint64_t{0}) return result;
  bool uneven = is_padded(x) && !splat_bits(g, zero);
  NodeId of_weights =
      uneven ? inner_weight_sum(weights.whole, x, sum) : weight_sum(weights.whole, sum);
  if (of_weights == kNoNode) return kNoNode;
  NodeId rest = map(g, Op::Mul, {of_weights, over_result(g, zero, g[of_weights].shape)});
  return map(g, Op::Sub, {result, expand(g, rest, sum.shape)});
}

// Both factors depend on the run: the queries and keys of an attention. The second gets
// a layout that dot products read, so it has to be made here and have no border; the
// sums that its zero point and that of the first meet are taken of the bytes.
NodeId Pass::both_vary(const Node& sum, const Factor& x, const Factor& w) {
  const auto plain = [&](const Factor& f) {
    return std::ranges::all_of(f.views, [&](NodeId view) {
      const Op op = g[view].op;
      return op == Op::Reshape || op == Op::Permute || op == Op::Expand;
    });
  };
  const bool made = g[w.bytes].op == Op::Cast && g[w.bytes].dtype == DType::U8 &&
                    g[x.bytes].op == Op::Cast && g[x.bytes].dtype == DType::U8;
  const Shape domain = g[sum.inputs[0]].shape;
  if (!options_.dot_products || options_.factors != ByteFactors::Unsigned || !made ||
      !plain(x) || !plain(w) || sum.payload.size() != 1)
    return kNoNode;
  const int64_t length = length_of(sum);
  const int64_t columns = sum.shape.size() < 2 ? 1 : sum.shape[sum.shape.size() - 2];
  // 255 * 255 a product; what is read once or twice is not worth its layout.
  const int64_t uses =
      element_count(domain) / std::max<int64_t>(1, element_count(g[w.bytes].shape));
  if (length % 4 != 0 || length < 16 || length > kLongestSum / 2 || columns < 16 ||
      uses < 4)
    return kNoNode;
  NodeId x_zero = kNoNode;
  const NodeId bytes = factor_bytes(x, x_zero);
  NodeId w_zero =
      w.zero == kNoNode ? constant_int(g, DType::I32, {}, 0) : one_element(g, w.zero);
  if (bytes == kNoNode || w_zero == kNoNode || !splat_bits(g, x_zero) ||
      !splat_bits(g, w_zero))
    return kNoNode;
  NodeId weights =
      map(g, Op::Xor, {w.bytes, constant_int(g, DType::U8, g[w.bytes].shape, 128)});
  weights = through(w.views, bitcast(g, weights, DType::I8), 0);
  w_zero = map(g, Op::Sub, {w_zero, constant_int(g, DType::I32, {}, 128)});
  NodeId product =
      map(g, Op::Mul, {cast(g, bytes, DType::I32), cast(g, weights, DType::I32)});
  NodeId result = reduce(g, Op::ReduceSum, product, sum.payload);
  const auto less = [&](NodeId total, NodeId zero) {
    NodeId rest = map(g, Op::Mul, {total, over_result(g, zero, g[total].shape)});
    result = map(g, Op::Sub, {result, expand(g, rest, sum.shape)});
  };
  // sum (x - zx) (w - zw) = sum x w - zw sum x - zx sum (w - zw)
  if (splat_bits(g, w_zero) != uint64_t{0}) less(weight_sum(bytes, sum), w_zero);
  if (splat_bits(g, x_zero) != uint64_t{0}) {
    NodeId total = weight_sum(weights, sum);
    NodeId zeros = map(g, Op::Mul, {w_zero, constant_int(g, DType::I32, {}, length)});
    less(map(g, Op::Sub, {total, over_result(g, zeros, g[total].shape)}), x_zero);
  }
  return result;
}

NodeId Pass::contraction(NodeId id) {
  const std::optional<Contraction> c = read_sum_of_products(g, id);
  if (!c || (c->dtype != DType::F32 && c->dtype != DType::I32)) return kNoNode;
  if (c->left().known || c->terms() > kLongestSum) return kNoNode;
  const Node sum = g[id];
  const bool both = !c->right().known;
  auto x = factor(c->left()), w = factor(c->right());
  if (!x || !w) return kNoNode;
  // Already what dot products take, the other way round.
  if (w->scale == kNoNode && w->zero == kNoNode && x->zero == kNoNode &&
      g[w->bytes].dtype == DType::U8 && g[x->bytes].dtype == DType::I8)
    return kNoNode;
  if (sum.dtype == DType::I32) return both ? kNoNode : integer_sum(sum, *x, *w);
  NodeId x_scale = one_element(g, x->scale), w_scale = scale_of(*w, sum);
  if (x_scale == kNoNode || w_scale == kNoNode) return kNoNode;
  NodeId result = both ? both_vary(sum, *x, *w) : integer_sum(sum, *x, *w);
  if (result == kNoNode) return kNoNode;
  NodeId scale = map(g, Op::Mul, {over_result(g, x_scale, g[w_scale].shape), w_scale});
  const NodeId product = map(g, Op::Mul, {cast(g, result, DType::F32), scale});
  sums_[product] = c->terms();
  return product;
}

NodeId Pass::convert(NodeId id) {
  NodeId better = kNoNode;
  const Node node = g[id];
  if (node.op == Op::ReduceSum) better = contraction(id);
  if (options_.merge_scales) {
    if (node.op == Op::Round) better = merge_scales(g, id);
    if (node.op == Op::Add) better = whole_bias(g, id, sums_);
  }
  return better == kNoNode ? id : better;
}

Graph Pass::run() {
  GraphCopy copy(g, from_, [&](NodeId id) {
    const auto body = [&](const auto& own) {
      return std::make_shared<const Graph>(Pass(*own, options_).run());
    };
    return convert(rebuild(g, copy.over_copies(id, body)));
  });
  copy.run();
  return std::move(g);
}

} // namespace

bool multiplies_bytes(const Graph& graph) {
  auto live = graph.live_nodes();
  return std::any_of(live.begin(), live.end(), [&](NodeId n) {
    return is_byte(graph[n].dtype) && !graph.depends_on_input(n);
  });
}

Graph integer_contractions(const Graph& graph, const IntegerOptions& options) {
  return Pass(graph, options).run();
}

} // namespace svod::rewrite
