// What a model promises by declaring a shape that only the run shows: a run that keeps
// the promise gives its result, another one ends instead of giving other numbers.
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

Tensor numbers(const std::vector<int64_t>& values, bool scalar) {
  Shape shape;
  if (!scalar) shape.push_back(std::ssize(values));
  Tensor tensor{DType::I64, std::move(shape), {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  tensor.bytes.assign(bytes, bytes + values.size() * sizeof(int64_t));
  return tensor;
}

struct Case {
  std::string op;
  Shape x, y; // y as declared
  std::vector<std::vector<int64_t>> kept, broken;
  std::vector<std::string> inputs = {"x", "n"}, attributes = {};
  bool scalar = false;
};

// The run of y = op(x, n) with these n; x is 1, 2, 3, ...
Evaluated run(const Case& test, const std::vector<int64_t>& n) {
  const auto dims = [](const Shape& shape) {
    return std::vector<Dim>(shape.begin(), shape.end());
  };
  Shape length;
  if (!test.scalar) length.push_back(std::ssize(n));
  const Imported model_read =
      imported(model({{node(test.op, test.inputs, {"y"}, test.attributes)},
                      {value("x", dims(test.x)), value("n", dims(length), kI64)},
                      {value("y", dims(test.y), test.op == "NonZero" ? kI64 : kF32)},
                      {floats("values", {2}, {0, 1}), floats("none", {0}, {})}},
                     18));
  std::vector<float> elements;
  for (int64_t i = 0; i < element_count(test.x); ++i)
    elements.push_back(static_cast<float>(i + 1));
  return evaluate(*model_read.graph, {f32(test.x, elements), numbers(n, test.scalar)});
}

} // namespace

TEST_CASE("a run ends where it breaks what the model declares", "[import]") {
  const std::vector<Case> cases = {
      {"Reshape", {12}, {3, 4}, {{3, 4}, {-1, 4}, {3, -1}}, {{4, 3}, {4, -1}, {0, 4}}},
      {"Reshape", {3, 4}, {3, 2, 2}, {{3, 2, 2}, {0, 2, -1}}, {{3, 4, 1}, {0, 0, 1}}},
      {"Expand", {1, 4}, {3, 4}, {{3, 4}, {3, 1}}, {{2, 4}, {1, 4}}},
      {"Squeeze", {1, 3, 1}, {3, 1}, {{0}, {-3}}, {{2}, {1}, {3}}},
      {"Squeeze", {1, 1, 4}, {1, 4}, {{0}, {1}}, {{2}, {-1}}},
      {"Squeeze", {1, 3, 1, 1}, {3, 1}, {{0, 2}, {-1, 0}}, {{2, 3}, {0, 0}, {0, 1}}},
      {"Unsqueeze", {3, 4}, {1, 3, 4, 1}, {{0, 3}, {-1, -4}}, {{0, 1}, {2, 3}, {3, 3}}},
      {"Tile", {1, 4}, {3, 8}, {{3, 2}}, {{3, 1}, {2, 2}}},
      {"ReduceSum", {3, 4}, {1, 4}, {{0}, {-2}}, {{1}, {-1}}},
      {"ConstantOfShape", {1}, {2, 3}, {{2, 3}}, {{3, 2}}, {"n"}},
      {"Resize",
       {1, 1, 4, 4},
       {1, 1, 8, 6},
       {{1, 1, 8, 6}},
       {{1, 1, 8, 7}},
       {"x", "", "", "n"}},
      {"OneHot", {2}, {2, 4}, {{4}}, {{5}, {3}}, {"x", "n", "values"}},
      {"HannWindow", {1}, {6}, {{6}}, {{5}, {7}}, {"n"}, {}, true},
  };
  for (const Case& test : cases) {
    INFO(test.op);
    for (const auto& n : test.kept) {
      const Evaluated good = run(test, n);
      REQUIRE(good.failed == kNoNode);
      CHECK(good.outputs.at(0).shape == test.y);
    }
    for (const auto& n : test.broken) CHECK(run(test, n).failed != kNoNode);
  }
}

TEST_CASE("a declared range ends in front of its limit", "[import]") {
  const Imported read = imported(model({{node("Range", {"a", "b", "c"}, {"y"})},
                                        {value("a", {}), value("b", {}), value("c", {})},
                                        {value("y", {3})},
                                        {}}));
  const auto ends = [&](float from, float to, float by) {
    const Evaluated run =
        evaluate(*read.graph, {f32({}, {from}), f32({}, {to}), f32({}, {by})});
    return run.failed == kNoNode ? floats_of(run.outputs.at(0)) : std::vector<float>{};
  };
  CHECK(ends(1, 4, 1) == std::vector<float>{1, 2, 3});
  CHECK(ends(1, 5.5f, 2) == std::vector<float>{1, 3, 5});
  CHECK(ends(5, 0, -2) == std::vector<float>{5, 3, 1});
  CHECK(ends(1, 5, 1).empty());
  CHECK(ends(1, 3, 1).empty());
  CHECK(ends(1, 4, -1).empty());
}
