// ImageDecoder, and DecodeImage of the extensions. The decoders of importer/image are a
// call, as an operator of the user's own is one (importer/driver/custom_call.h): their
// text is compiled with the kernels, so only models with the operator carry them. A
// picture's size depends on its bytes: the output is as large as the model declares, or
// is bounded
// (--limit-image) and followed by its size. A stream that is known when packing is
// decoded here, by the same code.
#include "importer/bounded/bounded.h"
#include "importer/images/decode.h"
#include "importer/images/decoders_text.h"
#include "importer/images/image_spec.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <array>

namespace svod::importer {

namespace {

using image::PixelFormat;

constexpr std::pair<std::string_view, PixelFormat> kFormats[] = {
    {"RGB", PixelFormat::Rgb},
    {"BGR", PixelFormat::Bgr},
    {"Grayscale", PixelFormat::Gray}};

struct Frame {
  PixelFormat format;
  int64_t height, width, channels;
  bool exact; // the model declares the size
};

Frame read_frame(NodeImport& node, const std::string& name) {
  const auto format =
      std::ranges::find(kFormats, name, &std::pair<std::string_view, PixelFormat>::first);
  require(node, format != std::end(kFormats),
          "pixel_format is none of RGB, BGR, Grayscale");
  const int64_t channels = format->second == PixelFormat::Gray ? 1 : 3;
  Frame frame{format->second, node.image_height, node.image_width, channels, false};
  if (const auto declared = node.declared_shape(0)) {
    require(node, declared->size() == 3 && declared->back() == channels,
            "the declared shape is no picture of this pixel_format");
    frame.height = declared->at(0), frame.width = declared->at(1), frame.exact = true;
  }
  if (frame.height < 1 || frame.width < 1 ||
      frame.height > kMostPicturePixels / frame.width)
    node.unsupported("pictures of " + std::to_string(frame.height) + " x " +
                     std::to_string(frame.width) + " pixels");
  return frame;
}

// The call: tensors are the stream, the number of its bytes where that is data, then the
// pixels, their height and width, and the memory to work in.
std::string call_text(const Frame& frame, int64_t bytes, bool counted, int64_t scratch) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  const size_t out = counted ? 2 : 1;
  const auto tensor = [](size_t i, const char* type) {
    return "static_cast<" + std::string(type) + "*>(tensors[" + std::to_string(i) + "])";
  };
  std::string size = number(bytes);
  if (counted) size = "*" + tensor(1, "const int64_t");
  return decoders_text() +
         "}\nstatic __INT32_TYPE__ svod_call(void* const* tensors) {\n" +
         "  int64_t* const extents = " + tensor(out + 1, "int64_t") + ";\n" +
         "  const bool fits = svod::image::decode_image(" + tensor(0, "const uint8_t") +
         ", static_cast<size_t>(" + size + "), " + tensor(out + 2, "uint8_t") +
         ", static_cast<size_t>(" + number(scratch) +
         "), static_cast<svod::image::PixelFormat>(" +
         number(static_cast<int64_t>(frame.format)) + "), " + number(frame.height) +
         ", " + number(frame.width) + ", " + tensor(out, "uint8_t") + ", extents);\n" +
         (frame.exact
              ? "  if (extents[0] != " + number(frame.height) +
                    " || extents[1] != " + number(frame.width) + ") return fits ? " +
                    number(SVOD_INDEX) + " : " + number(SVOD_LIMIT) + ";\n"
              : "") +
         "  return fits ? 0 : " + number(SVOD_LIMIT) + ";\n}\n";
}

void give_run_time_picture(NodeImport& node, const Frame& frame) {
  Graph& g = node.g;
  const NodeId count = count_along(node, 0, 0);
  const int64_t scratch = image::scratch_bytes(frame.height, frame.width);
  const std::string text = call_text(frame, node.shape(0)[0], count != kNoNode, scratch);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const Shape shape{frame.height, frame.width, frame.channels};
  const int64_t function = g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
  std::vector<NodeId> inputs{node.input(0)};
  if (count != kNoNode) inputs.push_back(reshape(g, count, {1}));
  const auto output = [&](int64_t i, DType dtype, const Shape& of) {
    return Expr{&g, rebuild(g, {Op::Call,
                                dtype,
                                of,
                                {function, i, element_count(shape), 16, scratch},
                                inputs})};
  };
  const Expr pixels = output(0, DType::U8, shape);
  if (frame.exact) return give(node, 0, pixels);
  const Expr extents = output(1, DType::I64, {2});
  std::vector<Size> sizes;
  for (int64_t axis = 0; axis < 2; ++axis) {
    const int64_t bound = shape[static_cast<size_t>(axis)];
    const Expr size = reshape(cut(extents, 0, axis, 1), {});
    sizes.push_back({clamp(size, 0, static_cast<double>(bound)), bound});
  }
  sizes.push_back(known_size(g, frame.channels));
  give_bounded(node, 0, pixels, sizes);
}

void give_known_picture(NodeImport& node, const Frame& frame,
                        const std::vector<int64_t>& stream) {
  std::vector<uint8_t> bytes(stream.size());
  std::ranges::transform(stream, bytes.begin(),
                         [](int64_t value) { return static_cast<uint8_t>(value); });
  std::vector<uint8_t> pixels(
      static_cast<size_t>(frame.height * frame.width * frame.channels));
  std::vector<uint64_t> scratch(
      static_cast<size_t>(image::scratch_bytes(frame.height, frame.width)) / 8);
  std::array<int64_t, 2> extents{};
  const bool fits = image::decode_image(
      bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(scratch.data()),
      scratch.size() * 8, frame.format, static_cast<int32_t>(frame.height),
      static_cast<int32_t>(frame.width), pixels.data(), extents.data());
  if (!fits) node.unsupported("the picture is larger than --limit-image");
  require(node, !frame.exact || (extents[0] == frame.height && extents[1] == frame.width),
          "the picture has another size than the model declares");
  std::vector<std::byte> out;
  const int64_t row = extents[1] * frame.channels;
  for (int64_t y = 0; y < extents[0]; ++y)
    for (int64_t i = 0; i < row; ++i)
      out.push_back(static_cast<std::byte>(
          pixels[static_cast<size_t>(y * frame.width * frame.channels + i)]));
  const Shape shape{extents[0], extents[1], frame.channels};
  if (out.empty()) return node.output(0, constant(node.g, DType::U8, shape, 0));
  node.output(0, weight(node.g, DType::U8, shape, node.g.add_blob(std::move(out))));
}

void import_decoder(NodeImport& node, const std::string& pixel_format) {
  require(node, node.rank(0) == 1 && node.dtype(0) == DType::U8,
          "the encoded stream must be uint8 of one axis");
  const Frame frame = read_frame(node, pixel_format);
  const auto stream = node.counts(0).empty() ? ints_if_known(node, 0) : std::nullopt;
  if (stream) return give_known_picture(node, frame, *stream);
  if (node.shape(0)[0] == 0) return give_known_picture(node, frame, {});
  give_run_time_picture(node, frame);
}

} // namespace

void import_image_decoder(NodeImport& node) {
  import_decoder(node, node.get_string("pixel_format"));
}

// The extensions' decoder has one format.
void import_decode_image(NodeImport& node) { import_decoder(node, "BGR"); }

void bounded_image_decoder(NodeImport& node, Rule rule) { rule(node); }

} // namespace svod::importer
