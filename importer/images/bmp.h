// BMP: a header, a table of colours, rows from the bottom up, each padded to four bytes.
// [MS-WMF] 2.2.2.3 (BitmapInfoHeader and its longer forms), 2.2.2.9 (DeviceIndependent
// Bitmap). Channels of few bits become bytes by v * 255 / most.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

struct Bmp {
  uint32_t width = 0, height = 0, bits = 0, compression = 0, colors = 0;
  bool top_down = false;
  uint32_t masks[3] = {0, 0, 0}; // red, green, blue of 16 and 32 bits
  uint8_t palette[256][3] = {};
  Bytes rows;
};

enum BmpCompression : uint32_t { kBmpPlain = 0, kBmpMasks = 3 };

inline bool read_bmp_size(Bytes& in, uint32_t header_bytes, Bmp& bmp) {
  if (header_bytes < 40) return false;
  bmp.width = in.u32_little();
  const uint32_t height = in.u32_little();
  bmp.top_down = height >> 31 != 0;
  bmp.height = bmp.top_down ? 0u - height : height;
  in.skip(2);
  bmp.bits = in.u16_little();
  bmp.compression = in.u32_little();
  in.skip(12);
  bmp.colors = in.u32_little();
  in.skip(4);
  return true;
}

inline bool read_bmp_masks(Bytes in, Bmp& bmp) {
  if (bmp.compression == kBmpMasks) {
    for (uint32_t& mask : bmp.masks) mask = in.u32_little();
  } else if (bmp.bits == 16) {
    bmp.masks[0] = 0x7c00, bmp.masks[1] = 0x3e0, bmp.masks[2] = 0x1f;
  } else {
    bmp.masks[0] = 0xff0000, bmp.masks[1] = 0xff00, bmp.masks[2] = 0xff;
  }
  return bmp.masks[0] != 0 && bmp.masks[1] != 0 && bmp.masks[2] != 0;
}

inline bool read_bmp_header(Bytes all, Bmp& bmp) {
  Bytes in = all;
  in.skip(10);
  const uint32_t offset = in.u32_little();
  const uint32_t header_bytes = in.u32_little();
  if (!read_bmp_size(in, header_bytes, bmp)) return false;
  if (header_bytes > 1024 || in.ended) return false;
  if ((bmp.bits == 16 || bmp.bits == 32) && !read_bmp_masks(all.from(54), bmp))
    return false;
  if (bmp.bits <= 8) {
    const uint32_t most_colors = 1u << bmp.bits;
    const uint32_t count =
        bmp.colors == 0 || bmp.colors > most_colors ? most_colors : bmp.colors;
    Bytes table = all.from(14 + header_bytes);
    for (uint32_t i = 0; i < count; ++i) {
      for (int32_t channel = 2; channel >= 0; --channel)
        bmp.palette[i][channel] = static_cast<uint8_t>(table.u8());
      table.skip(1);
    }
  }
  bmp.rows = all.from(offset);
  return !bmp.rows.ended;
}

inline uint8_t bmp_channel(uint32_t pixel, uint32_t mask) {
  const int shift = __builtin_ctz(mask);
  const uint32_t span = mask >> shift;
  const uint32_t value = (pixel & mask) >> shift;
  if (span >= 0xffffff) return static_cast<uint8_t>(value >> 24);
  return static_cast<uint8_t>(value * 255 / span);
}

inline void put_bmp_color(Job& job, const Bmp& bmp, uint32_t row, uint32_t x,
                          uint32_t index) {
  const uint32_t y = bmp.top_down ? row : bmp.height - 1 - row;
  const uint8_t* color = bmp.palette[index & 255];
  job.put(static_cast<int32_t>(y), static_cast<int32_t>(x), color[0], color[1], color[2]);
}

inline bool decode_bmp_row(Job& job, const Bmp& bmp, Bytes row, uint32_t number) {
  const uint32_t y = bmp.top_down ? number : bmp.height - 1 - number;
  uint32_t packed = 0;
  for (uint32_t x = 0; x < bmp.width; ++x) {
    if (bmp.bits <= 8) {
      const uint32_t per_byte = 8 / bmp.bits;
      if (x % per_byte == 0) packed = row.u8();
      const uint32_t shift = 8 - bmp.bits * (x % per_byte + 1);
      put_bmp_color(job, bmp, number, x, packed >> shift & ((1u << bmp.bits) - 1));
      continue;
    }
    uint8_t rgb[3];
    if (bmp.bits == 24) {
      for (int32_t i = 2; i >= 0; --i) rgb[i] = static_cast<uint8_t>(row.u8());
    } else {
      const uint32_t pixel = bmp.bits == 16 ? row.u16_little() : row.u32_little();
      for (int32_t i = 0; i < 3; ++i) rgb[i] = bmp_channel(pixel, bmp.masks[i]);
    }
    job.put(static_cast<int32_t>(y), static_cast<int32_t>(x), rgb[0], rgb[1], rgb[2]);
  }
  return !row.ended;
}

inline bool decode_bmp_plain(Job& job, Bmp& bmp) {
  const uint32_t stride = (bmp.width * bmp.bits + 31) / 32 * 4;
  for (uint32_t row = 0; row < bmp.height; ++row)
    if (!decode_bmp_row(job, bmp, bmp.rows.part(stride), row)) return false;
  return true;
}

inline bool decode_bmp(Job& job) {
  Bmp* const bmp = job.take<Bmp>(1);
  if (bmp == nullptr) return false;
  if (!read_bmp_header(job.bytes, *bmp)) return false;
  const uint32_t bits = bmp->bits;
  const bool known =
      bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
  if (!known || !job.begin(bmp->height, bmp->width)) return false;
  const bool plain = bmp->compression == kBmpPlain ||
                     (bmp->compression == kBmpMasks && (bits == 16 || bits == 32));
  return plain && decode_bmp_plain(job, *bmp);
}

} // namespace svod::image
