#include "tests/support/layer_graphs.h"

#include "compiler/ir/build.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"

#include <cmath>
#include <numbers>

namespace svod::test {

namespace {

constexpr int64_t kFrames = 64, kFeatures = 256, kHeads = 4;
constexpr int64_t kHead = kFeatures / kHeads;

class Layer {
public:
  explicit Layer(Shape shape) : x(g.add_input("x", DType::F32, std::move(shape))) {}
  Graph end(NodeId result) {
    g.add_output("y", result);
    return std::move(g);
  }

  NodeId known(const Shape& shape) {
    return weight(g, DType::F32, shape, g.add_blob(random_tensor(random_, shape).bytes));
  }
  NodeId add(NodeId a, NodeId b) { return broadcast_map(g, Op::Add, {a, b}); }
  NodeId mul(NodeId a, NodeId b) { return broadcast_map(g, Op::Mul, {a, b}); }
  NodeId number(double value) { return constant(g, DType::F32, {1}, value); }

  NodeId relu(NodeId a) { return broadcast_map(g, Op::Max, {a, number(0)}); }
  NodeId relu6(NodeId a) { return broadcast_map(g, Op::Min, {relu(a), number(6)}); }
  NodeId swish(NodeId a) { return mul(a, map(g, Op::Sigmoid, {a})); }
  NodeId gelu(NodeId a) {
    const NodeId e = map(g, Op::Erf, {mul(a, number(1 / std::numbers::sqrt2))});
    return mul(mul(a, number(0.5)), add(e, number(1)));
  }

