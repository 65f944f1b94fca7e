// Corners of operator rules: what the specification says where implementations differ.
// Expected values are worked out by hand.
#include "importer/formula/expression.h"
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

TEST_CASE("before opset 13 softmax takes all axes from `axis` on", "[importer][rules]") {
  const Tensor x = f32({1, 2, 2}, {0, 0, 0, 0});
  check_close(apply({"Softmax", 11}, {x}), {0.25f, 0.25f, 0.25f, 0.25f});
  check_close(apply({"Softmax", 13}, {x}), {0.5f, 0.5f, 0.5f, 0.5f});
}

TEST_CASE("hardmax over several axes marks one element", "[importer][rules]") {
  const Tensor x = f32({1, 2, 2}, {1, 3, 3, 2});
  check_close(apply({"Hardmax", 11}, {x}), {0, 1, 0, 0});
  check_close(apply({"Hardmax", 13}, {x}), {0, 1, 1, 0});
}

TEST_CASE("before opset 7 the second operand lies where `axis` says",
          "[importer][rules]") {
  const Tensor a = f32({2, 3}, counting(6)), b = f32({2}, {10, 20});
  check_close(
      apply(
          {"Add", 6, {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{0})}},
          {a, b}),
      {10, 11, 12, 23, 24, 25});
  CHECK(Operator{"Add", 6}.run({a, b}).failure.find("broadcast") != std::string::npos);
  CHECK(Operator{"Add", 7}.run({a, b}).failure.find("does not broadcast") !=
        std::string::npos);
}

TEST_CASE("clip with crossed bounds gives the upper one", "[importer][rules]") {
  check_close(apply({"Clip", 13}, {f32({3}, {-1, 1.5, 5}), f32({}, {2}), f32({}, {1})}),
              {1, 1, 1});
}

TEST_CASE("log-sum-exp stays finite", "[importer][rules]") {
  check_close(apply({"ReduceLogSumExp", 13}, {f32({2}, {1000, 1000})}),
              {1000 + std::log(2.0f)});
  CHECK(apply({"ReduceLogSumExp", 13}, {f32({2}, {-kInf, -kInf})})[0] == -kInf);
  CHECK(apply({"ReduceLogSumExp", 13}, {f32({2}, {kInf, 0})})[0] == kInf);
}

TEST_CASE("reductions without axes", "[importer][rules]") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_close(apply({"ReduceSum", 13}, {x}), {10});
  check_close(
      apply({"ReduceSumSquare", 18, {attribute("noop_with_empty_axes", int64_t{1})}},
            {x}),
      {1, 4, 9, 16});
  Operator scalar{"ReduceMax", 18, {attribute("keepdims", int64_t{0})}};
  CHECK(scalar.run({x}).results.at(0).shape.empty());
}

TEST_CASE("running sums", "[importer][rules]") {
  const Tensor x = f32({3}, {1, 2, 3}), axis = i64({}, {0});
  const auto flag = [](const char* name) { return attribute(name, int64_t{1}); };
  check_close(apply({"CumSum", 14, {flag("exclusive")}, 1}, {x, axis}), {0, 1, 3});
  check_close(apply({"CumSum", 14, {flag("exclusive"), flag("reverse")}, 1}, {x, axis}),
              {5, 3, 0});
  check_close(apply({"CumProd", 26, {flag("exclusive")}, 1}, {x, axis}), {1, 1, 2});
}

TEST_CASE("an odd total of padding goes to one side", "[importer][rules]") {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 2}, {1, 10});
  check_close(apply({"Conv", 11, {attribute("auto_pad", "SAME_UPPER")}}, {x, w}),
              {21, 32, 43, 4});
  check_close(apply({"Conv", 11, {attribute("auto_pad", "SAME_LOWER")}}, {x, w}),
              {10, 21, 32, 43});
}

