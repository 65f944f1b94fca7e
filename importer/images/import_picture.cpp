// A picture becomes pixels in one call: what decodes and resamples is text that is
// compiled with the kernels, as the decoders of ImageDecoder are. What makes numbers of
// the pixels are nodes as others, which become part of the kernel that reads them.
#include "importer/images/import_picture.h"

#include "importer/formula/expression.h"
#include "importer/images/decoders_text.h"
#include "importer/images/prepare.h"
#include "runtime_stub/status.h"

#include <algorithm>

namespace svod::importer {

namespace {

// Tensors: the bytes, how many they are, the pixels, and the memory to work in.
std::string prepare_text(const Picture& picture, const PictureBound& bound,
                         int64_t memory) {
  const auto number = [](auto value) {
    return std::to_string(static_cast<int64_t>(value));
  };
  const image::Recipe& recipe = picture.recipe;
  return preparation_text() +
         "}\nstatic __INT32_TYPE__ svod_call(void* const* tensors) {\n" +
         "  constexpr svod::image::Recipe recipe{" + number(recipe.height) + ", " +
         number(recipe.width) + ", static_cast<svod::image::Fit>(" + number(recipe.fit) +
         "), " + number(recipe.box_height) + ", " + number(recipe.box_width) +
         ", static_cast<svod::image::Filter>(" + number(recipe.filter) + "), " +
         number(recipe.fill) + "};\n" +
         "  const int64_t given = *static_cast<const int64_t*>(tensors[1]);\n" +
         "  constexpr int64_t most = " + number(bound.file_bytes()) + ";\n" +
         "  const auto how = svod::image::prepare_picture<" + number(picture.formats) +
         ">(static_cast<const uint8_t*>(tensors[0]),\n" +
         "      static_cast<size_t>(given < 0 ? 0 : given < most ? given : most),\n" +
         "      static_cast<svod::image::PixelFormat>(" + number(picture.format) +
         "), {" + number(bound.height) + ", " + number(bound.width) +
         "}, recipe, static_cast<uint8_t*>(tensors[3]), " + number(memory) +
         ", static_cast<uint8_t*>(tensors[2]));\n" +
         "  if (how == svod::image::Prepared::NoPicture) return " +
         number(SVOD_BAD_ARGUMENT) + ";\n" +
         "  return how == svod::image::Prepared::Done ? 0 : " + number(SVOD_LIMIT) +
         ";\n}\n";
}

// One number, or one for each channel along the last axis.
Expr of_channels(Graph& g, const std::vector<double>& values) {
  const auto channels = static_cast<int64_t>(values.size());
  if (std::ranges::count(values, values.front()) == channels)
    return {&g, constant(g, DType::F32, {1, 1, 1}, values.front())};
  std::vector<float> floats;
  for (double value : values) floats.push_back(static_cast<float>(value));
  return {&g, tensor_f32(g, {1, 1, channels}, floats)};
}

} // namespace

NodeId prepared_picture(Graph& g, const Picture& picture, DType dtype, const Shape& shape,
                        NodeId bytes, NodeId count, const PictureBound& bound) {
  // So much is a buffer of its own, whose front the program finds.
  constexpr int64_t kLeast = int64_t{2} << 20;
  const image::MostPixels most{static_cast<int32_t>(bound.height),
                               static_cast<int32_t>(bound.width)};
  const int64_t memory =
      std::max(kLeast, image::prepare_bytes(most, picture.formats, picture.recipe));
  const std::string text = prepare_text(picture, bound, memory);
  const auto text_bytes = std::as_bytes(std::span(text.data(), text.size()));
  const int64_t function =
      g.add_blob(std::vector<std::byte>(text_bytes.begin(), text_bytes.end()));
  const Shape pixels{picture.recipe.height, picture.recipe.width, picture.channels()};
  Expr x{&g, rebuild(g, {Op::Call,
                         DType::U8,
                         pixels,
                         {function, 0, element_count(pixels), memory},
                         {bytes, count}})};
  const auto is = [](const std::vector<double>& values, double value) {
    return std::ranges::count(values, value) == std::ssize(values);
  };
  if (dtype != DType::U8) x = convert(x, DType::F32);
  if (!is(picture.factors, 1)) x = x * of_channels(g, picture.factors);
  if (!is(picture.offsets, 0)) x = x + of_channels(g, picture.offsets);
  if (!picture.channels_last) x = permute(x, {2, 0, 1});
  return reshape(convert(x, dtype), shape).id;
}

} // namespace svod::importer
