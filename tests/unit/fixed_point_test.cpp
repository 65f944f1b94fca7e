// Quantisations in integers: the numbers of a multiplier against the function they stand
// for, and graphs before and after the pass, over all bytes that can come in.
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/rewrite/fixed_multiplier.h"
#include "compiler/rewrite/fixed_point.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace svod;
using namespace svod::rewrite;

namespace {

// round(x * slope + offset) in single precision, clamped to a byte.
Staircase quantisation(float slope, float offset, int64_t most) {
  auto at = [=](int64_t x) {
    const float value = std::nearbyintf(static_cast<float>(x) * slope + offset);
    return static_cast<int>(std::clamp(value, -128.0f, 127.0f));
  };
  return {at, -most, most, slope, offset};
}

// How far the multiplier's byte is from the function's, at most, and how often.
struct Difference {
  int most = 0;
  int64_t count = 0;
};

Difference difference(const FixedMultiplier& fixed, const FixedNumbers& numbers,
                      const Staircase& s, int64_t step) {
  Difference out;
  for (int64_t x = s.first; x <= s.last; x += step) {
    const int value =
        std::clamp(apply(fixed, numbers, static_cast<int32_t>(x)), -128, 127);
    out.most = std::max(out.most, std::abs(value - s.at(x)));
    out.count += value != s.at(x);
    // Only where the float is in the middle of two steps as far as floats can tell.
    const double exact = double(x) * s.slope + s.offset;
    if (value != s.at(x))
      CHECK(std::abs(exact - std::floor(exact) - 0.5) < 2 * std::ldexp(128.0, -24));
  }
  return out;
}

} // namespace

TEST_CASE("a multiplier meets every threshold of random quantisations", "[fixed-point]") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponent(-14, -2), offset(-200, 200);
  int exact = 0;
  constexpr int kCases = 200;
  for (int i = 0; i < kCases; ++i) {
    const float slope = std::exp2(exponent(random));
    const Staircase s = quantisation(slope, offset(random), 1 << 20);
    const Staircase one[] = {s};
    const auto fixed = fit_multiplier(one, -128, 127);
    INFO("slope " << slope << " offset " << s.offset);
    REQUIRE(fixed);
    const Difference d = difference(*fixed, fixed->channels[0], s, 7);
    CHECK(d.most <= 1);
    // Where it says that all are met, no byte differs.
    if (fixed->missed == 0) CHECK(d.count == 0);
    exact += fixed->missed == 0;
  }
  CHECK(exact >= kCases / 2);
}

TEST_CASE("channels share the shift and have numbers of their own", "[fixed-point]") {
  std::vector<Staircase> channels;
  for (int i = 0; i < 24; ++i)
    channels.push_back(
        quantisation(0.0007f * static_cast<float>(1 + i), float(i) - 9.3f, 1 << 18));
  const auto fixed = fit_multiplier(channels, -128, 127);
  REQUIRE(fixed);
  REQUIRE(fixed->channels.size() == channels.size());
  int64_t differ = 0;
  for (size_t i = 0; i < channels.size(); ++i) {
    const Difference d = difference(*fixed, fixed->channels[i], channels[i], 1);
    CHECK(d.most <= 1);
    differ += d.count;
  }
  CHECK(differ <= fixed->missed);
  CHECK(fixed->missed <= 24 * 255 / 20);
}

namespace {

Tensor all_bytes(DType dtype, Shape shape) {
  Tensor out{dtype, std::move(shape), {}};
  for (int64_t i = 0; i < element_count(out.shape); ++i)
    out.bytes.push_back(static_cast<std::byte>(i));
  return out;
}

NodeId dequantised(Graph& g, NodeId x, int zero, float scale) {
  const Shape shape = g[x].shape;
  x = map(g, Op::Sub, {cast(g, x, DType::I32), constant_int(g, DType::I32, shape, zero)});
  return map(g, Op::Mul,
             {cast(g, x, DType::F32), constant(g, DType::F32, shape, double(scale))});
}

NodeId quantised(Graph& g, NodeId x, int zero, float scale) {
  const Shape shape = g[x].shape;
  x = map(g, Op::Round, {map(g, Op::Div, {x, constant(g, DType::F32, shape, scale)})});
  return cast(g, map(g, Op::Add, {x, constant(g, DType::F32, shape, zero)}), DType::I8);
}

bool has_floats(const Graph& g) {
  return std::ranges::any_of(g.live_nodes(),
                             [&](NodeId n) { return is_float(g[n].dtype); });
}

// Bytes that differ after the pass, and by how much at most.
Difference after_pass(const Graph& g, const std::vector<Tensor>& inputs,
                      FixedPointReport& report) {
  const Graph fixed = fixed_point(g, {}, &report);
  CHECK_FALSE(has_floats(fixed));
  const Tensor before = evaluate(g, inputs).outputs[0],
               after = evaluate(fixed, inputs).outputs[0];
  REQUIRE(before.bytes.size() == after.bytes.size());
  Difference out;
  for (size_t i = 0; i < before.bytes.size(); ++i) {
    const int a = static_cast<int8_t>(before.bytes[i]),
              b = static_cast<int8_t>(after.bytes[i]);
    out.most = std::max(out.most, std::abs(a - b));
    out.count += a != b;
  }
  return out;
}

} // namespace