TEST_CASE("grouped convolution keeps its groups apart", "[importer][rules]") {
  const Tensor x = f32({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor w = f32({2, 2, 1}, {1, 10, 100, 1000});
  check_close(apply({"Conv", 11, {attribute("group", int64_t{2})}}, {x, w}),
              {31, 42, 7500, 8600});
}

// Taps that meet only the zeros around the input are not computed.
TEST_CASE("taps far beyond the input of a convolution", "[importer][rules]") {
  const std::vector<float> x = {2, -3, 5, 7}, w = {1, 10, 100, 1000};
  for (int64_t dilation : {1, 2, 4, 5})
    for (int64_t low = 0; low < 12; ++low)
      for (int64_t high : {0, 5, 11})
        for (int64_t stride : {1, 2, 3}) {
          std::vector<float> want;
          for (int64_t at = -low; at + 3 * dilation < 4 + high; at += stride) {
            want.push_back(0);
            for (int64_t k = 0; k < 4; ++k)
              if (int64_t i = at + k * dilation; i >= 0 && i < 4)
                want.back() += w[k] * x[i];
          }
          if (want.empty()) continue;
          CAPTURE(dilation, low, high, stride);
          check_close(apply({"Conv",
                             11,
                             {attribute("dilations", std::vector<int64_t>{dilation}),
                              attribute("pads", std::vector<int64_t>{low, high}),
                              attribute("strides", std::vector<int64_t>{stride})},
                             1},
                            {f32({1, 1, 4}, x), f32({1, 1, 4}, w)}),
                      want);
        }
}

TEST_CASE("transposed convolution is the sum of scaled kernels", "[importer][rules]") {
  const Tensor x = f32({1, 1, 3}, {1, 2, 3}), w = f32({1, 1, 3}, {1, 10, 100});
  const auto with = [&](std::vector<ModelAttribute> attributes) {
    return apply({"ConvTranspose", 11, std::move(attributes)}, {x, w});
  };
  const ModelAttribute stride = attribute("strides", std::vector<int64_t>{2});
  check_close(with({}), {1, 12, 123, 230, 300});
  check_close(with({stride}), {1, 10, 102, 20, 203, 30, 300});
  check_close(with({stride, attribute("pads", std::vector<int64_t>{1, 1})}),
              {10, 102, 20, 203, 30});
  check_close(with({stride, attribute("output_padding", std::vector<int64_t>{1})}),
              {1, 10, 102, 20, 203, 30, 300, 0});
  check_close(with({attribute("dilations", std::vector<int64_t>{2})}),
              {1, 2, 13, 20, 130, 200, 300});
  check_close(with({attribute("strides", std::vector<int64_t>{5})}),
              {1, 10, 100, 0, 0, 2, 20, 200, 0, 0, 3, 30, 300});
}

TEST_CASE("transposed convolution in groups", "[importer][rules]") {
  const Tensor x = f32({1, 2, 2}, {1, 2, 3, 4}), w = f32({2, 1, 2}, {1, 10, 100, 1000});
  check_close(apply({"ConvTranspose", 11, {attribute("group", int64_t{2})}}, {x, w}),
              {1, 12, 20, 300, 3400, 4000});
}

TEST_CASE("poolings at the border", "[importer][rules]") {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4});
  const auto ints = [](const char* name, std::vector<int64_t> v) {
    return attribute(name, std::move(v));
  };
  const std::vector<ModelAttribute> three{ints("kernel_shape", {3}), ints("strides", {3}),
                                          ints("pads", {1, 1})};
  const auto plus = [&](ModelAttribute more) {
    std::vector<ModelAttribute> all = three;
    all.push_back(std::move(more));
    return all;
  };
  check_close(apply({"AveragePool", 19, three}, {x}), {1.5f, 3.5f});
  check_close(
      apply({"AveragePool", 19, plus(attribute("count_include_pad", int64_t{1}))}, {x}),
      {1, 7.0f / 3});
  // The last window has one element; nothing behind the input counts.
  check_close(apply({"AveragePool",
                     19,
                     {ints("kernel_shape", {3}), ints("strides", {3}),
                      attribute("ceil_mode", int64_t{1})}},
                    {x}),
              {2, 4});
  check_close(apply({"MaxPool", 12, three}, {f32({1, 1, 4}, {-1, -2, -3, -4})}),
              {-1, -3});
}

TEST_CASE("max pool tells where the first maximum was", "[importer][rules]") {
  const Tensor x = f32({1, 1, 2, 3}, {1, 5, 5, 2, 0, 7});
  Operator pool{"MaxPool", 12, {attribute("kernel_shape", std::vector<int64_t>{2, 2})}};
  pool.outputs = 2;
  CHECK(values<int64_t>(pool.run({x}).results.at(1)) == std::vector<int64_t>{1, 5});
  pool.attributes.push_back(attribute("storage_order", int64_t{1}));
  CHECK(values<int64_t>(pool.run({x}).results.at(1)) == std::vector<int64_t>{2, 5});
}

