// Biases of quantised contractions that are whole numbers of scales.
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/fold.h"
#include "compiler/rewrite/integer_contractions.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace svod;
using namespace svod::test;

namespace {

constexpr int64_t kRows = 40, kLength = 24, kColumns = 6;
constexpr float kScale = 0.06038719f, kNext = 0.2099439f;
constexpr int32_t kZero = 3, kNextZero = 120;

struct Layer {
  std::vector<int8_t> weights;
  std::vector<float> scales; // of each column
  std::vector<int32_t> bias; // in units of both scales
};

Layer random_layer(uint64_t seed) {
  Random random(seed);
  Layer out;
  for (int64_t i = 0; i < kLength * kColumns; ++i)
    out.weights.push_back(static_cast<int8_t>(random.between(-127, 127)));
  for (int64_t i = 0; i < kColumns; ++i) {
    out.scales.push_back(0.001f + float(random.below(1 << 20)) * 0x1p-27f);
    out.bias.push_back(static_cast<int32_t>(random.between(-20000, 20000)));
  }
  return out;
}

template <class T> Tensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor out{dtype, std::move(shape), {}};
  const auto bytes = std::as_bytes(std::span(values));
  out.bytes.assign(bytes.begin(), bytes.end());
  return out;
}

// Bytes that a network of dequantised tensors makes of bytes; each bias is off by `off`.
Graph quantised_layer(const Layer& layer, float off = 0) {
  Graph g;
  const auto all = [&](float value, const Shape& shape) {
    return constant(g, DType::F32, shape, value);
  };
  const Shape rows{kRows, kLength}, result{kRows, kColumns};
  const NodeId x = cast(g, g.add_input("x", DType::U8, rows), DType::I32);
  const NodeId centered = map(g, Op::Sub, {x, constant_int(g, DType::I32, rows, kZero)});
  const NodeId given =
      map(g, Op::Mul, {cast(g, centered, DType::F32), all(kScale, rows)});
  const NodeId bytes =
      tensor_node(g, tensor(DType::I8, {kLength, kColumns}, layer.weights));
  const NodeId scales = tensor_f32(g, {1, kColumns}, layer.scales);
  const NodeId weights = map(g, Op::Mul,
                             {cast(g, cast(g, bytes, DType::I32), DType::F32),
                              expand(g, scales, {kLength, kColumns})});
  std::vector<float> bias;
  for (size_t i = 0; i < layer.bias.size(); ++i)
    bias.push_back(float(layer.bias[i]) * (kScale * layer.scales[i]) + off);
  const NodeId sum = map(
      g, Op::Add,
      {matmul(g, given, weights), expand(g, tensor_f32(g, {1, kColumns}, bias), result)});
  const NodeId rounded = map(g, Op::Round, {map(g, Op::Div, {sum, all(kNext, result)})});
  const NodeId moved = map(g, Op::Add, {rounded, all(kNextZero, result)});
  g.add_output(
      "y",
      cast(g,
           map(g, Op::Min, {map(g, Op::Max, {moved, all(0, result)}), all(255, result)}),
           DType::U8));
  return g;
}

// Additions of floats: that of the next zero point, and that of a bias which is one.
int float_additions(const Graph& g) {
  int found = 0;
  for (const NodeId id : g.live_nodes())
    found += g[id].op == Op::Add && g[id].dtype == DType::F32;
  return found;
}

// What a sum of that many units means, in double, and what a float makes of it.
double meant(int32_t sum, int32_t bias, float scale) {
  return std::nearbyint((double(sum) + bias) * (double(kScale) * scale) / kNext);
}
float as_floats(int32_t sum, int32_t bias, float scale) {
  const float unit = kScale * scale;
  return std::nearbyint((float(sum) * unit + float(bias) * unit) / kNext);
}

// One weight in each column, and the largest byte for it. Floats round each of these sums
// to the wrong side of a step.
constexpr uint8_t kByte = 255;
Layer beside_steps(Random& random) {
  Layer out = random_layer(random.next());
  std::ranges::fill(out.weights, 0);
  for (size_t column = 0; column < kColumns;) {
    const auto weight = static_cast<int8_t>(random.between(-127, 127));
    const auto bias = static_cast<int32_t>(random.between(-20000, 20000));
    const float scale = 0.001f + float(random.below(1 << 20)) * 0x1p-27f;
    const int32_t sum = (kByte - kZero) * weight;
    if (meant(sum, bias, scale) == as_floats(sum, bias, scale)) continue;
    if (std::abs(meant(sum, bias, scale)) > 100) continue; // a byte
    out.weights[column] = weight, out.bias[column] = bias, out.scales[column] = scale;
    ++column;
  }
  return out;
}

} // namespace

TEST_CASE("a bias of whole scales is added to the integers", "[quantised]") {
  const Layer layer = random_layer(1);
  const Graph as_given = quantised_layer(layer);
  CHECK(float_additions(rewrite::integer_contractions(as_given)) == 1);
  // Half of a scale more is no whole number of them.
  const Graph uneven = quantised_layer(layer, 0.5f * kScale * layer.scales[0]);
  CHECK(float_additions(rewrite::integer_contractions(uneven)) == 2);
  rewrite::IntegerOptions exact;
  exact.merge_scales = false;
  CHECK(float_additions(rewrite::integer_contractions(as_given, exact)) == 2);
}

TEST_CASE("bytes behind such a bias are those that are meant", "[quantised]") {
  Random random(5);
  const Tensor x =
      tensor(DType::U8, {kRows, kLength}, std::vector<uint8_t>(kRows * kLength, kByte));
  size_t right = 0, before = 0, cases = 0;
  for (int i = 0; i < 20; ++i) {
    const Layer layer = beside_steps(random);
    const Graph given = quantised_layer(layer);
    const Tensor found = evaluate(rewrite::integer_contractions(given), {x}).outputs[0];
    const Tensor floats = evaluate(given, {x}).outputs[0];
    for (size_t c = 0; c < kColumns; ++c, ++cases) {
      const double want = kNextZero + meant((kByte - kZero) * layer.weights[c],
                                            layer.bias[c], layer.scales[c]);
      right += element_value(found, c) == want;
      before += element_value(floats, c) == want;
    }
  }
  CAPTURE(right, before, cases);
  // So near to the middle of a step the roundings of a product and a scale decide, too.
  CHECK(right > 2 * before);
}

TEST_CASE("a bias that could leave 32 bits stays a float", "[quantised]") {
  Layer layer = random_layer(3);
  layer.bias[2] = 1 << 30;
  CHECK(float_additions(rewrite::integer_contractions(quantised_layer(layer))) == 2);
}
