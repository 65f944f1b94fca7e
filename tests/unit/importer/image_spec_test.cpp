// What --image means for an input: its fields, what is left out, and the spec that is
// shown. What does not fit is in tests/e2e/pictures.py.
#include "importer/images/image_spec.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::importer;

namespace {

ImageSpec parsed(const std::string& text) {
  const auto spec = parse_image_spec(text);
  INFO(text);
  REQUIRE(std::holds_alternative<ImageSpec>(spec));
  return std::get<ImageSpec>(spec);
}

std::string shown(const std::string& text, const Shape& shape, DType dtype = DType::F32) {
  const auto picture = fit_image_spec(parsed(text), dtype, shape);
  const std::string* fault = std::get_if<std::string>(&picture);
  return fault ? "fault: " + *fault : std::get<Picture>(picture).text;
}

constexpr const char* kUsual = ",formats=jpeg/png/webp/bmp";

} // namespace

TEST_CASE("a picture is as large as the input unless something else is said",
          "[images]") {
  const std::string tail = kUsual;
  CHECK(shown("rgb", {1, 3, 20, 30}) ==
        "rgb,resize=20x30,filter=bilinear,scale=1/255,layout=nchw" + tail);
  CHECK(shown("gray", {28, 28}) ==
        "gray,resize=28x28,filter=bilinear,scale=1/255,layout=nchw" + tail);
  CHECK(shown("bgr,filter=bicubic", {1, 20, 30, 3}, DType::U8) ==
        "bgr,resize=20x30,filter=bicubic,layout=nhwc" + tail);
  CHECK(shown("rgb,resize=40,crop=32,scale=2,mean=1,std=3", {3, 32, 32}) ==
        "rgb,resize=40,crop=32x32,filter=bilinear,scale=2,mean=1,std=3,layout=nchw" +
            tail);
  CHECK(shown("rgb,crop=20x30,formats=jpg/tif", {3, 20, 30}, DType::F16) ==
        "rgb,crop=20x30,filter=bilinear,scale=1/255,layout=nchw,formats=jpeg/tiff");
  // Channels lie where the sizes do not say it.
  CHECK(shown("rgb,layout=nhwc", {1, 3, 5, 3}).find("resize=3x5") != std::string::npos);
  CHECK(shown("rgb", {1, 3, 5, 3}).find("resize=5x3") != std::string::npos);
}

TEST_CASE("presets stand for fields that may be said again", "[images]") {
  CHECK(shown("imagenet", {1, 3, 224, 224}).starts_with("rgb,resize=256,crop=224x224,"));
  CHECK(shown("imagenet", {1, 3, 299, 299}).starts_with("rgb,resize=342,crop=299x299,"));
  CHECK(shown("imagenet,resize=232,filter=bicubic", {1, 3, 224, 224})
            .starts_with("rgb,resize=232,crop=224x224,filter=bicubic,"));
  CHECK(shown("yolo", {1, 3, 640, 640})
            .starts_with("rgb,resize=640x640,fit=pad,fill=114,filter=bilinear"));
}

TEST_CASE("a spec's name is what stands before it", "[images]") {
  CHECK(parsed("rgb").input.empty());
  CHECK(parsed("resize=8,rgb").input.empty());
  CHECK(parsed("input=rgb,resize=8").input == "input");
  CHECK(parsed("mean=rgb").input == "mean");
  CHECK(parsed("serving_default_x:0=imagenet").input == "serving_default_x:0");
}

TEST_CASE("numbers of a picture are factors and offsets", "[images]") {
  const auto picture =
      fit_image_spec(parsed("rgb,scale=1/2,mean=1/2/3,std=4"), DType::F32, {1, 3, 8, 8});
  CHECK(std::get<Picture>(picture).factors == std::vector<double>{0.125, 0.125, 0.125});
  CHECK(std::get<Picture>(picture).offsets == std::vector<double>{-0.25, -0.5, -0.75});
}

TEST_CASE("what may be a picture has its channels first or last", "[images]") {
  CHECK(may_be_picture({1, 3, 224, 224}));
  CHECK(may_be_picture({224, 224, 3}));
  CHECK(may_be_picture({1, 1, 28, 28}));
  CHECK_FALSE(may_be_picture({2, 3, 224, 224}));
  CHECK_FALSE(may_be_picture({1, 4, 224, 224}));
  CHECK_FALSE(may_be_picture({1, 10}));
  CHECK_FALSE(may_be_picture({1, 3, 1, 128}));
}
