// What the parts of the JPEG 2000 decoder share (ITU-T T.800), and the main header of a
// codestream (annex A). Not decoded: regions of interest, progressions that change,
// packet headers apart from their packets, and styles of code blocks with several
// segments.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

constexpr int32_t kJp2MostLevels = 32;
constexpr int32_t kJp2MostBands = 3 * kJp2MostLevels + 1;
constexpr uint32_t kJp2MostComponents = 4;

// a / 2^shift, rounded up; of coordinates, which are below 2^31.
inline int32_t jp2_shrunk(int64_t a, int32_t shift) {
  return static_cast<int32_t>((a + (int64_t{1} << shift) - 1) >> shift);
}

// How one component is coded (A.6.1, A.6.4).
struct Jp2Coding {
  int32_t levels;           // of the wavelet
  int32_t block_x, block_y; // size of code blocks, log2
  uint32_t style;           // of code blocks
  bool is_reversible;
  uint8_t precincts[kJp2MostLevels + 1]; // sizes, log2: x in the low half, y in the high
  uint32_t quantization; // 0: none, 1: derived from the first band, 2: by band
  int32_t guard_bits;
  uint16_t steps[kJp2MostBands]; // 5 bits of an exponent, 11 of a mantissa
};

struct Jp2Component {
  int32_t depth;
  bool is_signed;
  uint32_t step_x, step_y; // of its samples, in pixels
  Jp2Coding coding;
};

struct Jp2Tile {
  Bytes* parts; // packets, in order
  uint32_t part_count;
};

struct Jp2 {
  uint32_t x0, y0, x1, y1; // the picture, in the grid of reference
  uint32_t tile_x0, tile_y0, tile_width, tile_height;
  uint32_t tiles_across, tiles_down;
  uint32_t component_count;
  Jp2Component components[kJp2MostComponents];
  uint32_t progression, layers;
  bool mixes_components;
  bool marks_packets, ends_headers; // SOP and EPH markers may be there
};

// A.5.1
inline bool read_jp2_size(Jp2& jp2, Bytes in) {
  in.skip(2);
  jp2.x1 = in.u32_big(), jp2.y1 = in.u32_big();
  jp2.x0 = in.u32_big(), jp2.y0 = in.u32_big();
  jp2.tile_width = in.u32_big(), jp2.tile_height = in.u32_big();
  jp2.tile_x0 = in.u32_big(), jp2.tile_y0 = in.u32_big();
  jp2.component_count = in.u16_big();
  constexpr uint32_t kMost = 1u << 30;
  if (jp2.x1 > kMost || jp2.y1 > kMost || jp2.x0 >= jp2.x1 || jp2.y0 >= jp2.y1)
    return false;
  if (jp2.tile_width == 0 || jp2.tile_height == 0 || jp2.tile_x0 > jp2.x0 ||
      jp2.tile_y0 > jp2.y0)
    return false;
  if (jp2.x0 - jp2.tile_x0 >= jp2.tile_width || jp2.y0 - jp2.tile_y0 >= jp2.tile_height)
    return false;
  if (jp2.component_count < 1 || jp2.component_count > kJp2MostComponents) return false;
  for (uint32_t i = 0; i < jp2.component_count; ++i) {
    Jp2Component& component = jp2.components[i];
    const uint32_t depth = in.u8();
    component.depth = static_cast<int32_t>(depth & 127) + 1;
    component.is_signed = depth >> 7 != 0;
    component.step_x = in.u8(), component.step_y = in.u8();
    if (component.depth > 16 || component.step_x == 0 || component.step_y == 0)
      return false;
  }
  jp2.tiles_across = divided_up(jp2.x1 - jp2.tile_x0, jp2.tile_width);
  jp2.tiles_down = divided_up(jp2.y1 - jp2.tile_y0, jp2.tile_height);
  constexpr uint32_t kMostTiles = 65535;
  return !in.ended && jp2.tiles_across <= kMostTiles &&
         jp2.tiles_down <= kMostTiles / jp2.tiles_across;
}

