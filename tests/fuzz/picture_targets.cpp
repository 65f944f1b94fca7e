// The decoders of pictures, one by one, with memory of exactly the sizes that are
// promised. The picture may be of 64 x 64 pixels at most.
#include "importer/images/decode.h"
#include "tests/fuzz/address_sanitizer.h"
#include "tests/fuzz/target.h"

#include <memory>
#include <string_view>

// What a decoder takes of its scratch memory it may touch, and nothing else of it.
void svod::image::watch_memory(const uint8_t* from, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(from, bytes);
}

namespace svod::fuzz {

namespace {

using namespace image;

constexpr int32_t kMost = 64;

// What is no file of the format never comes to its decoder.
template <class IsMine>
void decode_by(bool (*decoder)(Job&), Bytes bytes, const IsMine& is_mine) {
  image::Bytes whole;
  whole.at = bytes.data(), whole.end = bytes.data() + bytes.size();
  if (!is_mine(whole)) return;
  constexpr auto kScratch = static_cast<size_t>(scratch_bytes(kMost, kMost));
  static const auto scratch = std::make_unique<uint8_t[]>(kScratch);
  // The format of pixels hangs on the bytes, which stay whole for those who look at them.
  const auto format = static_cast<PixelFormat>(bytes.size() % 3);
  const size_t channels = format == PixelFormat::Gray ? 1 : 3;
  const auto pixels = std::make_unique<uint8_t[]>(kMost * kMost * channels);
  ASAN_POISON_MEMORY_REGION(scratch.get(), kScratch);
  Job job{{bytes.data(), bytes.data() + bytes.size()},
          scratch.get(),
          kScratch,
          pixels.get(),
          kMost,
          kMost,
          format};
  const bool done = decoder(job);
  ASAN_UNPOISON_MEMORY_REGION(scratch.get(), kScratch);
  must(!done || (job.height >= 0 && job.height <= kMost && job.width >= 0 &&
                 job.width <= kMost),
       "a picture is within its bound");
}

auto begins(std::string_view mark) {
  return
      [mark](const image::Bytes& in) { return in.starts_with(mark.data(), mark.size()); };
}

} // namespace

void fuzz_bmp(Bytes bytes) { decode_by(decode_bmp, bytes, begins("BM")); }
void fuzz_png(Bytes bytes) { decode_by(decode_png, bytes, begins("\x89PNG\r\n\x1a\n")); }
void fuzz_jpeg(Bytes bytes) { decode_by(decode_jpeg, bytes, begins("\xff\xd8\xff")); }
void fuzz_webp(Bytes bytes) { decode_by(decode_webp, bytes, is_webp); }
void fuzz_jp2(Bytes bytes) { decode_by(decode_jp2, bytes, is_jp2); }

void fuzz_pnm(Bytes bytes) {
  decode_by(decode_pnm, bytes, [](const image::Bytes& in) {
    return in.left() > 2 && in.at[0] == 'P' && in.at[1] >= '1' && in.at[1] <= '6';
  });
}

void fuzz_tiff(Bytes bytes) {
  decode_by(decode_tiff, bytes, [](const image::Bytes& in) {
    return in.starts_with("II*\0", 4) || in.starts_with("MM\0*", 4);
  });
}

} // namespace svod::fuzz
