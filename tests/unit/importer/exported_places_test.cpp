// Places of windows and of resized elements as exporters write them, at their borders.
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

TEST_CASE("negative pads make a transposed convolution's result longer", "[import]") {
  // A kernel of two at a stride of three: one element behind the last that nothing
  // reaches.
  const std::string bytes =
      model({{node("ConvTranspose", {"x", "w", "b"}, {"y"},
                   {ints_attribute("strides", {3}), ints_attribute("pads", {-1, -2})})},
             {value("x", {1, 1, 2})},
             {value("y", {1, 1, 8})},
             {floats("w", {1, 1, 2}, {1, 10}), floats("b", {1}, {0.5F})}});
  CHECK(run(bytes, {2, 3}) ==
        std::vector<float>{0.5F, 2.5F, 20.5F, 0.5F, 3.5F, 30.5F, 0.5F, 0.5F});
}

TEST_CASE("a convolution has no negative pads", "[import]") {
  refused(model({{node("Conv", {"x", "w"}, {"y"}, {ints_attribute("pads", {-1, 0})})},
                 {value("x", {1, 1, 5})},
                 {value("y", {1, 1, 3})},
                 {floats("w", {1, 1, 2}, {1, 10})}}),
          Exit::InvalidModel, "attribute 'pads' has -1");
}

TEST_CASE("the nearest element is found in float", "[import]") {
  // (4 + 0.5) / (9 / 98) is 49; in double, with the scale a float, it is a hair less.
  const std::string bytes = model(
      {{node("Resize", {"x", "", "scales"}, {"y"},
             {text_attribute("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
              text_attribute("nearest_mode", "floor")})},
       {value("x", {1, 1, 98})},
       {value("y", {1, 1, 9})},
       {floats("scales", {3}, {1, 1, 0.09183673560619354F})}},
      11);
  std::vector<float> x(98);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  CHECK(run(bytes, x) == std::vector<float>{5, 16, 27, 38, 49, 59, 70, 81, 92});
}
