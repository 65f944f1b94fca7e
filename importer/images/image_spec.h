// What --image says of an input that is a picture file, and what that means for the
// input's shape and type.
//
//   [NAME=]rgb|bgr|gray|imagenet|yolo[,resize=N|HxW][,crop=N|HxW][,fit=stretch|crop|pad]
//   [,fill=N][,filter=bilinear|bicubic|nearest][,scale=1/255][,mean=A/B/C][,std=A/B/C]
//   [,layout=nchw|nhwc][,formats=jpeg/png/...]
#pragma once

#include "compiler/ir/graph.h"
#include "importer/images/recipe.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace svod::importer {

// As it is written. Numbers keep their text, which is what is shown of them.
struct ImageSpec {
  struct Extent {
    int64_t height = 0, width = 0;
    bool is_one = false; // one number
  };
  struct Number {
    double value = 0;
    std::string text;
  };
  std::string input; // empty: the only one that may be a picture
  std::optional<image::PixelFormat> color;
  bool is_imagenet = false;
  std::optional<Extent> resize, crop;
  std::optional<image::Fit> fit; // Stretch, Cover, Contain
  std::optional<int64_t> fill;
  std::optional<image::Filter> filter;
  std::optional<Number> scale;
  std::vector<Number> mean, deviation;
  std::optional<bool> channels_last;
  std::optional<uint32_t> formats;
};

// Of any picture, as height times width: what addresses of its memory count with.
inline constexpr int64_t kMostPicturePixels = int64_t{1} << 26;

// The spec, or what is wrong with it.
std::variant<ImageSpec, std::string> parse_image_spec(const std::string& text);

// A picture for one input: what its bytes become.
struct Picture {
  image::PixelFormat format = image::PixelFormat::Rgb;
  image::Recipe recipe{};
  uint32_t formats = 0; // bits of image::FileFormat (decode.h)
  bool channels_last = false;
  // Pixels become pixel * factor + offset, for each channel; empty: they are bytes.
  std::vector<double> factors, offsets;
  std::string text; // all of it, as a spec without defaults

  int64_t channels() const { return format == image::PixelFormat::Gray ? 1 : 3; }
};

// Whether an input of this shape may be one picture: axes of 1, then channels before or
// behind height and width, or these alone.
bool may_be_picture(const Shape& shape);

// The spec for an input of this type and shape, or why it does not fit, in words that
// follow "input 'x' f32[1,3,224,224]: ".
std::variant<Picture, std::string> fit_image_spec(const ImageSpec& spec, DType dtype,
                                                  const Shape& shape);

// "jpeg, png"
std::string format_names(uint32_t formats, const char* between);

} // namespace svod::importer
