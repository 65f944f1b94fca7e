// Fields are one table: a word, and what reads it. What is left out follows from the
// shape of the input, so that "rgb" alone is a picture of the input's size with values
// from 0 to 1.
#include "importer/images/image_spec.h"

#include "compiler/support/nearest.h"
#include "importer/images/decode.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace svod::importer {

namespace {

using image::Filter;
using image::Fit;
using image::PixelFormat;
using Extent = ImageSpec::Extent;
using Number = ImageSpec::Number;

template <class T> struct Word {
  const char* word;
  T value;
};
constexpr Word<PixelFormat> kColors[] = {
    {"rgb", PixelFormat::Rgb}, {"bgr", PixelFormat::Bgr}, {"gray", PixelFormat::Gray}};
constexpr Word<Fit> kFits[] = {
    {"stretch", Fit::Stretch}, {"crop", Fit::Cover}, {"pad", Fit::Contain}};
constexpr Word<Filter> kFilters[] = {{"bilinear", Filter::Bilinear},
                                     {"bicubic", Filter::Bicubic},
                                     {"nearest", Filter::Nearest}};
constexpr Word<bool> kLayouts[] = {{"nchw", false}, {"nhwc", true}};
// What files are, in the order in which it is said.
constexpr Word<uint32_t> kFileFormats[] = {{"jpeg", image::kJpeg}, {"png", image::kPng},
                                           {"webp", image::kWebp}, {"bmp", image::kBmp},
                                           {"tiff", image::kTiff}, {"jp2", image::kJp2}};
// Scanners' and cameras' formats take as much code and memory as all the others.
constexpr uint32_t kUsualFormats =
    image::kJpeg | image::kPng | image::kWebp | image::kBmp;

// What a preset stands for; `resize` of imagenet follows from the input's size.
struct Preset {
  const char* word;
  const char* spec;
};
constexpr Preset kPresets[] = {
    {"imagenet", "rgb,scale=1/255,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"},
    {"yolo", "rgb,fit=pad,fill=114,scale=1/255"},
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text + at);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

template <class T, size_t N>
std::string words_of(const Word<T> (&table)[N], const char* between = ", ") {
  std::string out;
  for (const Word<T>& row : table)
    out += (out.empty() ? "" : between) + std::string(row.word);
  return out;
}

template <class T, size_t N>
std::string word_of(const Word<T> (&table)[N], const T& value) {
  return std::ranges::find(table, value, &Word<T>::value)->word;
}

// The reading of one spec; the first fault stays.
class Reader {
public:
  std::string fault;
  ImageSpec spec;

  void read_fields(const std::string& text);
  static bool is_field(const std::string& word) {
    return std::ranges::find(kFields, word, &Field::word) != std::end(kFields);
  }

private:
  using Read = void (Reader::*)(const std::string& value);
  struct Field {
    const char* word;
    Read read;
  };
  static const Field kFields[10];

