// The formats by their first bytes, and how much memory decoding takes. What cannot be
// decoded is an empty picture, as the specification of ImageDecoder has it.
#pragma once

#include "importer/images/bmp.h"
#include "importer/images/jp2.h"
#include "importer/images/jpeg.h"
#include "importer/images/picture.h"
#include "importer/images/png.h"
#include "importer/images/pnm.h"
#include "importer/images/tiff.h"
#include "importer/images/webp.h"

namespace svod::image {

// For pictures of at most so many pixels: coefficients and samples of four channels where
// a format needs all of them at once, and tables.
inline constexpr int64_t kScratchPerPixel = 24;
inline constexpr int64_t kScratchTables = int64_t{1} << 19;
inline constexpr int64_t kScratchMargin = 64; // blocks may reach beyond the picture
constexpr int64_t scratch_bytes(int64_t height, int64_t width) {
  return (height + kScratchMargin) * (width + kScratchMargin) * kScratchPerPixel +
         kScratchTables;
}

// What is decoded, as bits. PNM is so short that it always is.
enum FileFormat : uint32_t {
  kBmp = 1,
  kPng = 2,
  kTiff = 4,
  kJpeg = 8,
  kWebp = 16,
  kJp2 = 32,
  kAllFormats = 63
};

// False: not decoded, as job.too_large or as what the bytes are wrong in.
template <uint32_t kFormats = kAllFormats> bool decode(Job& job) {
  const Bytes& in = job.bytes;
  const auto has = [](FileFormat format) { return (kFormats & format) != 0; };
  if (in.left() > 2 && in.at[0] == 'P' && in.at[1] >= '1' && in.at[1] <= '6')
    return decode_pnm(job);
  if (has(kBmp) && in.starts_with("BM", 2)) return decode_bmp(job);
  if (has(kPng) && in.starts_with("\x89PNG\r\n\x1a\n", 8)) return decode_png(job);
  if (has(kTiff) && (in.starts_with("II*\0", 4) || in.starts_with("MM\0*", 4)))
    return decode_tiff(job);
  if (has(kJpeg) && in.starts_with("\xff\xd8\xff", 3)) return decode_jpeg(job);
  if (has(kWebp) && is_webp(in)) return decode_webp(job);
  if (has(kJp2) && is_jp2(in)) return decode_jp2(job);
  return false;
}

// Decodes into pixels [max_height, max_width, channels] and tells the size, 0 and 0 where
// nothing can be decoded. False: the picture is larger than that.
inline bool decode_image(const uint8_t* bytes, size_t size, uint8_t* scratch,
                         size_t scratch_size, PixelFormat format, int32_t max_height,
                         int32_t max_width, uint8_t* pixels, int64_t* extents) {
  Job job{{bytes, bytes + size},
          scratch,
          scratch_size,
          pixels,
          max_height,
          max_width,
          format};
  const size_t total = static_cast<size_t>(max_height) * static_cast<size_t>(max_width) *
                       static_cast<size_t>(job.channels());
  for (size_t i = 0; i < total; ++i) pixels[i] = 0;
  const bool done = decode(job);
  extents[0] = done ? job.height : 0;
  extents[1] = done ? job.width : 0;
  return done || !job.too_large;
}

} // namespace svod::image
