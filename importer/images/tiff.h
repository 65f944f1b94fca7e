// TIFF (revision 6.0; sections 2 and 7 to 11, 13 to 16, Technical Notes on Deflate and on
// JPEG): a directory of tagged fields; strips or tiles of rows, as they are or packed
// (PackBits, LZW, Deflate), or each a JPEG picture of its own. Of several pictures the
// first is decoded.
#pragma once

#include "importer/images/jpeg.h"
#include "importer/images/tiff_streams.h"
#include "runtime_stub/inflate.h"

namespace svod::image {

struct TiffField {
  uint32_t type = 0, count = 0;
  Bytes values;
};

struct Tiff {
  Bytes file;
  bool is_big_endian = false;
  uint32_t width = 0, height = 0, bits = 1, compression = 1, photometric = 0;
  uint32_t samples = 1, predictor = 1, fill_order = 1;
  bool is_planar = false;
  uint32_t block_width = 0, block_height = 0; // of a strip or tile
  TiffField offsets, sizes, colors, jpeg_tables;

  uint32_t u16(Bytes& in) const { return is_big_endian ? in.u16_big() : in.u16_little(); }
  uint32_t u32(Bytes& in) const { return is_big_endian ? in.u32_big() : in.u32_little(); }
  uint32_t value(const TiffField& field, uint32_t i) const {
    const size_t bytes = field.type == 1 ? 1 : field.type == 3 ? 2 : 4;
    Bytes in = field.values.from(i * bytes);
    if (i >= field.count) return 0;
    return bytes == 1 ? in.u8() : bytes == 2 ? u16(in) : u32(in);
  }
};

enum TiffTag : uint32_t {
  kTiffWidth = 256,
  kTiffHeight = 257,
  kTiffBits = 258,
  kTiffCompression = 259,
  kTiffPhotometric = 262,
  kTiffFillOrder = 266,
  kTiffStripOffsets = 273,
  kTiffSamples = 277,
  kTiffRowsPerStrip = 278,
  kTiffStripSizes = 279,
  kTiffPlanar = 284,
  kTiffPredictor = 317,
  kTiffColors = 320,
  kTiffTileWidth = 322,
  kTiffTileHeight = 323,
  kTiffTileOffsets = 324,
  kTiffTileSizes = 325,
  kTiffSampleFormat = 339,
  kTiffJpegTables = 347,
};

// False: a field that this decoder cannot honour. One case per tag makes it long.
inline bool take_tiff_field(Tiff& tiff, uint32_t tag, const TiffField& field) {
  const uint32_t first = tiff.value(field, 0);
  switch (tag) {
  case kTiffWidth:
    tiff.width = first;
    break;
  case kTiffHeight:
    tiff.height = first;
    break;
  case kTiffBits:
    tiff.bits = first;
    for (uint32_t i = 1; i < field.count && i < 16; ++i)
      if (tiff.value(field, i) != first) return false;
    break;
  case kTiffCompression:
    tiff.compression = first;
    break;
  case kTiffPhotometric:
    tiff.photometric = first;
    break;
  case kTiffFillOrder:
    tiff.fill_order = first;
    break;
  case kTiffStripOffsets:
  case kTiffTileOffsets:
    tiff.offsets = field;
    break;
  case kTiffStripSizes:
  case kTiffTileSizes:
    tiff.sizes = field;
    break;
  case kTiffSamples:
    tiff.samples = first;
    break;
  case kTiffRowsPerStrip:
  case kTiffTileHeight:
    tiff.block_height = first;
    break;
  case kTiffTileWidth:
    tiff.block_width = first;
    break;
  case kTiffPlanar:
    tiff.is_planar = first == 2;
    break;
  case kTiffPredictor:
    tiff.predictor = first;
    break;
  case kTiffColors:
    tiff.colors = field;
    break;
  case kTiffJpegTables:
    tiff.jpeg_tables = field;
    break;
  case kTiffSampleFormat:
    return first == 1;
  default:
    break;
  }
  return true;
}

inline bool read_tiff_directory(Tiff& tiff) {
  Bytes in = tiff.file;
  in.skip(4);
  in = tiff.file.from(tiff.u32(in));
  const uint32_t count = tiff.u16(in);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t tag = tiff.u16(in);
    TiffField field;
    field.type = tiff.u16(in);
    field.count = tiff.u32(in);
    field.values = in.part(4);
    const uint32_t bytes = field.type == 1 ? 1 : field.type == 3 ? 2 : 4;
    if (field.count > 4 / bytes) field.values = tiff.file.from(tiff.u32(field.values));
    if (in.ended || !take_tiff_field(tiff, tag, field)) return false;
  }
  return true;
}

inline bool is_jpeg(const Tiff& tiff) { return tiff.compression == 7; }

