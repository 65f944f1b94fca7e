// Pictures of this folder as --image prepares them, against what Pillow and the roundings
// of torchvision make of them (make_prepared.py): a CRC-32 of all bytes for each case.
// Memory is of exactly the size that is promised and no zeros, and what is cut off the
// end of a file makes it no picture. Built with the sanitizers, which watch damaged files
// as well.
//   check_prepared FOLDER
#include "importer/images/prepare.h"
#include "runtime_stub/crc32.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace svod::image;
using svod::PictureNote;

void svod::image::watch_memory(const uint8_t* from, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(from, bytes);
}

namespace {

using Stream = std::vector<uint8_t>;

Stream bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  PixelFormat format = PixelFormat::Rgb;
  Recipe recipe{};
  MostPixels most{};
};

struct Made {
  Prepared how = Prepared::NoPicture;
  Stream pixels;
  PictureNote note{};
};

Made prepare(const Stream& stream, const Case& what) {
  const size_t channels = what.format == PixelFormat::Gray ? 1 : 3;
  const auto size =
      static_cast<size_t>(prepare_bytes(what.most, kAllFormats, what.recipe));
  // What one picture leaves is what the next one finds, as in a program.
  static std::vector<uint64_t> memory;
  if (memory.size() < size / 8 + 1) memory.assign(size / 8 + 1, 0x5a5a5a5a5a5a5a5a);
  auto* const bytes = reinterpret_cast<uint8_t*>(memory.data());
  ASAN_POISON_MEMORY_REGION(bytes + sizeof(PictureNote), size - sizeof(PictureNote));
  Made out;
  out.pixels.assign(static_cast<size_t>(what.recipe.height) *
                        static_cast<size_t>(what.recipe.width) * channels,
                    0x5a);
  out.how = prepare_picture(stream.data(), stream.size(), what.format, what.most,
                            what.recipe, bytes, size, out.pixels.data());
  ASAN_UNPOISON_MEMORY_REGION(bytes, size);
  out.note = *reinterpret_cast<PictureNote*>(bytes);
  return out;
}

uint32_t crc_of(const Stream& bytes) {
  svod::Crc32 crc;
  crc.add(bytes.data(), bytes.size());
  return crc.value();
}

const std::map<std::string, PixelFormat> kModes{
    {"rgb", PixelFormat::Rgb}, {"bgr", PixelFormat::Bgr}, {"gray", PixelFormat::Gray}};
const std::map<std::string, Fit> kFits{{"stretch", Fit::Stretch},
                                       {"cover", Fit::Cover},
                                       {"contain", Fit::Contain},
                                       {"shorter", Fit::Shorter},
                                       {"keep", Fit::Keep}};
const std::map<std::string, Filter> kFilters{{"nearest", Filter::Nearest},
                                             {"bilinear", Filter::Bilinear},
                                             {"bicubic", Filter::Bicubic}};

struct Expected {
  std::string name;
  Case what;
  uint32_t crc = 0;
};

// The pictures are of 27x19 pixels and 34x26 at most, but for the wide one, whose longer
// side is longer than the bound's.
Expected read_case(const std::string& line) {
  Expected out;
  std::istringstream in(line);
  std::string mode, fit, filter;
  Recipe& recipe = out.what.recipe;
  in >> out.name >> mode >> recipe.height >> recipe.width >> fit >> recipe.box_height >>
      recipe.box_width >> filter >> out.crc;
  out.what.format = kModes.at(mode);
  recipe.fit = kFits.at(fit), recipe.filter = kFilters.at(filter);
  recipe.fill = recipe.fit == Fit::Contain ? 114 : 0;
  const bool is_wide = out.name.find("runs") != std::string::npos;
  out.what.most = is_wide ? MostPixels{400, 700} : MostPixels{30, 30};
  return out;
}

int check_bounds(const std::filesystem::path& folder, const Expected& expected) {
  const Stream stream = bytes_of(folder / expected.name);
  Case small = expected.what;
  small.most = {1, 19 * 27 - 1};
  const Made large = prepare(stream, small);
  int wrong = large.how != Prepared::TooLarge || large.note.height != 19 ||
              large.note.width != 27 || large.note.most_pixels != 19 * 27 - 1;
  for (size_t keep : {stream.size() / 2, stream.size() / 4, size_t{3}, size_t{0}}) {
    const Stream cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(keep));
    wrong += prepare(cut, expected.what).how != Prepared::NoPicture;
  }
  std::printf("%s: the bounds of %s\n", wrong == 0 ? "ok" : "NOT TRUE",
              expected.name.c_str());
  return wrong;
}

// Of 2700 pixels across, where as many pixels are allowed in a square.
int check_long(const Stream& stream, Case what) {
  what.most = {530, 530};
  const Made made = prepare(stream, what);
  const bool good = made.how == Prepared::TooLarge && made.note.width == 2700 &&
                    made.note.most_side == 4 * 530;
  std::printf("%s: the bound of a long picture\n", good ? "ok" : "NOT TRUE");
  return good ? 0 : 1;
}

uint32_t random_number(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

// Headers are where a few bytes decide most. Whatever comes of it, the sanitizers watch.
void damage(Stream stream, const Case& what, uint32_t& state) {
  for (size_t most : {size_t{96}, stream.size()})
    stream[random_number(state) % std::min(most, stream.size())] =
        static_cast<uint8_t>(random_number(state));
  stream.shrink_to_fit();
  prepare(stream, what);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::ifstream cases(folder / "prepared.txt");
  int wrong = 0, all = 0;
  uint32_t state = 1;
  std::string last;
  for (std::string line; std::getline(cases, line); ++all) {
    const Expected expected = read_case(line);
    const Stream stream = bytes_of(folder / expected.name);
    const Made made = prepare(stream, expected.what);
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) damage(stream, expected.what, state);
    const bool good = made.how == Prepared::Done && crc_of(made.pixels) == expected.crc;
    if (!good) std::printf("NOT TRUE: %s\n", line.c_str());
    wrong += !good;
    if (expected.name != last)
      wrong += expected.what.most.height == 30 ? check_bounds(folder, expected)
                                               : check_long(stream, expected.what);
    last = expected.name;
  }
  std::printf("%d cases, %d are wrong\n", all, wrong);
  return all == 0 || wrong != 0;
}