TEST_CASE("einsum", "[importer][rules]") {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 2}, {5, 6, 7, 8});
  const auto einsum = [](const char* equation, const std::vector<Tensor>& inputs) {
    return apply({"Einsum", 12, {attribute("equation", equation)}}, inputs);
  };
  check_close(einsum("ij,jk", {a, b}), {19, 22, 43, 50});
  check_close(einsum("ij, jk -> ki", {a, b}), {19, 43, 22, 50});
  check_close(einsum("ii", {a}), {5});
  check_close(einsum("ii->i", {a}), {1, 4});
  check_close(einsum("ba", {a}), {1, 3, 2, 4});
  check_close(einsum("i...->...", {a}), {4, 6});
  check_close(einsum("...i,...i->...", {a, b}), {17, 53});
  check_close(einsum("ij,ij,ij->", {a, b, a}), {5 + 24 + 63 + 128});
}

TEST_CASE("determinants", "[importer][rules]") {
  check_close(apply({"Det", 11}, {f32({2, 2}, {0, 2, 3, 4})}), {-6});
  check_close(apply({"Det", 11}, {f32({3, 3}, {2, 0, 1, 4, 1, 0, 0, 5, 3})}), {26});
  check_close(apply({"Det", 11}, {f32({2, 2}, {1, 2, 2, 4})}), {0});
}

TEST_CASE("shifts of signed numbers", "[importer][rules]") {
  const auto shift = [](const char* direction, std::vector<int8_t> x,
                        std::vector<int8_t> by) {
    const Shape shape{static_cast<int64_t>(x.size())};
    Operator op{"BitShift", 28, {attribute("direction", direction)}};
    op.run({tensor(DType::I8, shape, x), tensor(DType::I8, shape, by)});
    return values<int8_t>(op.results.at(0));
  };
  CHECK(shift("RIGHT", {-8, -8, 64, -8}, {1, 9, 9, -1}) ==
        std::vector<int8_t>{-4, -1, 0, -1});
  CHECK(shift("LEFT", {-8, 64, 1, 1}, {1, 1, 9, -1}) ==
        std::vector<int8_t>{-16, -128, 0, 0});
}

TEST_CASE("batch normalisation in training mode", "[importer][rules]") {
  const Tensor x = f32({2, 1, 1}, {1, 3}), one = f32({1}, {1}), zero = f32({1}, {0});
  Operator norm{"BatchNormalization",
                15,
                {attribute("training_mode", int64_t{1}), attribute("epsilon", 0.0),
                 attribute("momentum", 0.5)}};
  norm.outputs = 3;
  norm.run({x, one, zero, zero, one});
  INFO(norm.failure);
  check_close(values<float>(norm.results.at(0)), {-1, 1});
  check_close(values<float>(norm.results.at(1)), {1});
  check_close(values<float>(norm.results.at(2)), {1});
}

TEST_CASE("losses ignore what they are told to", "[importer][rules]") {
  const Tensor x = f32({3, 2}, {-1, -2, -3, -4, -5, -6});
  const Tensor target = i64({3}, {0, 1, -100}), weight = f32({2}, {1, 3});
  const ModelAttribute ignore = attribute("ignore_index", int64_t{-100});
  check_close(apply({"NegativeLogLikelihoodLoss", 13, {ignore}}, {x, target}), {2.5f});
  check_close(apply({"NegativeLogLikelihoodLoss", 13, {ignore}}, {x, target, weight}),
              {13.0f / 4});
  check_close(
      apply({"NegativeLogLikelihoodLoss", 13, {ignore, attribute("reduction", "none")}},
            {x, target, weight}),
      {1, 12, 0});
}

TEST_CASE("what does not fit is said", "[importer][rules]") {
  const auto failure = [](Operator op, const std::vector<Tensor>& inputs) {
    return op.run(inputs).failure;
  };
  const Tensor x = f32({1, 2, 3}, counting(6));
  CHECK(failure({"Conv", 11}, {x, f32({1, 3, 1}, counting(3))}) != "");
  CHECK(failure({"Conv", 11}, {x, f32({1, 2, 9}, counting(18))}) != "");
  CHECK(failure({"MaxPool", 12, {attribute("kernel_shape", std::vector<int64_t>{1, 1})}},
                {x}) != "");
  CHECK(failure({"MatMul", 13}, {x, x}) != "");
  CHECK(failure({"Softmax", 13, {attribute("axis", int64_t{3})}}, {x}) != "");
}

TEST_CASE("half precision is not rounded between two formulas", "[importer][rules]") {
  Graph g;
  const Expr x{&g, g.add_input("x", DType::F32, {2, 3})};
  const Expr rounded = convert(x, DType::F16);
  CHECK(widen(rounded).id == x.id);
  CHECK(widen(reshape(permute(rounded, {1, 0}), {6})).id ==
        reshape(permute(x, {1, 0}), {6}).id);
  const Expr stored{&g, g.add_input("y", DType::F16, {2})};
  CHECK(widen(stored).id == convert(stored, DType::F32).id);
}