  void fail(const std::string& what) {
    if (fault.empty()) fault = what;
  }
  template <class T, size_t N, class To>
  void choose(const Word<T> (&table)[N], const std::string& value, To& to) {
    const auto row = std::ranges::find(table, value, &Word<T>::word);
    if (row != std::end(table)) {
      to = row->value;
      return;
    }
    fail("'" + value + "' is none of " + words_of(table));
  }
  std::optional<double> plain(const std::string& text) {
    double out = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), out);
    constexpr double kMost = 1e9;
    if (error == std::errc() && end == text.data() + text.size() && out >= -kMost &&
        out <= kMost)
      return out;
    fail("'" + text + "' is no number");
    return std::nullopt;
  }
  int64_t side(const std::string& text) {
    const std::optional<double> value = plain(text);
    const bool good = value && *value >= 1 && *value <= image::kMostSide &&
                      text.find_first_not_of("0123456789") == text.npos;
    if (!good) fail("'" + text + "' is no size in pixels");
    return good ? static_cast<int64_t>(*value) : 0;
  }
  std::optional<Extent> extent(const std::string& value) {
    const size_t cross = value.find('x');
    if (cross == value.npos) {
      const int64_t one = side(value);
      return Extent{one, one, true};
    }
    const int64_t height = side(value.substr(0, cross));
    return Extent{height, side(value.substr(cross + 1)), false};
  }
  std::vector<Number> numbers(const std::string& value) {
    std::vector<Number> out;
    for (const std::string& part : split(value, '/'))
      if (const auto number = plain(part)) out.push_back({*number, part});
    return out;
  }

  void read_resize(const std::string& value) { spec.resize = extent(value); }
  void read_crop(const std::string& value) { spec.crop = extent(value); }
  void read_fit(const std::string& value) { choose(kFits, value, spec.fit); }
  void read_filter(const std::string& value) { choose(kFilters, value, spec.filter); }
  void read_layout(const std::string& value) {
    choose(kLayouts, value, spec.channels_last);
  }
  void read_fill(const std::string& value) {
    const auto number = plain(value);
    if (number && (*number < 0 || *number > 255 || *number != static_cast<int>(*number)))
      fail("fill is a byte, 0 to 255");
    if (number && fault.empty()) spec.fill = static_cast<int64_t>(*number);
  }
  void read_scale(const std::string& value) {
    const std::vector<Number> parts = numbers(value);
    if (parts.empty() || parts.size() > 2 || parts.back().value == 0)
      return fail("scale is a number, or a fraction as 1/255");
    const double below = parts.size() == 2 ? parts[1].value : 1;
    spec.scale = Number{parts[0].value / below, value};
  }
  void read_mean(const std::string& value) { spec.mean = numbers(value); }
  void read_std(const std::string& value) {
    spec.deviation = numbers(value);
    for (const Number& number : spec.deviation)
      if (number.value == 0) fail("std is divided by, and must not be 0");
  }
  void read_formats(const std::string& value) {
    uint32_t all = 0;
    for (const std::string& part : split(value, '/')) {
      uint32_t one = 0;
      choose(kFileFormats, part == "jpg" ? "jpeg" : part == "tif" ? "tiff" : part, one);
      all |= one;
    }
    spec.formats = all;
  }
  void read_bare(const std::string& word);
};

const Reader::Field Reader::kFields[10] = {
    {"resize", &Reader::read_resize}, {"crop", &Reader::read_crop},
    {"fit", &Reader::read_fit},       {"fill", &Reader::read_fill},
    {"filter", &Reader::read_filter}, {"scale", &Reader::read_scale},
    {"mean", &Reader::read_mean},     {"std", &Reader::read_std},
    {"layout", &Reader::read_layout}, {"formats", &Reader::read_formats},
};

void Reader::read_bare(const std::string& word) {
  const auto preset = std::ranges::find(kPresets, word, &Preset::word);
  if (preset != std::end(kPresets)) {
    spec.is_imagenet = word == "imagenet";
    return read_fields(preset->spec);
  }
  const auto color = std::ranges::find(kColors, word, &Word<PixelFormat>::word);
  if (color != std::end(kColors)) {
    spec.color = color->value;
    return;
  }
  std::vector<std::string_view> known;
  for (const auto& row : kColors) known.emplace_back(row.word);
  for (const auto& row : kPresets) known.emplace_back(row.word);
  for (const auto& row : kFields) known.emplace_back(row.word);
  fail("'" + word + "' is unknown" + nearest_text(word, known));
}

void Reader::read_fields(const std::string& text) {
  for (const std::string& field : split(text, ',')) {
    const size_t equals = field.find('=');
    const std::string word = field.substr(0, equals);
    const auto row = std::ranges::find(kFields, word, &Field::word);
    if (equals == field.npos || row == std::end(kFields))
      read_bare(word);
    else
      (this->*row->read)(field.substr(equals + 1));
  }
}

bool is_bare_word(const std::string& word) {
  return std::ranges::any_of(kColors,
                             [&](const auto& row) { return word == row.word; }) ||
         std::ranges::any_of(kPresets, [&](const auto& row) { return word == row.word; });
}

// NAME= is there unless what stands before the first = is a field.
size_t name_end(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return text.npos;
  const std::string before = text.substr(0, equals);
  if (before.find(',') != before.npos) return text.npos;
  const std::string behind = text.substr(equals + 1);
  const bool means_field =
      Reader::is_field(before) && !is_bare_word(behind.substr(0, behind.find(',')));
  return means_field ? text.npos : equals;
}

// The axes of one picture; -1: there is none.
struct Axes {
  int64_t channels = 1, height = 0, width = 0;
  bool channels_last = false;
};

