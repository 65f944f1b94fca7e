// Resize of sizes that only the run knows: every mode against the same model packed with
// those sizes as constants, which tells the importer everything.
#include "importer/bounded/bounded.h"
#include "importer/formula/value_range.h"
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

using Attributes = std::vector<std::string>;

Tensor i64(const std::vector<int64_t>& values) {
  Tensor tensor{DType::I64, {std::ssize(values)}, {}};
  tensor.bytes.resize(values.size() * sizeof(int64_t));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<float> picture() {
  std::vector<float> x(2 * 8 * 9);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((i * 37) % 101) / 10 - 4;
  return x;
}

// Of x [1,2,8,9] the first n rows and columns, resized to m, at most 12 by 12. `n` and
// `m` are inputs, or constants where `fixed` holds them.
std::string resizing(
    const Attributes& attributes, const std::string& resize_inputs,
    const std::optional<std::pair<std::vector<int64_t>, std::vector<int64_t>>>& fixed) {
  std::vector<std::string> inputs{value("x", {1, 2, 8, 9})};
  std::vector<std::string> constants{
      ints("zero", {2}, {0, 0}),
      ints("axes", {2}, {2, 3}),
      ints("one", {}, {1}),
      ints("most", {}, {12}),
      ints("front", {2}, {1, 2}),
      floats("roi", {8}, {0, 0, 0.1F, -0.2F, 1, 1, 0.9F, 0.8F})};
  if (fixed) {
    constants.push_back(ints("n", {2}, fixed->first));
    constants.push_back(ints("m", {2}, fixed->second));
  } else {
    inputs.push_back(value("n", {2}, kI64));
    inputs.push_back(value("m", {2}, kI64));
  }
  const bool by_all = resize_inputs == "all axes";
  return model(
      {{node("Slice", {"x", "zero", "n", "axes"}, {"c"}),
        node("Clip", {"m", "one", "most"}, {"two"}),
        node("Concat", {"front", "two"}, {"four"}, {attribute("axis", int64_t{0})}),
        node("Resize", {"c", "roi", "", by_all ? "four" : "two"}, {"y"}, attributes)},
       inputs,
       {value("y", {"", "", "", ""})},
       constants},
      18);
}

// The elements that are meant, of a tensor with its extents.
std::vector<float> cut_out(const Tensor& y, const std::vector<int64_t>& extents) {
  const std::vector<float> all = floats_of(y);
  std::vector<float> out;
  REQUIRE(extents.size() == 4);
  for (int64_t a = 0; a < extents[0]; ++a)
    for (int64_t b = 0; b < extents[1]; ++b)
      for (int64_t c = 0; c < extents[2]; ++c)
        for (int64_t d = 0; d < extents[3]; ++d)
          out.push_back(all[static_cast<size_t>(
              ((a * y.shape[1] + b) * y.shape[2] + c) * y.shape[3] + d)]);
  return out;
}

std::vector<int64_t> ints_of(const Tensor& tensor) {
  std::vector<int64_t> values(tensor.bytes.size() / sizeof(int64_t));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

void check_sizes_of_run(const Attributes& attributes, const std::string& inputs) {
  const Imported open = imported(resizing(attributes, inputs, std::nullopt));
  REQUIRE(open.interface.extents.contains(0));
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> cases = {
      {{8, 9}, {12, 12}},
      {{5, 4}, {7, 3}},
      {{3, 9}, {1, 1}},
      {{1, 1}, {4, 5}},
      {{6, 7}, {2, 11}}};
  for (const auto& sizes : cases) {
    INFO("crop " << sizes.first[0] << "," << sizes.first[1] << " to " << sizes.second[0]
                 << "," << sizes.second[1]);
    const Imported fixed = imported(resizing(attributes, inputs, sizes));
    const Tensor x = f32({1, 2, 8, 9}, picture());
    const Tensor want = evaluate(*fixed.graph, {x}).outputs.at(0);
    const Evaluated got = evaluate(*open.graph, {x, i64(sizes.first), i64(sizes.second)});
    REQUIRE(got.failed == kNoNode);
    const std::vector<int64_t> extents =
        ints_of(got.outputs[open.interface.extents.at(0)]);
    REQUIRE(extents == want.shape);
    const std::vector<float> have = cut_out(got.outputs[0], extents),
                             wanted = floats_of(want);
    for (size_t i = 0; i < wanted.size(); ++i)
      REQUIRE(have[i] == Approx(wanted[i]).margin(1e-5));
  }
}

} // namespace

TEST_CASE("sizes of the run resize as known ones do", "[bounded]") {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinates :
         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
          "half_pixel_symmetric", "tf_crop_and_resize"}) {
      INFO(mode << " " << coordinates);
      check_sizes_of_run({text_attribute("mode", mode),
                          text_attribute("coordinate_transformation_mode", coordinates),
                          attribute("extrapolation_value", 9.0F)},
                         "all axes");
    }
  for (const char* nearest : {"floor", "ceil", "round_prefer_ceil"})
    check_sizes_of_run({text_attribute("nearest_mode", nearest)}, "all axes");
  check_sizes_of_run(
      {text_attribute("mode", "cubic"), attribute("exclude_outside", int64_t{1})},
      "all axes");
}