TEST_CASE("another scale and a clamp become integers", "[fixed-point]") {
  Graph g;
  NodeId x = g.add_input("x", DType::I8, {256});
  NodeId y = dequantised(g, x, -5, 0.0371f);
  y = map(g, Op::Max, {y, constant(g, DType::F32, {256}, 0)});
  g.add_output("y", quantised(g, y, 3, 0.0243f));
  FixedPointReport report;
  CHECK(after_pass(g, {all_bytes(DType::I8, {256})}, report).count == 0);
  CHECK(report.quantisations == 1);
  CHECK(report.one_step.empty());
}

TEST_CASE("a maximum over windows is one of bytes", "[fixed-point]") {
  Graph g;
  NodeId x = g.add_input("x", DType::I8, {1, 1, 256});
  NodeId y = pad(g, dequantised(g, x, 7, 0.02f), {0, 0, 1}, {0, 0, 1}, -HUGE_VAL);
  y = reduce(g, Op::ReduceMax, window(g, y, 2, 3, 1, 1), {3});
  g.add_output("y", quantised(g, y, 7, 0.02f));
  FixedPointReport report;
  CHECK(after_pass(g, {all_bytes(DType::I8, {1, 1, 256})}, report).count == 0);
  // The same scale: nothing is left of it.
  const Graph fixed = fixed_point(g);
  CHECK(std::ranges::none_of(fixed.live_nodes(),
                             [&](NodeId n) { return fixed[n].op == Op::Mul; }));
}

TEST_CASE("two layers are added in integers", "[fixed-point]") {
  Graph g;
  g.open_source("sum");
  NodeId a = g.add_input("a", DType::I8, {256, 256}),
         b = g.add_input("b", DType::I8, {256, 256});
  NodeId sum =
      map(g, Op::Add, {dequantised(g, a, -9, 0.031f), dequantised(g, b, 4, 0.0172f)});
  g.add_output("y", quantised(g, sum, -11, 0.0391f));
  Tensor rows = all_bytes(DType::I8, {256, 256}), columns = rows;
  for (size_t i = 0; i < columns.bytes.size(); ++i)
    columns.bytes[i] = static_cast<std::byte>(i / 256);
  FixedPointReport report;
  const Difference d = after_pass(g, {rows, columns}, report);
  CHECK(d.most <= 1);
  CHECK((d.count == 0) == report.one_step.empty());
  CHECK(d.count <= 65536 / 1000);
}

TEST_CASE("what is joined is quantised part by part", "[fixed-point]") {
  Graph g;
  NodeId a = g.add_input("a", DType::I8, {1, 256}),
         b = g.add_input("b", DType::I8, {1, 256});
  NodeId joined =
      concat(g, {dequantised(g, a, 1, 0.05f), dequantised(g, b, 0, 0.011f)}, 1);
  g.add_output("y", quantised(g, joined, 0, 0.04f));
  FixedPointReport report;
  const Tensor bytes = all_bytes(DType::I8, {1, 256});
  CHECK(after_pass(g, {bytes, bytes}, report).most <= 1);
  CHECK(report.quantisations == 2);
}

TEST_CASE("what may fall keeps its floats", "[fixed-point]") {
  Graph g;
  NodeId x = g.add_input("x", DType::I8, {256});
  NodeId y = dequantised(g, x, 0, -0.02f);
  g.add_output("y", quantised(g, y, 0, 0.02f));
  FixedPointReport report;
  CHECK(has_floats(fixed_point(g, {}, &report)));
  CHECK(report.in_floats == 1);
}
