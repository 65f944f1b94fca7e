// Windows that move along an axis whose size only the run knows: the same values and
// sizes as the operator gives for a tensor that has this size when packing.
#include "tests/support/bounded_model.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace svod;
using namespace svod::import_test;

TEST_CASE("a convolution ends where the run's tensor does", "[bounded]") {
  const std::vector<std::string> weights{tensor_of("w", {2, 1, 3})};
  for (int64_t stride : {1, 2, 3})
    for (int64_t dilation : {1, 2})
      for (const auto& pads : std::vector<std::vector<int64_t>>{{0, 0}, {1, 1}, {2, 3}})
        check_same(
            node("Conv", {"v", "w"}, {"y"},
                 {ints_attribute("strides", {stride}),
                  ints_attribute("dilations", {dilation}), ints_attribute("pads", pads)}),
            weights);
  check_same(node("Conv", {"v", "w"}, {"y"}, {text_attribute("auto_pad", "SAME_UPPER")}),
             weights);
}

TEST_CASE("a transposed convolution grows with the run's tensor", "[bounded]") {
  const std::vector<std::string> weights{tensor_of("w", {1, 2, 4})};
  for (int64_t stride : {1, 2, 3})
    for (const auto& pads : std::vector<std::vector<int64_t>>{{0, 0}, {1, 1}, {1, 2}})
      for (int64_t more : {int64_t{0}, stride - 1})
        check_same(
            node("ConvTranspose", {"v", "w"}, {"y"},
                 {ints_attribute("strides", {stride}), ints_attribute("pads", pads),
                  ints_attribute("output_padding", {more})}),
            weights);
}

TEST_CASE("a pooling takes its maximum of what is meant", "[bounded]") {
  const std::vector<int64_t> three{3}, two{2}, ones{1, 1};
  check_same(node("MaxPool", {"v"}, {"y"},
                  {ints_attribute("kernel_shape", three), ints_attribute("pads", ones)}));
  check_same(
      node("MaxPool", {"v"}, {"y"},
           {ints_attribute("kernel_shape", three), ints_attribute("strides", two)}));
}

TEST_CASE("a last window begins within what is meant", "[bounded]") {
  for (const char* pool : {"MaxPool", "AveragePool"})
    for (int64_t kernel : {1, 2, 3, 4})
      for (int64_t stride : {2, 3, 4})
        check_same(node(pool, {"v"}, {"y"},
                        {ints_attribute("kernel_shape", {kernel}),
                         ints_attribute("strides", {stride}),
                         attribute("ceil_mode", int64_t{1})}));
}

TEST_CASE("an average counts what is meant", "[bounded]") {
  for (int64_t padding : {0, 1})
    for (int64_t stride : {1, 2})
      check_close(
          {node("AveragePool", {"v"}, {"y"},
                {ints_attribute("kernel_shape", {3}), ints_attribute("pads", {1, 1}),
                 ints_attribute("strides", {stride}),
                 attribute("count_include_pad", padding)})});
  check_close(
      {node("LpPool", {"v"}, {"y"},
            {ints_attribute("kernel_shape", {2}), ints_attribute("strides", {2})})});
}

TEST_CASE("bytes are convolved with zero points behind what is meant", "[bounded]") {
  const std::vector<std::string> nodes{
      node("DynamicQuantizeLinear", {"v"}, {"q", "scale", "zero_point"}),
      node("ConvInteger", {"q", "bytes", "zero_point"}, {"whole"},
           {ints_attribute("pads", {1, 2}), ints_attribute("strides", {2})}),
      node("Cast", {"whole"}, {"y"}, {attribute("to", int64_t{kF32})})};
  const std::vector<std::string> constants{
      tensor("bytes", kI8, {2, 1, 3}, data(9, std::string("\x05\xfd\x02\x07\x01\xf8")))};
  CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
}

TEST_CASE("a fused convolution adds what has the sizes of its result", "[bounded]") {
  const std::string plain =
      node("Conv", {"v", "w"}, {"z"}, {ints_attribute("pads", {1, 1})});
  const std::vector<std::string> nodes{
      plain, node("FusedConv", {"v", "w", "", "z"}, {"y"},
                  {ints_attribute("pads", {1, 1}), text_attribute("activation", "Relu")},
                  "com.microsoft")};
  const std::vector<std::string> constants{tensor_of("w", {2, 1, 3})};
  CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
}