TEST_CASE("one scale for both axes bounds the sizes", "[bounded]") {
  for (const char* policy : {"not_larger", "not_smaller"})
    check_sizes_of_run({text_attribute("mode", "linear"), ints_attribute("axes", {2, 3}),
                        text_attribute("keep_aspect_ratio_policy", policy)},
                       "two axes");
}

TEST_CASE("a size without a bound is refused by its name", "[bounded]") {
  const auto bytes = [](const Attributes& attributes, const char* sizes) {
    return model({{node("Resize", {"x", "", "", sizes}, {"y"}, attributes)},
                  {value("x", {4}), value("m", {1}, kI64)},
                  {value("y", {""})},
                  {}},
                 18);
  };
  refused(bytes({}, "m"), Exit::Unsupported,
          "with a value of input 'm' it could be packed");
}

TEST_CASE("a float bounds a size", "[bounded]") {
  // The size is a clipped float: 3.7 is 3, and what is no number converts to 0.
  const std::string bytes =
      model({{node("Clip", {"f", "low", "high"}, {"g"}),
              node("Cast", {"g"}, {"size"}, {attribute("to", int64_t{kI64})}),
              node("Resize", {"x", "", "", "size"}, {"r"}),
              node("ReduceSum", {"r"}, {"y"}, {attribute("keepdims", int64_t{0})})},
             {value("x", {2}), value("f", {1})},
             {value("y", {})},
             {floats("low", {}, {1}), floats("high", {}, {6})}},
            18);
  const Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  const auto sum = [&](float size) {
    return evaluate(*result.graph, {f32({2}, {1, 10}), f32({1}, {size})});
  };
  CHECK(floats_of(sum(3.7F).outputs.at(0)) == std::vector<float>{12});
  CHECK(floats_of(sum(60).outputs.at(0)) == std::vector<float>{33});
  CHECK(floats_of(sum(std::nanf("")).outputs.at(0)) == std::vector<float>{0});
}

TEST_CASE("ranges know one side of a minimum and trust no float", "[bounded]") {
  Graph g;
  const Expr n{&g, g.add_input("n", DType::I64, {})},
      f{&g, g.add_input("f", DType::F32, {})};
  const auto kept = range_of(g, clamp(n, 2, 7).id);
  REQUIRE(kept);
  CHECK(kept->low == 2);
  CHECK(kept->high == 7);
  CHECK_FALSE(range_of(g, (maximum(n, 0) + 1.0).id)); // may wrap around
  const Expr cast = convert(clamp(f, 0, 5), DType::I64);
  CHECK_FALSE(range_of(g, cast.id));
  CHECK(range_of(g, cast.id, 0, Trust::Floats)->high == 5);
  CHECK(range_of(g, minimum(maximum(cast, 0), 3).id)->high == 3);
  // Of a large tensor, all elements at once.
  const Expr many{&g, g.add_input("many", DType::I64, {50, 40})};
  const Expr some = reshape(cut(cut(clamp(many, -1, 9), 0, 3, 1), 1, 5, 1), {});
  CHECK(range_of(g, reduce(Op::ReduceMax, clamp(many, -1, 9), {0, 1}).id)->high == 9);
  CHECK(range_of(g, some.id)->low == -1);
}

TEST_CASE("axes that shrink are resized first, and of others the innermost", "[import]") {
  auto first_step = [](const std::vector<int64_t>& sizes) {
    const Imported result = import(model({{node("Resize", {"x", "", "", "sizes"}, {"y"},
                                                {text_attribute("mode", "linear")})},
                                          {value("x", {1, 2, 8, 9})},
                                          {value("y", {1, 2, sizes[2], sizes[3]})},
                                          {ints("sizes", {4}, sizes)}},
                                         18));
    INFO(result.text());
    REQUIRE(result.graph);
    const Graph& g = *result.graph;
    for (NodeId n : g.live_nodes())
      if (g[n].op == Op::Mul && g[n].shape.size() == 4) return g[n].shape;
    return Shape{};
  };
  CHECK(first_step({1, 2, 16, 18}) == Shape{1, 2, 8, 18});
  CHECK(first_step({1, 2, 4, 18}) == Shape{1, 2, 4, 9});
  CHECK(first_step({1, 2, 16, 3}) == Shape{1, 2, 8, 3});
}