inline bool is_supported(const Tiff& tiff) {
  const uint32_t bits = tiff.bits;
  if (is_jpeg(tiff) && (bits != 8 || tiff.is_planar || tiff.samples > 3)) return false;
  if (tiff.fill_order != 1) return false; // the lowest bit first is for fax machines
  const bool part = bits == 1 || bits == 2 || bits == 4;
  if (!part && bits != 8 && bits != 16) return false;
  if (part && tiff.samples != 1) return false;
  if (tiff.samples < 1 || tiff.samples > 16) return false;
  if (tiff.predictor != 1 && (tiff.predictor != 2 || part)) return false;
  switch (tiff.photometric) {
  case 0: // white is 0
  case 1: // black is 0
    return true;
  case 2: // RGB
    return tiff.samples >= 3;
  case 3: // palette
    return bits <= 8 && tiff.colors.count == 3u << bits;
  case 5: // inks
    return tiff.samples >= 4;
  case 6: // luma and chroma
    return is_jpeg(tiff) && tiff.samples == 3;
  default:
    return false;
  }
}

// The pixels before colours are made of them: four samples of a byte each.
constexpr uint32_t kTiffKept = 4;

// Where the samples of one strip or tile go.
struct TiffBlock {
  uint32_t y, x, first_sample, samples;
};

// A row of bytes as samples: differences are summed up, 16 bits become 8.
inline void keep_tiff_row(const Tiff& tiff, const TiffBlock& block, uint32_t y,
                          const uint8_t* row, uint32_t* sums, uint8_t* kept) {
  for (uint32_t s = 0; s < block.samples; ++s) sums[s] = 0;
  for (uint32_t i = 0; i < tiff.block_width; ++i) {
    for (uint32_t s = 0; s < block.samples; ++s) {
      const size_t at = static_cast<size_t>(i) * block.samples + s;
      uint32_t value = 0;
      if (tiff.bits == 8) {
        value = row[at];
      } else if (tiff.bits == 16) {
        value = tiff.is_big_endian ? row[2 * at] * 256u + row[2 * at + 1]
                                   : row[2 * at + 1] * 256u + row[2 * at];
      } else {
        const uint32_t shift = 8 - tiff.bits - i * tiff.bits % 8;
        value = row[i * tiff.bits / 8] >> shift & ((1u << tiff.bits) - 1);
      }
      if (tiff.predictor == 2) value = sums[s] += value;
      if (tiff.bits == 16) value = value >> 8;
      const uint32_t sample = block.first_sample + s, x = block.x + i;
      if (sample < kTiffKept && x < tiff.width)
        kept[(static_cast<size_t>(y) * tiff.width + x) * kTiffKept + sample] =
            static_cast<uint8_t>(value);
    }
  }
}

struct TiffWork {
  uint8_t* kept;
  uint8_t* row;
  TiffLzw* lzw;
  Inflate<Bytes>* inflate;
  uint32_t sums[16];
};

template <class Stream>
bool decode_tiff_rows(const Tiff& tiff, TiffWork& work, const TiffBlock& block,
                      Stream& stream) {
  const size_t bytes =
      (static_cast<size_t>(tiff.block_width) * block.samples * tiff.bits + 7) / 8;
  for (uint32_t y = block.y; y < block.y + tiff.block_height && y < tiff.height; ++y) {
    for (size_t i = 0; i < bytes; ++i) {
      const int32_t byte = stream.next();
      if (byte < 0) return false;
      work.row[i] = static_cast<uint8_t>(byte);
    }
    keep_tiff_row(tiff, block, y, work.row, work.sums, work.kept);
  }
  return true;
}

// A picture of its own, which may be larger than what is left of this one.
inline bool decode_tiff_jpeg(Job& job, const Tiff& tiff, TiffWork& work,
                             const TiffBlock& block, Bytes in) {
  Job part = job; // its memory is free again behind this
  part.bytes = in;
  part.format = PixelFormat::Rgb;
  part.max_height = static_cast<int32_t>(tiff.block_height);
  part.max_width = static_cast<int32_t>(tiff.block_width);
  part.is_dense = false;
  const size_t stride = static_cast<size_t>(tiff.block_width) * 3;
  part.pixels = part.take<uint8_t>(stride * tiff.block_height);
  const Bytes tables = Bytes(tiff.jpeg_tables.values).part(tiff.jpeg_tables.count);
  part.height = part.width = 0;
  const bool done =
      part.pixels != nullptr && decode_jpeg_part(part, tables, tiff.photometric == 2);
  // Too large for the memory; one that is too large for its place is wrong.
  job.too_large = part.pixels == nullptr || (part.too_large && part.height != 0);
  const uint32_t height = least(part.height, static_cast<int32_t>(tiff.height - block.y));
  const uint32_t width = least(part.width, static_cast<int32_t>(tiff.width - block.x));
  for (uint32_t y = 0; done && y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t s = 0; s < 3; ++s)
        work.kept[((block.y + y) * size_t{tiff.width} + block.x + x) * kTiffKept + s] =
            part.pixels[y * stride + 3 * x + s];
  return done;
}

