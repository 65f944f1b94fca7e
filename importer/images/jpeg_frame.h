// What the parts of the JPEG decoder share (ITU-T T.81): the frame with its components,
// and the tables that segments between the markers define.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

// Where a zigzag position lies in a block, row by row (figure A.6).
inline constexpr uint8_t kJpegZigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Codes of up to 16 bits (annex C): those of one length are consecutive numbers.
struct JpegCode {
  static constexpr int32_t kFastBits = 9;
  uint16_t fast[1 << kFastBits]; // length << 8 | symbol; 0: a longer code
  int32_t first[18];             // code of each length
  int32_t start[18];             // its symbol
  uint8_t symbols[256];
  bool is_defined;
};

struct JpegComponent {
  uint32_t id;
  int32_t across, down;               // sampling factors
  uint32_t table;                     // of quantisation
  int32_t width, height;              // in samples
  int32_t blocks_across, blocks_down; // that hold samples
  int32_t stride;                     // blocks in a row, filled up to whole units
  int16_t* coefficients;              // 64 of each block
  uint8_t* samples;                   // rows of 8 * stride
  int32_t predictor;                  // of the next DC coefficient
  uint32_t dc, ac;                    // numbers of tables
};

struct Jpeg {
  uint32_t width, height;
  int32_t component_count;
  JpegComponent components[4];
  int32_t most_across, most_down;
  int32_t units_across, units_down;
  bool is_progressive;
  bool is_whole;                // its end is there
  uint16_t quantization[4][64]; // in the order of a block's rows
  JpegCode dc[4], ac[4];
  uint32_t restart_interval;
  bool has_jfif, has_adobe;
  uint32_t transform; // Adobe's
  uint32_t scans;
};

// One scan's part of the coefficients (tables B.3 and G.1).
struct JpegScan {
  JpegComponent* components[4];
  int32_t count;
  int32_t first, last; // zigzag positions
  int32_t high, low;   // bits that were sent before, and that are not sent yet
};

// The next marker, or 0 at the end.
inline uint32_t next_jpeg_marker(Bytes& in) {
  while (in.left() >= 2) {
    if (in.at[0] == 0xff && in.at[1] != 0 && in.at[1] != 0xff) return in.u16_big();
    ++in.at;
  }
  return 0;
}

} // namespace svod::image