bool is_channels(int64_t extent) { return extent == 1 || extent == 3; }

std::optional<Axes> axes_of(Shape shape, std::optional<bool> last) {
  while (shape.size() > 3 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() == 2) return Axes{1, shape[0], shape[1], false};
  if (shape.size() != 3) return std::nullopt;
  if (!last.value_or(false) && is_channels(shape[0]))
    return Axes{shape[0], shape[1], shape[2], false};
  if (last.value_or(true) && is_channels(shape[2]))
    return Axes{shape[2], shape[0], shape[1], true};
  return std::nullopt;
}

std::string by(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

// What makes the recipe, or a fault.
std::string set_recipe(const ImageSpec& spec, const Axes& axes, image::Recipe& recipe) {
  recipe.height = static_cast<int32_t>(axes.height);
  recipe.width = static_cast<int32_t>(axes.width);
  recipe.filter = spec.filter.value_or(Filter::Bilinear);
  recipe.fill = 0;
  const std::string size = by(axes.height, axes.width);
  if (spec.crop && (spec.crop->height != axes.height || spec.crop->width != axes.width))
    return "crop makes " + by(spec.crop->height, spec.crop->width) +
           ", and the input takes crop=" + size;
  std::optional<Extent> resize = spec.resize;
  if (spec.fit) {
    if (spec.crop || (resize && resize->is_one))
      return "fit says how a picture of other proportions becomes " + size +
             "; leave out resize and crop";
    if (resize && (resize->height != axes.height || resize->width != axes.width))
      return "resize makes " + by(resize->height, resize->width) +
             ", and the input takes resize=" + size;
    recipe.fit = *spec.fit;
    recipe.box_height = recipe.height, recipe.box_width = recipe.width;
    if (spec.fill && recipe.fit != Fit::Contain)
      return "fill is the color of the bars of fit=pad";
    if (recipe.fit == Fit::Contain)
      recipe.fill = static_cast<int32_t>(spec.fill.value_or(0));
    return "";
  }
  if (spec.fill) return "fill is the color of the bars of fit=pad";
  if (spec.is_imagenet && !resize) {
    // 256 for 224: a crop is seven eighths.
    const int64_t side = std::max(axes.height, axes.width);
    resize = Extent{(side * 8 + 3) / 7, 0, true};
  }
  if (!resize) {
    recipe.fit = spec.crop ? Fit::Keep : Fit::Stretch;
    recipe.box_height = recipe.height, recipe.box_width = recipe.width;
    return "";
  }
  if (resize->is_one) resize->width = resize->height;
  if (resize->height < axes.height || resize->width < axes.width)
    return "resize makes less than the " + size + " that the input takes";
  if (!resize->is_one && !spec.crop &&
      (resize->height != axes.height || resize->width != axes.width))
    return "resize makes " + by(resize->height, resize->width) +
           ", and the input takes " + size + "; cut it with crop=" + size;
  recipe.fit = resize->is_one ? Fit::Shorter : Fit::Stretch;
  recipe.box_height = static_cast<int32_t>(resize->height);
  recipe.box_width = static_cast<int32_t>(resize->width);
  return "";
}

// What makes numbers of pixels, or a fault.
std::string set_numbers(const ImageSpec& spec, DType dtype, Picture& picture) {
  const bool has_numbers = spec.scale || !spec.mean.empty() || !spec.deviation.empty();
  if (dtype == DType::U8)
    return has_numbers ? "it takes bytes as they are; leave out scale, mean and std" : "";
  const auto channels = static_cast<size_t>(picture.channels());
  for (const auto& [list, word] :
       {std::pair(&spec.mean, "mean"), std::pair(&spec.deviation, "std")})
    if (list->size() > 1 && list->size() != channels)
      return std::string(word) + " has " + std::to_string(list->size()) +
             " numbers, and the picture has " + std::to_string(channels) + " channels";
  const auto of = [](const std::vector<Number>& list, size_t i, double otherwise) {
    return list.empty() ? otherwise : list[std::min(i, list.size() - 1)].value;
  };
  constexpr double kWhite = 255;
  const double scale = spec.scale ? spec.scale->value : 1 / kWhite;
  for (size_t i = 0; i < channels; i++) {
    const double deviation = of(spec.deviation, i, 1);
    picture.factors.push_back(scale / deviation);
    picture.offsets.push_back(-of(spec.mean, i, 0) / deviation);
  }
  return "";
}

std::string text_of(const std::vector<Number>& list) {
  std::string out;
  for (const Number& number : list) out += (out.empty() ? "" : "/") + number.text;
  return out;
}

std::string text_of(const ImageSpec& spec, const Picture& picture) {
  const image::Recipe& recipe = picture.recipe;
  std::string out = word_of(kColors, picture.format);
  if (recipe.fit == Fit::Shorter)
    out += ",resize=" + std::to_string(recipe.box_height);
  else if (recipe.fit != Fit::Keep)
    out += ",resize=" + by(recipe.box_height, recipe.box_width);
  if (recipe.fit == Fit::Cover || recipe.fit == Fit::Contain)
    out += ",fit=" + word_of(kFits, recipe.fit);
  if (recipe.fit == Fit::Contain) out += ",fill=" + std::to_string(recipe.fill);
  const bool crops = recipe.box_height != recipe.height ||
                     recipe.box_width != recipe.width || recipe.fit == Fit::Shorter ||
                     recipe.fit == Fit::Keep;
  if (crops) out += ",crop=" + by(recipe.height, recipe.width);
  out += ",filter=" + word_of(kFilters, recipe.filter);
  if (!picture.factors.empty())
    out += ",scale=" + (spec.scale ? spec.scale->text : std::string("1/255"));
  if (!spec.mean.empty()) out += ",mean=" + text_of(spec.mean);
  if (!spec.deviation.empty()) out += ",std=" + text_of(spec.deviation);
  out += ",layout=" + word_of(kLayouts, picture.channels_last);
  return out + ",formats=" + format_names(picture.formats, "/");
}

} // namespace