  // Convolution of pictures, with bias.
  NodeId conv(NodeId a, int64_t outputs, int64_t size) {
    const Tensor w = random_tensor(random_, {outputs, g[a].shape[1], size, size});
    const NodeId padded =
        size == 5 ? pad(g, a, {0, 0, 1, 1}, {0, 0, 1, 1}, 0) : a; // one more all around
    return add(convolve(g, padded, w, 1), known({1, outputs, 1, 1}));
  }
  NodeId depthwise(NodeId a) {
    const Shape s = g[a].shape;
    NodeId seen = pad(g, a, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
    seen = window(g, window(g, seen, 2, 3, 1, 1), 3, 3, 1, 1);
    const NodeId product = mul(seen, known({1, s[1], 1, 1, 3, 3}));
    return add(reshape(g, reduce(g, Op::ReduceSum, product, {4, 5}), s),
               known({1, s[1], 1, 1}));
  }
  NodeId max_pool(NodeId a) {
    const Shape s = g[a].shape;
    NodeId seen = pad(g, a, {0, 0, 1, 1}, {0, 0, 1, 1}, -INFINITY);
    seen = window(g, window(g, seen, 2, 3, 1, 1), 3, 3, 1, 1);
    return reshape(g, reduce(g, Op::ReduceMax, seen, {4, 5}), s);
  }

  // Over the last axis, with bias.
  NodeId linear(NodeId a, int64_t outputs) {
    return add(matmul(g, a, known({g[a].shape.back(), outputs})), known({outputs}));
  }
  NodeId row(Op op, NodeId a) {
    return reduce(g, op, a, {static_cast<int64_t>(g[a].shape.size()) - 1});
  }
  NodeId norm(NodeId a) {
    const int64_t width = g[a].shape.back();
    const NodeId share = number(1 / double(width));
    const NodeId mean = mul(row(Op::ReduceSum, a), share);
    const NodeId centred = broadcast_map(g, Op::Sub, {a, mean});
    const NodeId variance = mul(row(Op::ReduceSum, mul(centred, centred)), share);
    const NodeId deviation = map(g, Op::Sqrt, {add(variance, number(1e-5))});
    const NodeId scaled = broadcast_map(g, Op::Div, {centred, deviation});
    return add(mul(scaled, known({width})), known({width}));
  }
  NodeId softmax(NodeId a) {
    const NodeId e =
        map(g, Op::Exp, {broadcast_map(g, Op::Sub, {a, row(Op::ReduceMax, a)})});
    return broadcast_map(g, Op::Div, {e, row(Op::ReduceSum, e)});
  }

  // [.., T, kFeatures] -> [.., kHeads, T, kHead] and back.
  NodeId heads(NodeId a) {
    const Shape s = g[a].shape;
    return permute(g, reshape(g, a, {s[0], s[1], kHeads, kHead}), {0, 2, 1, 3});
  }
  NodeId joined(NodeId a) {
    const Shape s = g[a].shape;
    return reshape(g, permute(g, a, {0, 2, 1, 3}), {s[0], s[2], kFeatures});
  }
  // x cos + (x's halves swapped, one negated) sin
  NodeId rotary(NodeId a) {
    const int64_t frames = g[a].shape[2], half = kHead / 2;
    const NodeId low = slice_axis(g, a, 3, 0, half),
                 high = slice_axis(g, a, 3, half, half);
    const NodeId turned = concat(g, {map(g, Op::Neg, {high}), low}, 3);
    return add(mul(a, known({frames, kHead})), mul(turned, known({frames, kHead})));
  }
  NodeId attention(NodeId a, bool turns, NodeId bias = kNoNode) {
    NodeId q = heads(linear(a, kFeatures)), k = heads(linear(a, kFeatures));
    const NodeId v = heads(linear(a, kFeatures));
    if (turns) q = rotary(q), k = rotary(k);
    NodeId scores =
        mul(matmul(g, q, permute_last_two(g, k)), number(1 / std::sqrt(double(kHead))));
    if (bias != kNoNode) scores = add(scores, bias);
    return linear(joined(matmul(g, softmax(scores), v)), kFeatures);
  }

  NodeId feed_forward(NodeId a) {
    const NodeId inner = swish(linear(norm(a), 4 * kFeatures));
    return add(a, mul(linear(inner, kFeatures), number(0.5)));
  }
  NodeId turned_attention(NodeId a) { return add(a, attention(norm(a), true)); }
  // Gated, then depthwise over frames.
  NodeId convolution(NodeId a) {
    constexpr int64_t kTaps = 9;
    const NodeId both = linear(norm(a), 2 * kFeatures);
    const NodeId value = slice_axis(g, both, 2, 0, kFeatures);
    const NodeId gate =
        map(g, Op::Sigmoid, {slice_axis(g, both, 2, kFeatures, kFeatures)});
    const NodeId rows = permute(g, mul(value, gate), {0, 2, 1});
    const NodeId padded = pad(g, rows, {0, 0, kTaps / 2}, {0, 0, kTaps / 2}, 0);
    const NodeId seen = window(g, padded, 2, kTaps, 1, 1);
    const NodeId product = mul(seen, known({1, kFeatures, 1, kTaps}));
    const NodeId sum =
        reshape(g, reduce(g, Op::ReduceSum, product, {3}), {1, kFeatures, kFrames});
    const NodeId normed =
        add(mul(sum, known({1, kFeatures, 1})), known({1, kFeatures, 1}));
    return add(a, linear(permute(g, swish(normed), {0, 2, 1}), kFeatures));
  }

  // Windows of 7 x 7 of a picture of tokens, as rows of a batch, and back.
  NodeId windows(NodeId a) {
    const Shape s = g[a].shape; // [1, H, W, C]
    const NodeId cut = reshape(g, a, {s[1] / 7, 7, s[2] / 7, 7, s[3]});
    return reshape(g, permute(g, cut, {0, 2, 1, 3, 4}), {s[1] * s[2] / 49, 49, s[3]});
  }
  NodeId picture(NodeId a, int64_t side) {
    const NodeId cut = reshape(g, a, {side / 7, side / 7, 7, 7, kFeatures});
    return reshape(g, permute(g, cut, {0, 2, 1, 3, 4}), {1, side, side, kFeatures});
  }
  NodeId rolled(NodeId a, int64_t by) {
    for (int64_t axis : {1, 2}) {
      const int64_t extent = g[a].shape[static_cast<size_t>(axis)];
      const int64_t first = by > 0 ? by : extent + by;
      a = concat(g,
                 {slice_axis(g, a, axis, first, extent - first),
                  slice_axis(g, a, axis, 0, first)},
                 axis);
    }
    return a;
  }

private:
  Random random_{17};

public:
  Graph g;
  NodeId x;
};

} // namespace

Graph bottleneck_layer() {
  Layer l({1, 256, 28, 28});
  const NodeId inner = l.relu(l.conv(l.relu(l.conv(l.x, 64, 1)), 64, 3));
  return l.end(l.relu(l.add(l.conv(inner, 256, 1), l.x)));
}

Graph inverted_residual_layer() {
  Layer l({1, 32, 28, 28});
  const NodeId wide = l.relu6(l.conv(l.x, 192, 1));
  return l.end(l.add(l.conv(l.relu6(l.depthwise(wide)), 32, 1), l.x));
}

Graph bert_layer() {
  Layer l({1, kFrames, kFeatures});
  const NodeId attended = l.norm(l.add(l.x, l.attention(l.x, false)));
  const NodeId inner = l.gelu(l.linear(attended, 4 * kFeatures));
  return l.end(l.norm(l.add(attended, l.linear(inner, kFeatures))));
}

Graph inception_layer() {
  Layer l({1, 192, 28, 28});
  const NodeId first = l.relu(l.conv(l.x, 64, 1));
  const NodeId second = l.relu(l.conv(l.relu(l.conv(l.x, 96, 1)), 128, 3));
  const NodeId third = l.relu(l.conv(l.relu(l.conv(l.x, 16, 1)), 32, 5));
  const NodeId fourth = l.relu(l.conv(l.max_pool(l.x), 32, 1));
  return l.end(concat(l.g, {first, second, third, fourth}, 1));
}

Graph swin_layer() {
  constexpr int64_t kSide = 14;
  Layer l({1, kSide, kSide, kFeatures});
  const NodeId cut = l.windows(l.rolled(l.norm(l.x), 3));
  const NodeId attended = l.attention(cut, false, l.known({1, kHeads, 49, 49}));
  const NodeId x = l.add(l.x, l.rolled(l.picture(attended, kSide), -3));
  return l.end(l.add(x, l.linear(l.gelu(l.linear(l.norm(x), 4 * kFeatures)), kFeatures)));
}

Graph conformer_feed_forward() {
  Layer l({1, kFrames, kFeatures});
  return l.end(l.feed_forward(l.x));
}

Graph conformer_attention() {
  Layer l({1, kFrames, kFeatures});
  return l.end(l.turned_attention(l.x));
}

Graph conformer_convolution() {
  Layer l({1, kFrames, kFeatures});
  return l.end(l.convolution(l.x));
}

Graph conformer_layer() {
  Layer l({1, kFrames, kFeatures});
  const NodeId first = l.convolution(l.turned_attention(l.feed_forward(l.x)));
  return l.end(l.norm(l.feed_forward(first)));
}

} // namespace svod::test
