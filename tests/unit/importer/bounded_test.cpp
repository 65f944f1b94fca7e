// Sizes that depend on data: bounds of numbers, what propagates, what is refused, and the
// values, computed by the evaluator and cut to the extents that the graph gives.
#include "importer/bounded/bounded.h"
#include "importer/formula/value_range.h"
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

struct Sized {
  Tensor tensor;
  std::vector<int64_t> extents;
};

std::vector<int64_t> ints_of(const Tensor& tensor) {
  REQUIRE(tensor.dtype == DType::I64);
  std::vector<int64_t> values(tensor.bytes.size() / sizeof(int64_t));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// The first output and its extents, of a model of the input x.
Sized run_sized(const std::string& bytes, const std::vector<float>& x) {
  const Imported model = imported(bytes);
  const Shape shape = (*model.graph)[model.graph->inputs()[0].node].shape;
  const Evaluated result = evaluate(*model.graph, {f32(shape, x)});
  REQUIRE(result.failed == kNoNode);
  REQUIRE(model.interface.extents.contains(0));
  return {result.outputs[0], ints_of(result.outputs[model.interface.extents.at(0)])};
}

const std::string kPositive = node("Greater", {"x", "zero"}, {"c"});
const std::string kKept = node("Compress", {"x", "c"}, {"v"});
const std::vector<std::string> kZero = {floats("zero", {}, {0})};

// Of x [6], the positive ones go through `nodes` to y.
std::string over_kept(const std::vector<std::string>& nodes,
                      std::vector<std::string> constants = {}) {
  std::vector<std::string> all{kPositive, kKept};
  all.insert(all.end(), nodes.begin(), nodes.end());
  constants.push_back(kZero[0]);
  return model({all, {value("x", {6})}, {value("y", {""})}, constants}, 13);
}

const std::vector<float> kMixed = {1, -1, 2, 0, -3, 4};

} // namespace

TEST_CASE("elements that a condition keeps lie at the front", "[bounded]") {
  const Sized y = run_sized(over_kept({node("Neg", {"v"}, {"y"})}), kMixed);
  CHECK(y.extents == std::vector<int64_t>{3});
  const std::vector<float> values = floats_of(y.tensor);
  REQUIRE(values.size() == 6); // the bound
  CHECK(std::vector<float>(values.begin(), values.begin() + 3) ==
        std::vector<float>{-1, -2, -4});
  CHECK(run_sized(over_kept({node("Neg", {"v"}, {"y"})}), {-1, -1, -1, -1, -1, -1})
            .extents == std::vector<int64_t>{0});
}

TEST_CASE("reductions see only what is meant", "[bounded]") {
  const auto reduced = [](const char* op) {
    const Imported result =
        import(over_kept({node(op, {"v"}, {"y"}, {attribute("keepdims", int64_t{0})})}));
    INFO(result.text());
    REQUIRE(result.graph);
    return floats_of(evaluate(*result.graph, {f32({6}, kMixed)}).outputs.at(0)).at(0);
  };
  CHECK(reduced("ReduceMin") == 1); // not 0 or -3
  CHECK(reduced("ReduceProd") == 8);
  CHECK(reduced("ReduceMean") == Approx(7.0 / 3));
  CHECK(reduced("ReduceSum") == 7);
  CHECK(reduced("ReduceLogSumExp") ==
        Approx(std::log(std::exp(1.0) + std::exp(2.0) + std::exp(4.0))));
}

