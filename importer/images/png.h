// PNG (ISO/IEC 15948, RFC 2083): chunks with check sums; the pixels are one zlib stream
// over all IDAT chunks, rows of bytes that are differences to their neighbours, in one
// pass or in the seven of Adam7. Of 16 bits the high ones are kept, transparency is not.
#pragma once

#include "importer/images/picture.h"
#include "runtime_stub/crc32.h"
#include "runtime_stub/inflate.h"

namespace svod::image {

struct Png {
  uint32_t width = 0, height = 0, bits = 0, color = 0;
  bool interlaced = false;
  uint8_t palette[256][3];
  uint32_t colors = 0;
  Bytes data; // from the first IDAT on
  bool has_data = false;

  uint32_t channels() const {
    return color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1;
  }
  size_t row_bytes(uint32_t pixels) const {
    return (static_cast<size_t>(pixels) * channels() * bits + 7) / 8;
  }
};

inline bool read_png_header(Bytes in, Png& png) {
  png.width = in.u32_big(), png.height = in.u32_big();
  png.bits = in.u8(), png.color = in.u8();
  const uint32_t method = in.u8(), filter = in.u8(), interlace = in.u8();
  if (in.ended || method != 0 || filter != 0 || interlace > 1) return false;
  png.interlaced = interlace == 1;
  const uint32_t bits = png.bits;
  const bool whole = bits == 8 || bits == 16, part = bits == 1 || bits == 2 || bits == 4;
  switch (png.color) {
  case 0:
    return whole || part;
  case 3:
    return part || bits == 8;
  case 2:
  case 4:
  case 6:
    return whole;
  default:
    return false;
  }
}

inline bool read_png_chunks(Bytes in, Png& png) {
  in.skip(8);
  bool has_header = false;
  while (in.left() >= 12) {
    const Bytes start = in;
    const uint32_t length = in.u32_big();
    if (in.left() < 8 || length > in.left() - 8) return false;
    Crc32 sum; // of the chunk's name and content
    sum.add(in.at, size_t{4} + length);
    const Bytes name = in.part(4);
    Bytes content = in.part(length);
    if (in.u32_big() != sum.value()) return false;
    if (name.starts_with("IEND", 4)) break;
    if (name.starts_with("IHDR", 4)) {
      if (has_header || !read_png_header(content, png)) return false;
      has_header = true;
    } else if (name.starts_with("PLTE", 4)) {
      for (png.colors = 0; png.colors < 256 && content.left() >= 3; ++png.colors)
        for (uint8_t& channel : png.palette[png.colors])
          channel = static_cast<uint8_t>(content.u8());
    } else if (name.starts_with("IDAT", 4) && !png.has_data) {
      png.data = start, png.has_data = true;
    }
  }
  return has_header && png.has_data && (png.color != 3 || png.colors > 0);
}

// The content of neighbouring IDAT chunks, one stream.
struct PngStream {
  Bytes file;
  Bytes chunk;
  int32_t next() {
    while (chunk.at == chunk.end) {
      if (file.left() < 12) return -1;
      const uint32_t length = file.u32_big();
      if (!file.starts_with("IDAT", 4)) {
        file.at = file.end;
        return -1;
      }
      file.skip(4);
      chunk = file.part(length);
      file.skip(4);
    }
    return *chunk.at++;
  }
};

inline uint8_t paeth(int32_t left, int32_t above, int32_t corner) {
  const int32_t guess = left + above - corner;
  const auto distance = [guess](int32_t value) {
    return value > guess ? value - guess : guess - value;
  };
  const int32_t a = distance(left), b = distance(above), c = distance(corner);
  return static_cast<uint8_t>(a <= b && a <= c ? left : b <= c ? above : corner);
}

// Chapter 9: what the filter took away is added; `row` and `above` have `step` zeros
// before them.
inline bool unfilter(uint8_t filter, uint8_t* row, const uint8_t* above, size_t bytes,
                     size_t step) {
  for (size_t i = 0; i < bytes; ++i) {
    const int32_t left = row[i], up = above[i + step], corner = above[i];
    int32_t guess = 0;
    if (filter == 1) guess = left;
    if (filter == 2) guess = up;
    if (filter == 3) guess = (left + up) / 2;
    if (filter == 4) guess = paeth(left, up, corner);
    row[i + step] = static_cast<uint8_t>(row[i + step] + guess);
  }
  return filter <= 4;
}

// Sample i of a row as a byte, or as it is for an index into the palette.
inline uint8_t png_sample(const Png& png, const uint8_t* row, uint32_t i) {
  if (png.bits == 8) return row[i];
  if (png.bits == 16) return row[2 * static_cast<size_t>(i)];
  const uint32_t shift = 8 - png.bits - i * png.bits % 8,
                 most_value = (1u << png.bits) - 1;
  const uint32_t value = row[i * png.bits / 8] >> shift & most_value;
  return static_cast<uint8_t>(png.color == 3 ? value : value * 255 / most_value);
}

inline void put_png_pixel(Job& job, const Png& png, const uint8_t* row, uint32_t i,
                          uint32_t y, uint32_t x) {
  const auto to_y = static_cast<int32_t>(y), to_x = static_cast<int32_t>(x);
  const uint8_t first = png_sample(png, row, i * png.channels());
  if (png.color == 3) {
    const uint8_t* color = png.palette[first];
    job.put(to_y, to_x, color[0], color[1], color[2]);
  } else if (png.channels() < 3) {
    job.put_gray(to_y, to_x, first);
  } else {
    job.put(to_y, to_x, first, png_sample(png, row, i * png.channels() + 1),
            png_sample(png, row, i * png.channels() + 2));
  }
}

struct PngPass {
  uint32_t y, x, step_y, step_x;
};

inline bool decode_png_pass(Job& job, const Png& png, Inflate<PngStream>& stream,
                            const PngPass& pass, uint8_t* row, uint8_t* above) {
  if (png.height <= pass.y || png.width <= pass.x) return true;
  const uint32_t width = divided_up(png.width - pass.x, pass.step_x);
  const size_t bytes = png.row_bytes(width);
  const size_t step = png.bits * png.channels() < 8 ? 1 : png.bits * png.channels() / 8;
  for (size_t i = 0; i < bytes + step; ++i) above[i] = row[i] = 0;
  for (uint32_t y = pass.y; y < png.height; y += pass.step_y) {
    const int32_t filter = stream.next();
    for (size_t i = 0; i < bytes; ++i) {
      const int32_t byte = stream.next();
      if (byte < 0) return false;
      row[i + step] = static_cast<uint8_t>(byte);
    }
    if (!unfilter(static_cast<uint8_t>(filter), row, above, bytes, step)) return false;
    for (uint32_t i = 0; i < width; ++i)
      put_png_pixel(job, png, row + step, i, y, pass.x + i * pass.step_x);
    uint8_t* const other = above;
    above = row, row = other;
    for (size_t i = 0; i < step; ++i) row[i] = 0;
  }
  return true;
}

inline bool decode_png(Job& job) {
  static constexpr PngPass kWhole[1] = {{0, 0, 1, 1}};
  static constexpr PngPass kAdam7[7] = {{0, 0, 8, 8}, {0, 4, 8, 8}, {4, 0, 8, 4},
                                        {0, 2, 4, 4}, {2, 0, 4, 2}, {0, 1, 2, 2},
                                        {1, 0, 2, 1}};
  Png* const png = job.take<Png>(1);
  if (png == nullptr || !read_png_chunks(job.bytes, *png)) return false;
  if (!job.begin(png->height, png->width)) return false;
  auto* const stream = job.take<Inflate<PngStream>>(1);
  constexpr size_t kMostStep = 8;
  const size_t row_bytes = png->row_bytes(png->width) + kMostStep;
  auto* const row = job.take<uint8_t>(row_bytes);
  auto* const above = job.take<uint8_t>(row_bytes);
  if (stream == nullptr || row == nullptr || above == nullptr) return false;
  PngStream source{png->data, {}};
  if (!stream->open(&source)) return false;
  const PngPass* const passes = png->interlaced ? kAdam7 : kWhole;
  for (int32_t i = 0; i < (png->interlaced ? 7 : 1); ++i)
    if (!decode_png_pass(job, *png, *stream, passes[i], row, above)) return false;
  return true;
}

} // namespace svod::image