// A.6.1, table A.15
inline bool read_jp2_coding(Jp2Coding& coding, bool has_precincts, Bytes& in) {
  coding.levels = static_cast<int32_t>(in.u8());
  coding.block_x = static_cast<int32_t>(in.u8()) + 2;
  coding.block_y = static_cast<int32_t>(in.u8()) + 2;
  coding.style = in.u8();
  const uint32_t wavelet = in.u8();
  coding.is_reversible = wavelet == 1;
  constexpr uint32_t kSeveralSegments = 0x01 | 0x04, kCausal = 0x08;
  if (coding.levels > kJp2MostLevels || wavelet > 1 || coding.block_x > 10 ||
      coding.block_y > 10 || coding.block_x + coding.block_y > 12 ||
      (coding.style & (kSeveralSegments | kCausal)) != 0)
    return false;
  for (int32_t i = 0; i <= coding.levels; ++i) {
    const uint32_t size = has_precincts ? in.u8() : 0xff;
    // Bands above the first have half the size.
    if (i > 0 && ((size & 15) == 0 || size >> 4 == 0)) return false;
    coding.precincts[i] = static_cast<uint8_t>(size);
  }
  return !in.ended;
}

inline bool read_jp2_defaults(Jp2& jp2, Bytes in) {
  const uint32_t style = in.u8();
  jp2.marks_packets = (style & 2) != 0, jp2.ends_headers = (style & 4) != 0;
  jp2.progression = in.u8();
  jp2.layers = in.u16_big();
  jp2.mixes_components = in.u8() != 0;
  Jp2Coding coding = jp2.components[0].coding;
  if (!read_jp2_coding(coding, (style & 1) != 0, in)) return false;
  for (uint32_t i = 0; i < jp2.component_count; ++i) {
    Jp2Coding& to = jp2.components[i].coding;
    to.levels = coding.levels, to.style = coding.style;
    to.block_x = coding.block_x, to.block_y = coding.block_y;
    to.is_reversible = coding.is_reversible;
    for (int32_t j = 0; j <= coding.levels; ++j) to.precincts[j] = coding.precincts[j];
  }
  return jp2.progression <= 4 && jp2.layers > 0;
}

// A.6.4
inline bool read_jp2_quantization(Jp2Coding& coding, Bytes in) {
  const uint32_t style = in.u8();
  coding.quantization = style & 31;
  coding.guard_bits = static_cast<int32_t>(style >> 5);
  if (coding.quantization > 2) return false;
  for (uint16_t& step : coding.steps) step = 0;
  for (int32_t i = 0; i < kJp2MostBands && in.left() > 0; ++i) {
    const uint32_t step = coding.quantization == 0 ? in.u8() << 8 : in.u16_big();
    coding.steps[i] = static_cast<uint16_t>(step);
  }
  return !in.ended;
}

// A marker segment of the main header, but for the size.
inline bool read_jp2_segment(Jp2& jp2, uint32_t marker, Bytes in) {
  switch (marker) {
  case 0xff52: // COD
    return read_jp2_defaults(jp2, in);
  case 0xff53: { // COC
    const uint32_t component = in.u8(), style = in.u8();
    return component < jp2.component_count &&
           read_jp2_coding(jp2.components[component].coding, (style & 1) != 0, in);
  }
  case 0xff5c: // QCD
    for (uint32_t i = 0; i < jp2.component_count; ++i)
      if (!read_jp2_quantization(jp2.components[i].coding, in)) return false;
    return true;
  case 0xff5d: { // QCC
    const uint32_t component = in.u8();
    return component < jp2.component_count &&
           read_jp2_quantization(jp2.components[component].coding, in);
  }
  case 0xff5e: // RGN
  case 0xff5f: // POC
  case 0xff60: // PPM
  case 0xff61: // PPT
    return false;
  default:
    return true;
  }
}

// Up to the first tile's part, whose marker is read already.
inline bool read_jp2_header(Jp2& jp2, Bytes& in) {
  if (in.u16_big() != 0xff4f) return false;
  bool has_size = false, has_coding = false, has_quantization = false;
  for (;;) {
    const uint32_t marker = in.u16_big();
    if (marker == 0xff90) return has_size && has_coding && has_quantization;
    const uint32_t length = in.u16_big();
    if (in.ended || marker < 0xff00 || length < 2) return false;
    const Bytes segment = in.part(length - 2);
    if (marker == 0xff51) {
      if (has_size || !read_jp2_size(jp2, segment)) return false;
      has_size = true;
      continue;
    }
    if (!has_size || !read_jp2_segment(jp2, marker, segment)) return false;
    has_coding |= marker == 0xff52, has_quantization |= marker == 0xff5c;
  }
}

} // namespace svod::image
