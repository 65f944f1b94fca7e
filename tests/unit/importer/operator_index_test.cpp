// Corners of operators that move elements: shapes, slices, indices, resizing. Expected
// values are worked out by hand from the specification.
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

namespace {

Tensor u8(Shape shape, const std::vector<uint8_t>& values) {
  return tensor(DType::U8, std::move(shape), values);
}

Tensor i32(Shape shape, const std::vector<int32_t>& values) {
  return tensor(DType::I32, std::move(shape), values);
}

Operator known(const std::string& name, int64_t opset, size_t count,
               std::vector<ModelAttribute> attributes = {}) {
  return {name, opset, std::move(attributes), count};
}

} // namespace

TEST_CASE("reshape: 0 copies, -1 is inferred, allowzero keeps a zero",
          "[importer][rules]") {
  const Tensor x = f32({2, 3, 4}, counting(24)), none = f32({0, 3}, {});
  CHECK(only(known("Reshape", 5, 1), {x, i64({3}, {0, -1, 2})}).shape == Shape{2, 6, 2});
  CHECK(only(known("Reshape", 14, 1, {attribute("allowzero", int64_t{1})}),
             {none, i64({2}, {3, 0})})
            .shape == Shape{3, 0});
  CHECK(known("Reshape", 14, 1).run({x, i64({2}, {5, -1})}).failure != "");
  CHECK(known("Reshape", 14, 1).run({x, i64({2}, {-1, -1})}).failure != "");
}

TEST_CASE("reshape by a shape of run time follows the declared one",
          "[importer][rules]") {
  const Tensor x = f32({2, 3}, counting(6)), shape = i64({2}, {3, 2});
  CHECK(Operator{"Reshape", 14}.run({x, shape}).failure.find("has no bound") !=
        std::string::npos);
  Operator declared{"Reshape", 14};
  declared.declared = {Shape{3, 2}};
  CHECK(only(declared, {x, shape}).shape == Shape{3, 2});
  declared.declared = {Shape{4, 2}};
  CHECK(declared.run({x, shape}).failure != "");
}

TEST_CASE("slice clamps its bounds into the axis", "[importer][rules]") {
  const Tensor x = f32({5}, counting(5)), axes = i64({1}, {-1});
  auto cut = [&](int64_t start, int64_t end, int64_t step) {
    return apply(known("Slice", 13, 4),
                 {x, i64({1}, {start}), i64({1}, {end}), axes, i64({1}, {step})});
  };
  check_close(cut(-100, 2, 1), {0, 1});
  check_close(cut(3, 100, 1), {3, 4});
  check_close(cut(100, INT64_MIN, -1), {4, 3, 2, 1, 0});
  check_close(cut(-1, 0, -2), {4, 2});
  check_close(cut(1, INT64_MAX, 3), {1, 4});
  check_close(cut(3, 1, 1), {});
  check_close(cut(4, -6, INT64_MIN), {4});
  check_close(cut(-9, -9, -1), {0}); // a start before the axis is its first element
}

TEST_CASE("pad repeats beyond the extent, and negative pads cut", "[importer][rules]") {
  const Tensor x = f32({3}, {1, 2, 3});
  auto padded = [&](const char* mode, std::vector<int64_t> pads) {
    return apply(known("Pad", 19, 1, {attribute("mode", mode)}), {x, i64({2}, pads)});
  };
  check_close(padded("reflect", {3, 3}), {2, 3, 2, 1, 2, 3, 2, 1, 2});
  check_close(padded("edge", {2, 1}), {1, 1, 1, 2, 3, 3});
  check_close(padded("wrap", {4, 2}), {3, 1, 2, 3, 1, 2, 3, 1, 2});
  check_close(padded("constant", {-1, 2}), {2, 3, 0, 0});
  check_close(padded("reflect", {-1, 1}), {2, 3, 2});
}

TEST_CASE("split into unequal parts leaves the smaller one last", "[importer][rules]") {
  Operator op{"Split", 18, {attribute("num_outputs", int64_t{3})}, 0, 3};
  op.run({f32({7}, counting(7))});
  REQUIRE(op.results.size() == 3);
  CHECK(op.results[0].shape == Shape{3});
  CHECK(op.results[2].shape == Shape{1});
}

TEST_CASE("known indices are checked when packing, others when run",
          "[importer][rules]") {
  const Tensor x = f32({3, 2}, counting(6));
  check_close(apply(known("Gather", 13, 1), {x, i64({2}, {-1, 0})}), {4, 5, 0, 1});
  CHECK(known("Gather", 13, 1).run({x, i64({1}, {3})}).failure.find("outside") !=
        std::string::npos);
  check_close(apply({"Gather", 13}, {x, i64({2}, {-3, 2})}), {0, 1, 4, 5});
  CHECK(Operator{"Gather", 13}.run({x, i64({1}, {-4})}).results.empty());
}

TEST_CASE("a bad part of an index tuple is not hidden by flattening",
          "[importer][rules]") {
  const Tensor x = f32({2, 3}, counting(6));
  check_close(apply({"GatherND", 13}, {x, i64({2, 2}, {0, -1, 1, 0})}), {2, 3});
  CHECK(Operator{"GatherND", 13}.run({x, i64({1, 2}, {0, 4})}).results.empty());
}