TEST_CASE("fused products know which axis is summed", "[bounded]") {
  // Over the places of the run, then over what that gave.
  const auto product = [](const char* a, const char* b, const char* y,
                          const char* turned) {
    return node("FusedMatMul", {a, b}, {y}, {attribute(turned, int64_t{1})},
                "com.microsoft");
  };
  const std::vector<std::string> nodes{node("Mul", {"v", "w"}, {"wide"}),
                                       product("wide", "wide", "gram", "transB"),
                                       product("gram", "wide", "y", "transA")};
  const std::vector<std::string> constants{tensor_of("w", {1, 5, 1})};
  CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
}

TEST_CASE("rows of bytes are multiplied however many there are", "[bounded]") {
  const std::vector<std::string> nodes{
      node("Mul", {"v", "w"}, {"wide"}),
      node("Transpose", {"wide"}, {"rows"}, {ints_attribute("perm", {0, 2, 1})}),
      node("DynamicQuantizeLinear", {"rows"}, {"q", "scale", "zero_point"}),
      node("MatMulInteger", {"q", "bytes", "zero_point"}, {"whole"}),
      node("Cast", {"whole"}, {"wide_y"}, {attribute("to", int64_t{kF32})}),
      node("Transpose", {"wide_y"}, {"y"}, {ints_attribute("perm", {0, 2, 1})})};
  const std::vector<std::string> constants{
      tensor_of("w", {1, 3, 1}),
      tensor("bytes", kI8, {3, 2}, data(9, std::string("\x05\xfd\x02\x07\x01\xf8")))};
  CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
}

TEST_CASE("rows are normalised however many there are", "[bounded]") {
  const std::vector<std::string> nodes{
      node("Mul", {"v", "w"}, {"wide"}),
      node("Transpose", {"wide"}, {"rows"}, {ints_attribute("perm", {0, 2, 1})}),
      node("LayerNormalization", {"rows", "scale"}, {"normal"}),
      node("Transpose", {"normal"}, {"y"}, {ints_attribute("perm", {0, 2, 1})})};
  const std::vector<std::string> constants{tensor_of("w", {1, 5, 1}),
                                           tensor_of("scale", {5})};
  CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
}

TEST_CASE("where padding follows from the size, a bounded one is refused", "[bounded]") {
  const auto refuse = [](const std::string& made) {
    refused(import_test::model({{node("Greater", {"x", "zero"}, {"c"}),
                                 node("Compress", {"x", "c"}, {"kept"}),
                                 node("Unsqueeze", {"kept", "front"}, {"v"}), made},
                                {value("x", {12})},
                                {value("y", {""})},
                                {floats("zero", {}, {0}), ints("front", {2}, {0, 1}),
                                 tensor_of("w", {1, 1, 3})}},
                               17),
            Exit::Unsupported, "depends on data, which is not supported");
  };
  const std::vector<int64_t> two{2}, three{3}, size{20};
  for (const std::string& made :
       {node("Conv", {"v", "w"}, {"y"},
             {text_attribute("auto_pad", "SAME_UPPER"), ints_attribute("strides", two)}),
        node("ConvTranspose", {"v", "w"}, {"y"}, {ints_attribute("output_shape", size)}),
        node("AveragePool", {"v"}, {"y"},
             {ints_attribute("kernel_shape", three), attribute("ceil_mode", int64_t{1}),
              attribute("count_include_pad", int64_t{1})})})
    refuse(made);
}

TEST_CASE("as many random numbers as the run's tensor has", "[bounded]") {
  const Result drawn = of_bounded({node("RandomNormalLike", {"v"}, {"y"})}, {});
  CHECK(drawn.shape == Shape{1, 1, 8});
}

TEST_CASE("a bounded tensor is turned round along a known axis", "[bounded]") {
  // As exporters write it: from the last element back to one before all.
  for (int64_t before : {std::numeric_limits<int64_t>::min(), int64_t{-6}}) {
    const std::vector<std::string> nodes{
        node("Mul", {"v", "w"}, {"wide"}),
        node("Slice", {"wide", "back", "before", "one", "back"}, {"y"})};
    const std::vector<std::string> constants{
        tensor_of("w", {1, 5, 1}), ints("back", {1}, {-1}), ints("before", {1}, {before}),
        ints("one", {1}, {1})};
    CHECK(of_bounded(nodes, constants) == of_known(nodes, constants));
  }
}
