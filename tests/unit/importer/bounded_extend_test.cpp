// Operators that make tensors of unknown size longer, write into them, or meet two of
// them, on values that can be counted by hand.
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

const std::vector<float> kMixed = {1, -1, 2, 0, -3, 4}; // positive: 1, 2, 4

// Of x [6] the positive elements are v [n], the non-negative ones w [m]; `nodes` make y.
std::string over_kept(const std::vector<std::string>& nodes,
                      std::vector<std::string> constants = {}, int64_t opset = 18) {
  std::vector<std::string> all{
      node("Greater", {"x", "zero"}, {"c"}), node("Compress", {"x", "c"}, {"v"}),
      node("GreaterOrEqual", {"x", "zero"}, {"d"}), node("Compress", {"x", "d"}, {"w"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  constants.push_back(floats("zero", {}, {0}));
  return model({all, {value("x", {6})}, {value("y", {""})}, constants}, opset);
}

// The meant elements of an output y of one axis; nothing where the run stops.
std::optional<std::vector<float>> kept(const std::string& bytes,
                                       const std::vector<float>& x = kMixed) {
  const Imported model = imported(bytes);
  const Evaluated run = evaluate(*model.graph, {f32({6}, x)});
  if (run.failed != kNoNode) return std::nullopt;
  std::vector<float> all = floats_of(run.outputs.at(0));
  if (!model.interface.extents.contains(0)) return all;
  const Tensor& extents = run.outputs[model.interface.extents.at(0)];
  REQUIRE(extents.shape == Shape{1});
  int64_t count = 0;
  std::memcpy(&count, extents.bytes.data(), sizeof count);
  REQUIRE(count <= std::ssize(all));
  all.resize(static_cast<size_t>(count));
  return all;
}

using Values = std::vector<float>;

} // namespace

TEST_CASE("padding begins behind what is meant", "[bounded]") {
  const auto padded = [](const char* mode, const std::vector<int64_t>& pads) {
    return kept(over_kept(
        {node("Pad", {"v", "pads", "fill"}, {"y"}, {text_attribute("mode", mode)})},
        {ints("pads", {2}, pads), floats("fill", {}, {9})}, 19));
  };
  CHECK(padded("constant", {1, 2}) == Values{9, 1, 2, 4, 9, 9});
  CHECK(padded("edge", {2, 1}) == Values{1, 1, 1, 2, 4, 4});
  CHECK(padded("reflect", {2, 2}) == Values{4, 2, 1, 2, 4, 2, 1});
  CHECK(padded("wrap", {1, 2}) == Values{4, 1, 2, 4, 1, 2});
  CHECK(padded("constant", {-1, 1}) == Values{2, 4, 9});
}

TEST_CASE("a tensor is padded up to a length", "[bounded]") {
  // 5 - n zeros behind v.
  const std::string bytes = over_kept(
      {node("Shape", {"v"}, {"n"}), node("Sub", {"five", "n"}, {"rest"}),
       node("Max", {"rest", "none"}, {"more"}),
       node("Concat", {"none", "more"}, {"pads"}, {attribute("axis", int64_t{0})}),
       node("Pad", {"v", "pads"}, {"y"})},
      {ints("five", {1}, {5}), ints("none", {1}, {0})});
  CHECK(kept(bytes) == Values{1, 2, 4, 0, 0});
  CHECK(kept(bytes, {1, 1, 1, 1, 1, 1}) == Values{1, 1, 1, 1, 1, 1});
}

TEST_CASE("tiles count anew after what is meant", "[bounded]") {
  CHECK(kept(over_kept({node("Tile", {"v", "two"}, {"y"})}, {ints("two", {1}, {2})})) ==
        Values{1, 2, 4, 1, 2, 4});
  // As often as there are positive elements.
  CHECK(kept(over_kept({node("Shape", {"v"}, {"n"}), node("Tile", {"pair", "n"}, {"y"})},
                       {floats("pair", {2}, {7, 8})})) == Values{7, 8, 7, 8, 7, 8});
}

TEST_CASE("what is not meant is scattered nowhere", "[bounded]") {
  // Places of the positive elements, then their values there.
  const std::vector<std::string> places = {
      node("NonZero", {"c"}, {"p2"}), node("Squeeze", {"p2", "front"}, {"p"}),
      node("ScatterElements", {"nine", "p", "v"}, {"y"})};
  const std::vector<std::string> constants = {ints("front", {1}, {0}),
                                              floats("nine", {6}, {9, 9, 9, 9, 9, 9})};
  CHECK(kept(over_kept(places, constants)) == Values{1, 9, 2, 9, 9, 4});
  CHECK(kept(over_kept(places, constants), {0, 0, 0, 0, 0, 0}) == Values(6, 9));
  // Into a bounded tensor from its end: w is 1, 2, 0, 4.
  CHECK(kept(over_kept({node("ScatterElements", {"w", "last", "one"}, {"y"})},
                       {ints("last", {1}, {-1}), floats("one", {1}, {5})})) ==
        Values{1, 2, 0, 5});
}

TEST_CASE("sizes found apart must be equal where operators meet", "[bounded]") {
  // v and w are equally long only where no element is 0.
  const std::string product =
      over_kept({node("Einsum", {"v", "w"}, {"s"}, {text_attribute("equation", "i,i->")}),
                 node("Unsqueeze", {"s", "front"}, {"y"})},
                {ints("front", {1}, {0})});
  CHECK(kept(product, {1, -1, 2, -1, -3, 4}) == Values{21});
  CHECK_FALSE(kept(product));
  const std::string rows = over_kept(
      {node("Unsqueeze", {"v", "front"}, {"a"}), node("Unsqueeze", {"w", "back"}, {"b"}),
       node("MatMul", {"a", "b"}, {"s"}), node("Squeeze", {"s", "front"}, {"y"})},
      {ints("front", {1}, {0}), ints("back", {1}, {1})});
  CHECK(kept(rows, {1, -1, 2, -1, -3, 4}) == Values{21});
  CHECK_FALSE(kept(rows));
  const std::string joined = over_kept(
      {node("Unsqueeze", {"v", "front"}, {"a"}), node("Unsqueeze", {"w", "front"}, {"b"}),
       node("Concat", {"a", "b"}, {"t"}, {attribute("axis", int64_t{0})}),
       node("ReduceSum", {"t", "front"}, {"y"}, {attribute("keepdims", int64_t{0})})},
      {ints("front", {1}, {0})});
  CHECK(kept(joined, {1, -1, 2, -1, -3, 4}) == Values{2, 4, 8});
  CHECK_FALSE(kept(joined));
}

TEST_CASE("an outer product has a size from each side", "[bounded]") {
  const std::string bytes = over_kept(
      {node("Einsum", {"v", "w"}, {"t"}, {text_attribute("equation", "i,j->ij")}),
       node("ReduceSum", {"t", "front"}, {"y"}, {attribute("keepdims", int64_t{0})})},
      {ints("front", {1}, {0})});
  CHECK(kept(bytes) == Values{7, 14, 0, 28});
}
