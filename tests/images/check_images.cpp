// Our image decoders on the pictures of this folder: each must give what Pillow gave, bit
// by bit (make_images.py). Then the same streams damaged, thousands of times: built with
// the sanitizers, this finds any read or write outside the bounds, and a decoder that
// does not end would run into the test's time limit.
//   check_images FOLDER ROUNDS
#include "importer/images/decode.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace svod::image;

void svod::image::watch_memory(const uint8_t* from, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(from, bytes);
}

namespace {

struct Limits {
  int32_t height, width;
};
constexpr Limits kSmall{48, 40}, kWide{96, 2704}; // above most, and all pictures

struct Decoded {
  bool fits = false;
  std::vector<uint8_t> pixels; // of the picture alone
  int64_t height = 0, width = 0;
};

std::vector<uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Memory of exactly the sizes that are promised, so that a sanitizer sees what is beyond.
Decoded decode(const std::vector<uint8_t>& stream, PixelFormat format, Limits most) {
  const size_t channels = format == PixelFormat::Gray ? 1 : 3;
  const auto scratch_size = static_cast<size_t>(scratch_bytes(most.height, most.width));
  static std::vector<uint8_t> scratch(
      static_cast<size_t>(scratch_bytes(kWide.height, kWide.width)));
  ASAN_POISON_MEMORY_REGION(scratch.data(), scratch_size);
  std::vector<uint8_t> pixels(static_cast<size_t>(most.height * most.width) * channels);
  int64_t extents[2] = {-1, -1};
  Decoded out;
  out.fits = decode_image(stream.data(), stream.size(), scratch.data(), scratch_size,
                          format, most.height, most.width, pixels.data(), extents);
  ASAN_UNPOISON_MEMORY_REGION(scratch.data(), scratch_size);
  out.height = extents[0], out.width = extents[1];
  if (out.height < 0 || out.height > most.height || out.width < 0 ||
      out.width > most.width) {
    std::printf("NOT TRUE: a size within the bound\n");
    std::exit(1);
  }
  const auto row = out.width * static_cast<int64_t>(channels);
  for (int64_t y = 0; y < out.height; ++y) {
    const auto from = pixels.begin() + y * most.width * static_cast<int64_t>(channels);
    out.pixels.insert(out.pixels.end(), from, from + row);
  }
  return out;
}

bool equal(const Decoded& a, const Decoded& b) {
  return a.fits && b.fits && a.height == b.height && a.width == b.width &&
         a.pixels == b.pixels;
}

// The same decoder, by the picture's formats of pixels.
bool formats_agree(const std::vector<uint8_t>& stream, const Decoded& rgb, Limits most) {
  const Decoded bgr = decode(stream, PixelFormat::Bgr, most);
  const Decoded gray = decode(stream, PixelFormat::Gray, most);
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    const uint8_t* from = &rgb.pixels[3 * i];
    if (bgr.pixels[3 * i] != from[2] || bgr.pixels[3 * i + 2] != from[0]) return false;
    const double weighed = 0.299 * from[0] + 0.587 * from[1] + 0.114 * from[2];
    if (std::abs(weighed - gray.pixels[i]) > 0.6) return false;
  }
  return 3 * gray.pixels.size() == rgb.pixels.size() &&
         bgr.pixels.size() == rgb.pixels.size();
}

uint32_t random_number(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

void damage(std::vector<uint8_t> stream, uint32_t& state, Limits most) {
  switch (random_number(state) % 4) {
  case 0:
    stream.resize(random_number(state) % stream.size());
    break;
  case 1:
    for (uint32_t i = 0; i < 4; ++i)
      stream[random_number(state) % stream.size()] =
          static_cast<uint8_t>(random_number(state));
    break;
  case 2: // headers are where a few bytes decide most
    stream[random_number(state) % std::min<size_t>(stream.size(), 96)] =
        static_cast<uint8_t>(random_number(state));
    break;
  default:
    stream[random_number(state) % stream.size()] ^= 1u << random_number(state) % 8;
  }
  stream.shrink_to_fit();
  decode(stream, PixelFormat::Rgb, most);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    auto expected = entry.path();
    if (entry.path().extension() != ".ppm" &&
        std::filesystem::exists(expected.replace_extension(".ppm")))
      paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  int wrong = paths.empty();
  uint32_t state = 1;
  for (std::filesystem::path path : paths) {
    const std::string name = path.filename();
    const std::vector<uint8_t> stream = bytes_of(path);
    const std::vector<uint8_t> expected = bytes_of(path.replace_extension(".ppm"));
    const bool is_small = decode(expected, PixelFormat::Rgb, kSmall).fits;
    const Limits most = is_small ? kSmall : kWide;
    const Decoded have = decode(stream, PixelFormat::Rgb, most);
    const Decoded want = decode(expected, PixelFormat::Rgb, most);
    const bool good =
        equal(have, want) && want.height > 0 && formats_agree(stream, have, most);
    if (!good) ++wrong;
    std::printf("%s: %s\n", good ? "ok" : "NOT TRUE", name.c_str());
    const int rounds = std::atoi(argv[2]) / (is_small ? 1 : 50);
    for (int round = rounds; round > 0; --round) damage(stream, state, most);
  }
  return wrong == 0 ? 0 : 1;
}
