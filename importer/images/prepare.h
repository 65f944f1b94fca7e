// A picture's file becomes the pixels that a model takes: decoded, resampled, cut or
// surrounded by bars. All memory is one block, of which a small picture touches little.
#pragma once

#include "importer/images/decode.h"
#include "importer/images/resample.h"
#include "runtime_stub/picture_note.h"

namespace svod::image {

// Which pictures are taken: as many pixels as this height and width have, on either side.
struct MostPixels {
  int32_t height, width;
  constexpr int64_t pixels() const { return int64_t{height} * width; }
  constexpr int64_t side() const { return most_dense_side(height, width); }
};

// Between the axes lie as many rows as the picture has. Along a side there are at most
// five weights of 4 bytes for each position of it or of the result, and sums in doubles.
constexpr int64_t resample_bytes(const MostPixels& most, int64_t height, int64_t width) {
  constexpr int64_t kMargin = 4096;
  const int64_t rows = most.pixels() < most.side() ? most.pixels() : most.side();
  return rows * width * 3 + 64 * (2 * rows + height + width) + kMargin;
}

// JPEG with four components, and the words of WebP, take 12 bytes for a pixel; only two
// formats take more. The margin is around the longest picture.
constexpr int64_t decode_bytes(const MostPixels& most, uint32_t formats) {
  constexpr int64_t kUsual = 12;
  const int64_t each = (formats & (kTiff | kJp2)) != 0 ? kScratchPerPixel : kUsual;
  const int64_t margin = kScratchMargin * (2 * most.side() + kScratchMargin);
  return (most.pixels() + margin) * each + kScratchTables;
}

constexpr int64_t prepare_bytes(const MostPixels& most, uint32_t formats,
                                const Recipe& recipe) {
  const int64_t decoding = decode_bytes(most, formats);
  const int64_t resampling = resample_bytes(most, recipe.height, recipe.width);
  constexpr int64_t kAligned = 64;
  return static_cast<int64_t>(sizeof(PictureNote)) + (3 * most.pixels() + kAligned) +
         (decoding > resampling ? decoding : resampling);
}

enum class Prepared : int32_t { Done, NoPicture, TooLarge };

template <int32_t kChannels>
bool resample_picture(Job& job, const Recipe& recipe, uint8_t* out) {
  const Resampling<kChannels> resampling{
      job, place_picture(recipe, job.height, job.width), recipe.filter, out};
  const Axis &down = resampling.placed.down, &across = resampling.placed.across;
  if (down.resampled < 1 || across.resampled < 1) return false;
  const bool has_bars = down.begin() > 0 || down.end() < down.wanted ||
                        across.begin() > 0 || across.end() < across.wanted;
  const auto bytes = static_cast<size_t>(recipe.height) *
                     static_cast<size_t>(recipe.width) * size_t{kChannels};
  for (size_t i = 0; has_bars && i < bytes; ++i)
    out[i] = static_cast<uint8_t>(recipe.fill);
  return resampling.run();
}

// `memory` has prepare_bytes(). `out` is [height, width, channels] of the recipe.
template <uint32_t kFormats = kAllFormats>
Prepared prepare_picture(const uint8_t* bytes, size_t size, PixelFormat format,
                         const MostPixels& most, const Recipe& recipe, uint8_t* memory,
                         size_t memory_size, uint8_t* out) {
  auto* const note = reinterpret_cast<PictureNote*>(memory);
  Job job{{bytes, bytes + size}, memory,     memory_size, nullptr,
          most.height,           most.width, format};
  job.is_dense = true;
  *note = {};
  note->most_pixels = most.pixels(), note->most_side = most.side();
  job.scratch += sizeof(PictureNote), job.scratch_left -= sizeof(PictureNote);
  job.pixels = job.take_any(static_cast<size_t>(note->most_pixels) *
                            static_cast<size_t>(job.channels()));
  if (job.pixels == nullptr) return Prepared::TooLarge;
  uint8_t* const scratch = job.scratch;
  const size_t left = job.scratch_left;
  const bool decoded = decode<kFormats>(job);
  note->height = job.asked_height, note->width = job.asked_width;
  if (!decoded) return job.too_large ? Prepared::TooLarge : Prepared::NoPicture;
  // What was decoded with is no longer needed.
  job.scratch = scratch, job.scratch_left = left;
  const bool made = format == PixelFormat::Gray ? resample_picture<1>(job, recipe, out)
                                                : resample_picture<3>(job, recipe, out);
  return made ? Prepared::Done : Prepared::TooLarge;
}

} // namespace svod::image