TEST_CASE("pieces of unknown length are joined without a gap", "[bounded]") {
  const Sized y = run_sized(
      over_kept({node("Concat", {"v", "v"}, {"y"}, {attribute("axis", int64_t{0})})}),
      kMixed);
  CHECK(y.extents == std::vector<int64_t>{6});
  CHECK(floats_of(y.tensor) == std::vector<float>{1, 2, 4, 1, 2, 4, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("Unique keeps the first of each and counts", "[bounded]") {
  const auto unique = [](int64_t sorted) {
    return model({{node("Unique", {"x"}, {"y"}, {attribute("sorted", sorted)})},
                  {value("x", {6})},
                  {value("y", {""})},
                  {}});
  };
  const std::vector<float> x = {3, 1, 3, 2, 1, 1};
  const Sized sorted = run_sized(unique(1), x), found = run_sized(unique(0), x);
  CHECK(sorted.extents == std::vector<int64_t>{3});
  const auto first_three = [](const Sized& y) {
    const std::vector<float> all = floats_of(y.tensor);
    return std::vector<float>(all.begin(), all.begin() + 3);
  };
  CHECK(first_three(sorted) == std::vector<float>{1, 2, 3});
  CHECK(first_three(found) == std::vector<float>{3, 1, 2});
}

TEST_CASE("what is counted in constants has its size when packing", "[bounded]") {
  const Imported result = import(model({{node("Unique", {"c"}, {"y"})},
                                        {},
                                        {value("y", {""})},
                                        {floats("c", {6}, {3, 1, 3, 2, 1, 1})}}));
  INFO(result.text());
  REQUIRE(result.graph);
  REQUIRE(result.graph->outputs().size() == 1);
  CHECK(floats_of(evaluate(*result.graph, {}).outputs.at(0)) ==
        std::vector<float>{1, 2, 3});
}

TEST_CASE("an operator without a row names itself and where the size is found",
          "[bounded]") {
  const std::string hidden =
      over_kept({node("Hardmax", {"v"}, {"z"}), node("Det", {"z"}, {"y"})});
  refused(hidden, Exit::Unsupported,
          "the size of input 0 along axis 0, as 'Compress#1' finds it, depends on data");
  // What was found in data is not to be fixed.
  CHECK(import(hidden).text().find("--value") == std::string::npos);
}

TEST_CASE("sizes that differ in the run stop it", "[bounded]") {
  // Positive elements of x and non-negative ones: as many only where none is 0.
  const std::string bytes =
      model({{kPositive, kKept, node("GreaterOrEqual", {"x", "zero"}, {"d"}),
              node("Compress", {"x", "d"}, {"w"}), node("Add", {"v", "w"}, {"y"})},
             {value("x", {6})},
             {value("y", {""})},
             kZero},
            13);
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  CHECK(evaluate(*result.graph, {f32({6}, {1, -1, 2, -1, -3, 4})}).failed == kNoNode);
  CHECK(evaluate(*result.graph, {f32({6}, kMixed)}).failed != kNoNode);
}

TEST_CASE("a count's bound passes through the arithmetic of sizes", "[bounded]") {
  Graph g;
  const Expr x{&g, g.add_input("x", DType::Bool, {10})};
  const Expr count = sum(convert(x, DType::I64), {0});
  const auto high = [&](Expr e) {
    const auto range = range_of(g, e.id);
    return range ? range->high : -1;
  };
  CHECK(high(count) == 10);
  CHECK(high(minimum(count, 4)) == 4);
  CHECK(high(count * 3 - 1.0) == 29);
  CHECK(high(count / 4.0) == 2.5); // of integers, truncated later
  const Expr list =
      join({reshape(count, {1}), reshape(number(g, DType::I64, 7), {1})}, 0);
  CHECK(range_of(g, list.id, 1)->high == 7);
  CHECK(range_of(g, list.id, 0)->low == 0);
  const Expr free{&g, g.add_input("n", DType::I64, {})};
  CHECK_FALSE(range_of(g, free.id));
  // Narrow integers wrap around: nothing is known.
  CHECK_FALSE(range_of(g, (convert(count, DType::U8) * 100).id));
}

TEST_CASE("a value keeps no bounds when it is also used as it is", "[bounded]") {
  // Zeros of the bounded size and zeros of the whole size are one constant in the graph.
  const std::string bytes =
      over_kept({node("Shape", {"v"}, {"n"}), node("ConstantOfShape", {"n"}, {"some"}),
                 node("ConstantOfShape", {"six"}, {"all"}),
                 node("Concat", {"some", "all"}, {"y"}, {attribute("axis", int64_t{0})})},
                {ints("six", {1}, {6})});
  CHECK(run_sized(bytes, kMixed).extents == std::vector<int64_t>{9});
}

TEST_CASE("an input is expanded only to a size that it fits", "[bounded]") {
  // Of three elements, to as many as are positive.
  const std::string bytes =
      over_kept({node("Shape", {"v"}, {"n"}), node("Expand", {"three", "n"}, {"y"})},
                {floats("three", {3}, {7, 8, 9})});
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  CHECK(evaluate(*result.graph, {f32({6}, kMixed)}).failed == kNoNode);
  CHECK(evaluate(*result.graph, {f32({6}, {1, 1, 1, 1, 1, 1})}).failed != kNoNode);
}

TEST_CASE("positions have a bias as far as the run goes", "[bounded]") {
  const std::string bytes =
      model({{kPositive, kKept, node("Shape", {"v"}, {"n"}),
              node("RelativePositionBias", {"table", "n", "n"}, {"all"},
                   {attribute("max_distance", int64_t{4})}, "com.microsoft"),
              node("Slice", {"all", "minus", "many", "two"}, {"y"})},
             {value("x", {6})},
             {value("y", {1, 1, "r", "c"})},
             {kZero[0], floats("table", {4, 1}, {7, 5, 3, 1}), ints("minus", {1}, {-2}),
              ints("many", {1}, {int64_t{1} << 40}), ints("two", {1}, {2})}},
            17, opset("com.microsoft", 1));
  // Three are kept: of the rows [7 7 7], [5 7 7], [3 5 7] the last two.
  const Sized y = run_sized(bytes, kMixed);
  CHECK(y.extents == std::vector<int64_t>{1, 1, 2, 3});
  const auto all = floats_of(y.tensor);
  const auto width = static_cast<size_t>(y.tensor.shape[3]);
  const std::vector<float> rows[] = {{5, 7, 7}, {3, 5, 7}};
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 3; ++column)
      CHECK(all[row * width + column] == rows[row][column]);
}

TEST_CASE("a size without a bound has the limit's", "[bounded]") {
  const std::string bytes =
      model({{node("Cast", {"x"}, {"n"}, {attribute("to", int64_t{7})}),
              node("Range", {"zero", "n", "one"}, {"r"}),
              node("Cast", {"r"}, {"y"}, {attribute("to", int64_t{1})})},
             {value("x", {})},
             {value("y", {""})},
             {ints("zero", {}, {0}), ints("one", {}, {1})}});
  refused(bytes, Exit::Unsupported, "has no bound (--limit-size N gives it one)");
  ImportOptions options;
  options.limits.size = 4;
  const Imported limited = import(bytes, options);
  INFO(limited.text());
  REQUIRE(limited.graph);
  const auto run = [&](float n) { return evaluate(*limited.graph, {f32({}, {n})}); };
  const Evaluated three = run(3);
  REQUIRE(three.failed == kNoNode);
  CHECK(three.outputs[0].shape == Shape{4});
  CHECK(ints_of(three.outputs[limited.interface.extents.at(0)]) ==
        std::vector<int64_t>{3});
  CHECK(run(4).failed == kNoNode);
  CHECK(run(5).failed != kNoNode);
}

TEST_CASE("a size of the run that both sides of a reshape have cancels out",
          "[bounded]") {
  // [n, 6] as [n, -1]: -1 is 6, known when packing, though only the run knows n. So is it
  // for a slice up to n, which is all of it.
  const std::string wide = node("Mul", {"column", "row"}, {"wide"});
  const std::string column = node("Unsqueeze", {"v", "one"}, {"column"});
  const std::vector<std::string> sizes{
      node("Shape", {"v"}, {"n"}),
      node("Concat", {"n", "rest"}, {"shape"}, {attribute("axis", int64_t{0})})};
  const std::vector<std::string> constants{ints("one", {1}, {1}), ints("none", {1}, {0}),
                                           ints("rest", {1}, {-1}),
                                           floats("row", {1, 6}, {1, 2, 3, 4, 5, 6})};
  for (const char* from : {"wide", "cut"}) {
    const Sized y =
        run_sized(over_kept({column, wide, sizes[0], sizes[1],
                             node("Slice", {"wide", "none", "n", "none"}, {"cut"}),
                             node("Reshape", {from, "shape"}, {"y"})},
                            constants),
                  kMixed);
    CHECK(y.extents == std::vector<int64_t>{3, 6});
    CHECK(y.tensor.shape == Shape{6, 6});
  }
}
