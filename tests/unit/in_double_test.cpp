// Graphs in double precision, the judges of roundings.
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/scalar_math.h"
#include "compiler/rewrite/in_double.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace svod;
using namespace svod::test;
using namespace scalar;

namespace {

Tensor widened(const Tensor& from) {
  if (from.dtype != DType::F32 && !is_half(from.dtype)) return from;
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(from.shape); ++i)
    values.push_back(element_value(from, static_cast<size_t>(i)));
  return make_tensor(DType::F64, from.shape, values);
}

} // namespace

TEST_CASE("in double, sums keep what floats lose", "[double]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1}),
               one = g.add_input("one", DType::F32, {1});
  const NodeId sum = map(g, Op::Add, {x, one});
  g.add_output("y", cast(g, map(g, Op::Sub, {sum, x}), DType::F16));
  const std::vector<Tensor> given = {make_tensor(DType::F32, {1}, {1e8}),
                                     make_tensor(DType::F32, {1}, {1})};
  CHECK(element_value(evaluate(g, given).outputs[0], 0) == 0);
  const Graph wide = rewrite::in_double(g).value();
  const Tensor y = evaluate(wide, {widened(given[0]), widened(given[1])}).outputs[0];
  CHECK(y.dtype == DType::F64);
  CHECK(element_value(y, 0) == 1);
}

TEST_CASE("in double, the bits of a float are those of the model", "[double]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1});
  const NodeId bits = bitcast(g, x, DType::I32);
  g.add_output("bits", bits);
  g.add_output("again", bitcast(g, bits, DType::F32));
  const float third = 1.0f / 3;
  Tensor input{DType::F32, {1}, {}};
  input.bytes.resize(4);
  std::memcpy(input.bytes.data(), &third, 4);
  const Graph wide = rewrite::in_double(g).value();
  const Evaluated got = evaluate(wide, {widened(input)});
  CHECK(got.outputs[0].dtype == DType::I32);
  CHECK(got.outputs[0].bytes == input.bytes);
  CHECK(got.outputs[1].dtype == DType::F64);
  CHECK(element_value(got.outputs[1], 0) == third);
}

TEST_CASE("in double, a graph computes what it computed, within float's roundings",
          "[double][property]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const RandomGraph random = random_graph(seed);
    const Evaluated narrow = evaluate(random.graph, random.inputs);
    const auto wide = rewrite::in_double(random.graph);
    REQUIRE(wide);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < random.inputs.size(); ++i) {
      inputs.push_back(widened(random.inputs[i]));
      REQUIRE((*wide)[wide->inputs()[i].node].dtype == inputs.back().dtype);
    }
    const Evaluated got = evaluate(*wide, inputs);
    for (size_t o = 0; o < got.outputs.size(); ++o) {
      CHECK(got.outputs[o].shape == narrow.outputs[o].shape);
      CHECK(got.outputs[o].dtype != DType::F32);
    }
  }
}

// The judge is no better than its functions.
TEST_CASE("functions of doubles are good to a few units in the last place", "[double]") {
  double worst = 0;
  const auto compare = [&](double got, double want) {
    if (want != 0) worst = std::max(worst, std::abs(got - want) / std::abs(want));
  };
  for (int i = -400; i <= 400; ++i) {
    const double x = i / 40.0;
    compare(exp_(x), std::exp(x));
    compare(tanh_(x), std::tanh(x));
    compare(erf_(x), std::erf(x));
    compare(sigmoid_(x), 1 / (1 + std::exp(-x)));
    if (x > 0) compare(log_(x), std::log(x));
    if (x > 0) compare(sqrt_(x), std::sqrt(x));
  }
  CHECK(worst < 1e-13);
}
