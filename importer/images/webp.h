// WebP (RFC 9649, section 2): chunks in a RIFF file; the picture is lossy ("VP8 ") or
// lossless ("VP8L"). Transparency is left out. Of a film ("ANMF") the first frame is the
// picture; where it leaves the canvas free, that is black.
#pragma once

#include "importer/images/vp8.h"
#include "importer/images/webp_transforms.h"

namespace svod::image {

inline bool is_webp(const Bytes& in) {
  return in.starts_with("RIFF", 4) && in.from(8).starts_with("WEBP", 4);
}

// The picture of a sequence of chunks, which is the whole file or one frame.
inline bool decode_webp_picture(Job& job, Bytes in) {
  while (in.left() >= 8) {
    const Bytes name = in.part(4);
    const uint32_t length = in.u32_little();
    if (length > in.left()) return false;
    const Bytes content = in.part(length);
    if (name.starts_with("VP8 ", 4)) return decode_vp8(job, content);
    if (name.starts_with("VP8L", 4)) return decode_webp_lossless(job, content);
    in.skip(length % 2);
  }
  return false;
}

// Moves the decoded frame to its place on a canvas of another size, the last pixels
// first, since its place is never before where it lies.
inline bool place_frame(Job& job, uint32_t top, uint32_t left, uint32_t canvas_height,
                        uint32_t canvas_width) {
  const auto height = static_cast<uint32_t>(job.height);
  const auto width = static_cast<uint32_t>(job.width);
  const size_t frame_pitch = job.pitch();
  if (top > canvas_height || height > canvas_height - top || left > canvas_width ||
      width > canvas_width - left || !job.begin(canvas_height, canvas_width))
    return false;
  const auto each = static_cast<size_t>(job.channels());
  const auto pixel = [&](uint32_t y, uint32_t x, size_t pitch) {
    return job.pixels + (y * pitch + x) * each;
  };
  for (uint32_t y = canvas_height; y-- > 0;)
    for (uint32_t x = canvas_width; x-- > 0;) {
      const bool inside = y >= top && y < top + height && x >= left && x < left + width;
      for (size_t c = 0; c < each; ++c)
        pixel(y, x, job.pitch())[c] =
            inside ? pixel(y - top, x - left, frame_pitch)[c] : uint8_t{0};
    }
  return true;
}

// Three bytes each: half its place, its extents less one, its duration; then flags.
inline bool decode_webp_frame(Job& job, Bytes in, uint32_t canvas_height,
                              uint32_t canvas_width) {
  const auto u24 = [&in] {
    const uint32_t low = in.u16_little();
    return low | in.u8() << 16;
  };
  const uint32_t left = 2 * u24(), top = 2 * u24();
  constexpr size_t kRest = 10;
  in.skip(kRest);
  return decode_webp_picture(job, in) &&
         place_frame(job, top, left, canvas_height, canvas_width);
}

inline bool decode_webp(Job& job) {
  Bytes in = job.bytes;
  in.skip(12);
  Bytes chunks = in;
  uint32_t height = 0, width = 0;
  while (chunks.left() >= 8) {
    const Bytes name = chunks.part(4);
    const uint32_t length = chunks.u32_little();
    if (length > chunks.left()) return false;
    Bytes content = chunks.part(length);
    if (name.starts_with("VP8X", 4)) {
      content.skip(4);
      width = content.u16_little();
      width = (width | content.u8() << 16) + 1;
      height = content.u16_little();
      height = (height | content.u8() << 16) + 1;
    } else if (name.starts_with("ANMF", 4)) {
      return decode_webp_frame(job, content, height, width);
    } else if (name.starts_with("VP8", 3)) {
      break;
    }
    chunks.skip(length % 2);
  }
  return decode_webp_picture(job, in);
}

} // namespace svod::image