TEST_CASE("scatter elements into a corner of the data", "[importer][rules]") {
  const Tensor x = f32({2, 3}, {0, 0, 0, 0, 0, 0});
  const Tensor index = i64({1, 2}, {1, 1}), update = f32({1, 2}, {5, 7});
  check_close(apply({"ScatterElements",
                     18,
                     {attribute("axis", int64_t{0}), attribute("reduction", "add")}},
                    {x, index, update}),
              {0, 0, 0, 5, 7, 0});
  check_close(apply({"ScatterElements",
                     18,
                     {attribute("axis", int64_t{1}), attribute("reduction", "max")}},
                    {x, index, update}),
              {0, 7, 0, 0, 0, 0});
}

TEST_CASE("top-k prefers the lower index among equals", "[importer][rules]") {
  Operator op = known("TopK", 11, 1);
  op.outputs = 2;
  op.run({f32({4}, {1, 3, 3, 2}), i64({1}, {2})});
  REQUIRE(op.results.size() == 2);
  CHECK(values<int64_t>(op.results[1]) == std::vector<int64_t>{1, 2});
}

TEST_CASE("one-hot: negative indices wrap once, others give no hit",
          "[importer][rules]") {
  const Tensor index = i64({3}, {-1, 3, -4}), depth = i64({}, {3}),
               ends = f32({2}, {9, 1});
  check_close(apply(known("OneHot", 11, 2), {index, depth, ends}),
              {9, 9, 1, 9, 9, 9, 9, 9, 9});
}

TEST_CASE("resize nearest: the four ways to round", "[importer][rules]") {
  const Tensor x = f32({1, 1, 1, 2}, {1, 2}), no = f32({0}, {});
  auto wide = [&](const char* nearest) {
    return apply(known("Resize", 13, 1,
                       {attribute("coordinate_transformation_mode", "asymmetric"),
                        attribute("nearest_mode", nearest)}),
                 {x, no, f32({4}, {1, 1, 1, 2})});
  };
  check_close(wide("floor"), {1, 1, 2, 2});
  check_close(wide("ceil"), {1, 2, 2, 2});
  check_close(wide("round_prefer_floor"), {1, 1, 2, 2});
  check_close(wide("round_prefer_ceil"), {1, 2, 2, 2});
}

TEST_CASE("resize linear at half pixels keeps the border", "[importer][rules]") {
  const Tensor x = f32({2}, {0, 4}), no = f32({0}, {});
  check_close(apply(known("Resize", 13, 1, {attribute("mode", "linear")}),
                    {x, no, f32({1}, {2})}),
              {0, 1, 3, 4});
}

TEST_CASE("resizing integers rounds, nearest keeps them", "[importer][rules]") {
  const Tensor no = f32({0}, {}), scales = f32({1}, {2});
  const Tensor linear = only(known("Resize", 13, 1, {attribute("mode", "linear")}),
                             {u8({2}, {0, 255}), no, scales});
  CHECK(values<uint8_t>(linear) == std::vector<uint8_t>{0, 64, 191, 255});
}

TEST_CASE("compress with a condition of run time takes the declared count",
          "[importer][rules]") {
  Operator op{"Compress", 11, {attribute("axis", int64_t{0})}};
  op.declared = {Shape{2}};
  const Tensor keep = tensor<uint8_t>(DType::Bool, {4}, {0, 1, 0, 1});
  check_close(apply(op, {f32({4}, counting(4)), keep}), {1, 3});
}

TEST_CASE("a declared count that the data breaks stops the run", "[importer][rules]") {
  Operator op{"Compress", 11, {attribute("axis", int64_t{0})}};
  op.declared = {Shape{2}};
  const Tensor three = tensor<uint8_t>(DType::Bool, {4}, {0, 1, 1, 1});
  CHECK(op.run({f32({4}, counting(4)), three}).results.empty());
  Operator slice{"Slice", 13};
  slice.declared = {Shape{2}};
  const Tensor x = f32({4}, counting(4));
  check_close(
      apply(slice, {x, i64({1}, {-1}), i64({1}, {-9}), i64({1}, {0}), i64({1}, {-2})}),
      {3, 1});
  CHECK(slice.run({x, i64({1}, {0}), i64({1}, {3})}).results.empty());
}

TEST_CASE("GridSample moves integers as they are", "[importer][rules]") {
  const auto mode = [](const char* name) {
    return known("GridSample", 20, 2, {attribute("mode", name)});
  };
  const Tensor grid = f32({1, 1, 3, 2}, {0.3F, 0.2F, -0.5F, -0.25F, 0.75F, 1.0F});
  const Tensor x = i32({1, 1, 2, 3}, {10, 20, -31, 41, 50, 67});
  CHECK(only(mode("nearest"), {x, grid}).bytes == i32({1, 1, 1, 3}, {50, 10, 0}).bytes);
  const int64_t large = (int64_t{1} << 60) + 1; // more than a float holds
  const Tensor one = i64({1, 1, 1, 1}, {large}), middle = f32({1, 1, 1, 2}, {0, 0});
  CHECK(only(mode("nearest"), {one, middle}).bytes == one.bytes);
  Operator linear = mode("linear");
  CHECK(linear.run({x, grid}).results.empty());
  CHECK(linear.failure.find("mode than nearest") != std::string::npos);
}