std::string format_names(uint32_t formats, const char* between) {
  std::string out;
  for (const auto& [word, bit] : kFileFormats)
    if ((formats & bit) != 0) out += (out.empty() ? "" : between) + std::string(word);
  return out;
}

std::variant<ImageSpec, std::string> parse_image_spec(const std::string& text) {
  Reader reader;
  const size_t name = name_end(text);
  reader.read_fields(name == text.npos ? text : text.substr(name + 1));
  if (name != text.npos) reader.spec.input = text.substr(0, name);
  if (!reader.fault.empty()) return reader.fault;
  return reader.spec;
}

bool may_be_picture(const Shape& shape) {
  const std::optional<Axes> axes = axes_of(shape, std::nullopt);
  return axes && shape.size() >= 3 && axes->height > 1 && axes->width > 1;
}

std::variant<Picture, std::string> fit_image_spec(const ImageSpec& spec, DType dtype,
                                                  const Shape& shape) {
  if (dtype != DType::U8 && !is_float(dtype))
    return "pictures are for inputs of floats, and of bytes (u8)";
  const std::optional<Axes> axes = axes_of(shape, spec.channels_last);
  if (!axes) {
    if (shape.size() == 4 && shape[0] != 1)
      return "it takes several pictures at once; pack for one with --shape, whose first "
             "number is 1";
    return spec.channels_last
               ? "its axes are not those of layout=" +
                     word_of(kLayouts, *spec.channels_last) + ", with 1 or 3 channels"
               : "it has no axis of 1 or 3 channels in front of height and width or "
                 "behind them, so it is no picture";
  }
  if (axes->height < 1 || axes->width < 1 || axes->height > image::kMostSide ||
      axes->width > image::kMostSide)
    return "a picture is at most " + std::to_string(image::kMostSide) +
           " pixels high and wide";
  Picture picture;
  picture.format =
      spec.color.value_or(axes->channels == 1 ? PixelFormat::Gray : PixelFormat::Rgb);
  if (picture.channels() != axes->channels)
    return axes->channels == 1 ? "it has one channel; write gray"
                               : "it has three channels; write rgb or bgr";
  picture.channels_last = axes->channels_last;
  picture.formats = spec.formats.value_or(kUsualFormats);
  if (std::string fault = set_recipe(spec, *axes, picture.recipe); !fault.empty())
    return fault;
  if (std::string fault = set_numbers(spec, dtype, picture); !fault.empty()) return fault;
  picture.text = text_of(spec, picture);
  return picture;
}

} // namespace svod::importer