inline bool decode_tiff_block(Job& job, const Tiff& tiff, TiffWork& work,
                              const TiffBlock& block, uint32_t number) {
  Bytes in = tiff.file.from(tiff.value(tiff.offsets, number));
  if (tiff.sizes.count != 0) in = in.part(tiff.value(tiff.sizes, number));
  switch (tiff.compression) {
  case 1:
    return decode_tiff_rows(tiff, work, block, in);
  case 5:
    work.lzw->open(in);
    return decode_tiff_rows(tiff, work, block, *work.lzw);
  case 7:
    return decode_tiff_jpeg(job, tiff, work, block, in);
  case 8:
  case 32946:
    return work.inflate->open(&in) && decode_tiff_rows(tiff, work, block, *work.inflate);
  case 32773: {
    TiffPackBits packed{in};
    return decode_tiff_rows(tiff, work, block, packed);
  }
  default:
    return false;
  }
}

inline bool decode_tiff_blocks(Job& job, const Tiff& tiff, TiffWork& work) {
  const uint32_t planes = tiff.is_planar ? tiff.samples : 1;
  uint32_t number = 0;
  for (uint32_t plane = 0; plane < planes; ++plane)
    for (uint32_t y = 0; y < tiff.height; y += tiff.block_height)
      for (uint32_t x = 0; x < tiff.width; x += tiff.block_width) {
        const TiffBlock block{y, x, plane, tiff.is_planar ? 1 : tiff.samples};
        if (number >= tiff.offsets.count) return false;
        if (!decode_tiff_block(job, tiff, work, block, number++)) return false;
      }
  return true;
}

inline void put_tiff_pixel(Job& job, const Tiff& tiff, const uint8_t* from, int32_t y,
                           int32_t x) {
  const uint32_t most_value = tiff.bits < 8 ? (1u << tiff.bits) - 1 : 255;
  // JPEG's luma and chroma are colours by now.
  if (tiff.photometric == 2 || tiff.photometric == 6)
    return job.put(y, x, from[0], from[1], from[2]);
  if (tiff.photometric == 5) return job.put_ink(y, x, from);
  if (tiff.photometric == 3) {
    const auto color = [&](uint32_t channel) {
      const uint32_t i = (channel << tiff.bits) + from[0];
      return static_cast<uint8_t>(tiff.value(tiff.colors, i) >> 8);
    };
    return job.put(y, x, color(0), color(1), color(2));
  }
  const uint32_t gray = from[0] * 255u / most_value;
  job.put_gray(y, x, static_cast<uint8_t>(tiff.photometric == 0 ? 255 - gray : gray));
}

inline bool decode_tiff(Job& job) {
  Tiff* const tiff = job.take<Tiff>(1);
  if (tiff == nullptr) return false;
  *tiff = {};
  tiff->file = job.bytes;
  tiff->is_big_endian = job.bytes.at[0] == 'M';
  if (!read_tiff_directory(*tiff) || !job.begin(tiff->height, tiff->width) ||
      !is_supported(*tiff))
    return false;
  const bool is_tiled = tiff->block_width != 0;
  if (!is_tiled) tiff->block_width = tiff->width;
  if (tiff->block_height == 0 || (!is_tiled && tiff->block_height > tiff->height))
    tiff->block_height = tiff->height;
  if (tiff->block_width > 65536 || tiff->block_height > 65536) return false;
  TiffWork* const work = job.take<TiffWork>(1);
  if (work == nullptr) return false;
  const size_t pixels = static_cast<size_t>(tiff->width) * tiff->height;
  work->kept = job.take<uint8_t>(pixels * kTiffKept);
  work->row =
      job.take<uint8_t>(static_cast<size_t>(tiff->block_width) * tiff->samples * 2);
  work->lzw = job.take<TiffLzw>(1);
  work->inflate = job.take<Inflate<Bytes>>(1);
  if (work->inflate == nullptr || work->lzw == nullptr || work->row == nullptr ||
      work->kept == nullptr)
    return false;
  if (!decode_tiff_blocks(job, *tiff, *work)) return false;
  const uint8_t* from = work->kept;
  for (int32_t y = 0; y < job.height; ++y)
    for (int32_t x = 0; x < job.width; ++x, from += kTiffKept)
      put_tiff_pixel(job, *tiff, from, y, x);
  return true;
}

} // namespace svod::image
