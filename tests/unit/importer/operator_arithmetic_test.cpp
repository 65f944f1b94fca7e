// Corners of elementwise operators, reductions and losses: what the specification says
// where implementations differ. Expected values are worked out by hand.
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
