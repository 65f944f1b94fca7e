// Corners of quantised, recurrent and attention operators. Expected values are worked out
// by hand from the specification.
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

namespace {

ModelAttribute list(const std::string& name, std::vector<float> values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Floats;
  a.floats = std::move(values);
  return a;
}

Tensor u8(Shape shape, const std::vector<uint8_t>& values) {
  return tensor(DType::U8, std::move(shape), values);
}

Tensor i8(Shape shape, const std::vector<int8_t>& values) {
  return tensor(DType::I8, std::move(shape), values);
}

Tensor i32(Shape shape, const std::vector<int32_t>& values) {
  return tensor(DType::I32, std::move(shape), values);
}

} // namespace

TEST_CASE("quantise rounds ties to even before the zero point", "[importer][rules]") {
  const Tensor x = f32({4}, {0.5f, 1.5f, 2.5f, 1000}), scale = f32({}, {1});
  const Tensor y = only({"QuantizeLinear", 13}, {x, scale, u8({}, {3})});
  CHECK(values<uint8_t>(y) == std::vector<uint8_t>{3, 5, 5, 255});
  const Tensor z =
      only({"QuantizeLinear", 13}, {f32({2}, {-1000, -0.5f}), scale, i8({}, {0})});
  CHECK(values<int8_t>(z) == std::vector<int8_t>{-128, 0});
}

TEST_CASE("dequantise takes the difference before the scale", "[importer][rules]") {
  const Tensor x = i32({1}, {16777217}), zero = i32({}, {16777216});
  check_close(apply({"DequantizeLinear", 13}, {x, f32({}, {0.5f}), zero}), {0.5f});
}

TEST_CASE("quantised products take vectors as numpy does", "[importer][rules]") {
  const Tensor a_scale = f32({}, {0.5F}), b_scale = f32({}, {0.25F});
  const auto product = [&](const Tensor& a, const Tensor& b) {
    return only({"QLinearMatMul", 10},
                {a, a_scale, u8({}, {1}), b, b_scale, u8({}, {2}), b_scale, u8({}, {3})});
  };
  // (0, 0.5, 1) times ((0, 0.5), (1, 1.5), (2, 2.5)) is (2.5, 3.25).
  const Tensor y = product(u8({3}, {1, 2, 3}), u8({3, 2}, {2, 4, 6, 8, 10, 12}));
  CHECK(y.shape == Shape{2});
  CHECK(values<uint8_t>(y) == std::vector<uint8_t>{13, 16});
  CHECK(product(u8({3}, {1, 2, 3}), u8({3}, {2, 6, 10})).shape == Shape{});
}

TEST_CASE("blocked scales, the last block short", "[importer][rules]") {
  const Tensor x = i8({5}, {1, 1, 1, 1, 1}), scale = f32({3}, {1, 2, 3});
  check_close(
      apply({"DequantizeLinear",
             21,
             {attribute("axis", int64_t{0}), attribute("block_size", int64_t{2})}},
            {x, scale}),
      {1, 1, 2, 2, 3});
}

TEST_CASE("an ended sequence keeps its state and gives zeros", "[importer][rules]") {
  // One unit, identity weights, x = 1: h grows 1, 2, 3 with the affine activation.
  ModelAttribute names = attribute("activations", "");
  names.type = AttributeType::Strings;
  names.strings = {"Affine"};
  Operator op{"RNN",
              14,
              {names, attribute("hidden_size", int64_t{1}), list("activation_alpha", {1}),
               list("activation_beta", {0})},
              0,
              2};
  op.run({f32({3, 3, 1}, std::vector<float>(9, 1)), f32({1, 1, 1}, {1}),
          f32({1, 1, 1}, {1}), f32({1, 2}, {0, 0}), i32({3}, {3, 1, 0}),
          f32({1, 3, 1}, {0, 0, 5})});
  INFO(op.failure);
  REQUIRE(op.results.size() == 2);
  check_close(values<float>(op.results[0]), {1, 1, 0, 2, 0, 0, 3, 0, 0});
  check_close(values<float>(op.results[1]), {3, 1, 0}); // none of what never ran
}

TEST_CASE("a reversed short sequence starts at its own end", "[importer][rules]") {
  ModelAttribute names = attribute("activations", "");
  names.type = AttributeType::Strings;
  names.strings = {"Affine"};
  Operator op{"RNN",
              14,
              {names, attribute("hidden_size", int64_t{1}),
               attribute("direction", "reverse"), list("activation_alpha", {1}),
               list("activation_beta", {0})},
              0,
              2};
  op.run({f32({3, 1, 1}, {1, 10, 100}), f32({1, 1, 1}, {1}), f32({1, 1, 1}, {1}),
          f32({1, 2}, {0, 0}), i32({1}, {2})});
  REQUIRE(op.results.size() == 2);
  check_close(values<float>(op.results[0]), {11, 10, 0});
  check_close(values<float>(op.results[1]), {11});
}

TEST_CASE("a sequence too long to be written out is a loop",
          "[importer][rules][region]") {
  // As above, h counts the steps; the second entry ends after two.
  constexpr int64_t kSteps = 40;
  ModelAttribute names = attribute("activations", "");
  names.type = AttributeType::Strings;
  names.strings = {"Affine", "Affine"};
  Operator op{"RNN",
              14,
              {names, attribute("hidden_size", int64_t{1}),
               attribute("direction", "bidirectional"), list("activation_alpha", {1, 1}),
               list("activation_beta", {0, 0})},
              0,
              2};
  op.run({f32({kSteps, 2, 1}, std::vector<float>(2 * kSteps, 1)), f32({2, 1, 1}, {1, 1}),
          f32({2, 1, 1}, {1, 1}), f32({2, 2}, {0, 0, 0, 0}), i32({2}, {kSteps, 2})});
  INFO(op.failure);
  REQUIRE(op.results.size() == 2);
  std::vector<float> expected;
  for (int64_t t = 0; t < kSteps; ++t)
    for (const int64_t h : {t + 1, t < 2 ? t + 1 : 0, kSteps - t, t < 2 ? 2 - t : 0})
      expected.push_back(static_cast<float>(h));
  check_close(values<float>(op.results[0]), expected);
  check_close(values<float>(op.results[1]), {kSteps, 2, kSteps, 2});
}

TEST_CASE("a query without an allowed key attends to nothing", "[importer][rules]") {
  const Tensor one = f32({1, 1, 2, 1}, {1, 1}), v = f32({1, 1, 2, 1}, {3, 5});
  const Tensor mask = tensor<uint8_t>(DType::Bool, {2, 2}, {0, 0, 1, 1});
  check_close(apply({"Attention", 23}, {one, one, v, mask}), {0, 4});
  check_close(
      apply({"Attention", 23, {attribute("is_causal", int64_t{1})}}, {one, one, v}),
      {3, 4});
}

TEST_CASE("neighbouring query heads share a key head", "[importer][rules]") {
  const Tensor q = f32({1, 4, 1, 1}, {1, 1, 1, 1}), k = f32({1, 2, 1, 1}, {1, 1});
  check_close(apply({"Attention", 23}, {q, k, f32({1, 2, 1, 1}, {7, 8})}), {7, 7, 8, 8});
}
