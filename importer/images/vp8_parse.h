// What a lossy WebP picture says, one key frame of VP8 (RFC 6386): bits by their
// probability (7), the frame's header (9, 19.2), modes of prediction (11) and
// coefficients (13) of each block of 16 x 16 pixels.
#pragma once

#include "importer/images/vp8_tables.h"

namespace svod::image {

// 7.3: a window of two bytes over the stream.
struct Vp8Bits {
  Bytes in;
  uint32_t value = 0, range = 255;
  int32_t shifted = 0;
  uint32_t beyond = 0; // bytes that were not there

  void open(Bytes from) {
    *this = {from};
    value = next_byte() << 8;
    value |= next_byte();
  }
  uint32_t next_byte() {
    if (in.at < in.end) return *in.at++;
    ++beyond;
    return 0;
  }
  // Encoders leave out zeros at the end; more than some are a stream cut off.
  bool is_cut_off() const { return beyond > 16; }
  uint32_t read(uint32_t probability) {
    const uint32_t split = 1 + ((range - 1) * probability >> 8);
    const bool is_one = value >= split << 8;
    if (is_one)
      range -= split, value -= split << 8;
    else
      range = split;
    while (range < 128) {
      value <<= 1, range <<= 1;
      if (++shifted == 8) shifted = 0, value |= next_byte();
    }
    return is_one;
  }
  uint32_t take(int32_t n) {
    uint32_t out = 0;
    for (; n > 0; --n) out = out << 1 | read(128);
    return out;
  }
  // A flag, then n bits and a sign; 0 without the flag.
  int32_t take_optional(int32_t n) { return take(1) != 0 ? take_signed(n) : 0; }
  int32_t take_signed(int32_t n) {
    const auto value_bits = static_cast<int32_t>(take(n));
    return take(1) != 0 ? -value_bits : value_bits;
  }
};

enum Vp8Mode : uint8_t { kVp8Dc, kVp8Motion, kVp8Vertical, kVp8Horizontal };
// Of 4 x 4 pixels: those, and lines of other directions.
enum Vp8SubMode : uint8_t {
  kVp8LeftDown = 4,
  kVp8RightDown,
  kVp8VerticalRight,
  kVp8VerticalLeft,
  kVp8HorizontalDown,
  kVp8HorizontalUp,
};

struct Vp8Steps {
  int32_t luma[2], second[2], chroma[2]; // of the first coefficient, of the others
};

struct Vp8Segment {
  int32_t quantizer, filter;
  Vp8Steps steps;
};

// What the filter needs to know of a block.
struct Vp8Block {
  uint8_t segment;
  bool has_sub_modes, has_coefficients;
};

struct Vp8Frame {
  uint32_t width, height;
  int32_t blocks_across, blocks_down;
  bool has_segments, updates_map, is_absolute;
  uint8_t segment_probabilities[3];
  Vp8Segment segments[4];
  bool is_simple_filter, has_filter_deltas;
  int32_t filter_level, sharpness, reference_delta, mode_delta;
  uint32_t part_count;
  bool has_skips;
  uint32_t skip_probability;
  uint8_t probabilities[4][8][3][11];
  Vp8Bits head, parts[8];
  Vp8Block* blocks;
  // What is above and to the left: modes of 4 x 4 pixels, and which blocks of them had
  // coefficients (four of luma, two of each chroma, the second order's one).
  uint8_t* modes_above;
  uint8_t modes_left[4];
  uint8_t (*coded_above)[9];
  uint8_t coded_left[9];
  // Of the current block.
  bool is_skipped;
  uint8_t luma_mode, chroma_mode, sub_modes[16];
  int16_t coefficients[25][16];
};

// 9.3
inline void read_vp8_segments(Vp8Frame& frame) {
  Vp8Bits& in = frame.head;
  frame.has_segments = in.take(1) != 0;
  for (uint8_t& probability : frame.segment_probabilities) probability = 255;
  if (!frame.has_segments) return;
  frame.updates_map = in.take(1) != 0;
  if (in.take(1) != 0) {
    frame.is_absolute = in.take(1) != 0;
    for (Vp8Segment& segment : frame.segments) segment.quantizer = in.take_optional(7);
    for (Vp8Segment& segment : frame.segments) segment.filter = in.take_optional(6);
  }
  if (!frame.updates_map) return;
  for (uint8_t& probability : frame.segment_probabilities)
    if (in.take(1) != 0) probability = static_cast<uint8_t>(in.take(8));
}

// 9.4 and 9.6: of the deltas only those of a key frame's blocks matter.
inline void read_vp8_filter(Vp8Frame& frame) {
  Vp8Bits& in = frame.head;
  frame.is_simple_filter = in.take(1) != 0;
  frame.filter_level = static_cast<int32_t>(in.take(6));
  frame.sharpness = static_cast<int32_t>(in.take(3));
  frame.has_filter_deltas = in.take(1) != 0;
  if (!frame.has_filter_deltas || in.take(1) == 0) return;
  for (int32_t i = 0; i < 8; ++i) {
    const int32_t delta = in.take_optional(6);
    if (i == 0) frame.reference_delta = delta;
    if (i == 4) frame.mode_delta = delta;
  }
}

// 9.6 and 14.1
inline void read_vp8_steps(Vp8Frame& frame) {
  Vp8Bits& in = frame.head;
  const auto base = static_cast<int32_t>(in.take(7));
  int32_t deltas[5];
  for (int32_t& delta : deltas) delta = in.take_optional(4);
  for (Vp8Segment& segment : frame.segments) {
    int32_t index = base;
    if (frame.has_segments) index = segment.quantizer + (frame.is_absolute ? 0 : base);
    const auto dc = [&](int32_t i, int32_t high) -> int32_t {
      return kVp8DcSteps[clamped(index + deltas[i], 0, high)];
    };
    const auto ac = [&](int32_t delta) -> int32_t {
      return kVp8AcSteps[clamped(index + delta, 0, 127)];
    };
    Vp8Steps& steps = segment.steps;
    steps.luma[0] = dc(0, 127), steps.luma[1] = ac(0);
    steps.second[0] = 2 * dc(1, 127);
    steps.second[1] = most(ac(deltas[2]) * 155 / 100, 8);
    steps.chroma[0] = dc(3, 117), steps.chroma[1] = ac(deltas[4]);
  }
}

// 13.4
inline void read_vp8_probabilities(Vp8Frame& frame) {
  for (int32_t kind = 0; kind < 4; ++kind)
    for (int32_t band = 0; band < 8; ++band)
      for (int32_t context = 0; context < 3; ++context)
        for (int32_t node = 0; node < 11; ++node) {
          uint8_t& out = frame.probabilities[kind][band][context][node];
          out = kVp8Coefficients[kind][band][context][node];
          if (frame.head.read(kVp8Replaced[kind][band][context][node]) != 0)
            out = static_cast<uint8_t>(frame.head.take(8));
        }
}

// 9.5: the sizes of all parts but the last, then the parts.
inline bool open_vp8_parts(Vp8Frame& frame, Bytes in) {
  Bytes sizes = in;
  in.skip(size_t{3} * (frame.part_count - 1));
  if (in.ended) return false;
  for (uint32_t i = 0; i < frame.part_count; ++i) {
    size_t size = in.left();
    if (i + 1 < frame.part_count) {
      size = sizes.u16_little();
      size |= static_cast<size_t>(sizes.u8()) << 16;
    }
    if (size > in.left()) return false;
    frame.parts[i].open(in.part(size));
  }
  return true;
}

// 9.1: key frame, version, whether it is shown, size of the head's part; the size.
inline bool read_vp8_start(Vp8Frame& frame, Bytes& in, uint32_t& head_size) {
  const uint32_t tag = in.u16_little() | in.u8() << 16;
  head_size = tag >> 5;
  if ((tag & 1) != 0 || (tag >> 1 & 7) > 3 || (tag >> 4 & 1) == 0) return false;
  if (in.u8() != 0x9d || in.u8() != 0x01 || in.u8() != 0x2a) return false;
  frame.width = in.u16_little() & 0x3fff, frame.height = in.u16_little() & 0x3fff;
  return !in.ended && head_size <= in.left();
}

inline bool read_vp8_header(Vp8Frame& frame, Bytes in, uint32_t head_size) {
  frame.head.open(in.part(head_size));
  frame.head.take(2); // colours, and whether values need to be clamped
  read_vp8_segments(frame);
  read_vp8_filter(frame);
  frame.part_count = 1u << frame.head.take(2);
  if (!open_vp8_parts(frame, in)) return false;
  read_vp8_steps(frame);
  frame.head.take(1); // of frames to come
  read_vp8_probabilities(frame);
  frame.has_skips = frame.head.take(1) != 0;
  frame.skip_probability = frame.has_skips ? frame.head.take(8) : 0;
  return !frame.head.is_cut_off();
}

// 11.2, 11.3
inline uint8_t read_vp8_sub_mode(Vp8Bits& in, uint8_t above, uint8_t left) {
  static constexpr int8_t kTree[18] = {0,  2,  -1, 4,  -2, 6,  8,  12, -3,
                                       10, -5, -6, -4, 14, -7, 16, -8, -9};
  const uint8_t* const probabilities = kVp8SubblockModes[above][left];
  int32_t node = 0;
  do {
    node = kTree[node + static_cast<int32_t>(in.read(probabilities[node >> 1]))];
  } while (node > 0);
  return static_cast<uint8_t>(-node);
}

inline void read_vp8_modes(Vp8Frame& frame, Vp8Block& block, uint8_t* above) {
  Vp8Bits& in = frame.head;
  block.segment = 0;
  const uint8_t* const probabilities = frame.segment_probabilities;
  if (frame.updates_map)
    block.segment = static_cast<uint8_t>(in.read(probabilities[0]) == 0
                                             ? in.read(probabilities[1])
                                             : 2 + in.read(probabilities[2]));
  frame.is_skipped = frame.has_skips && in.read(frame.skip_probability) != 0;
  block.has_sub_modes = in.read(145) == 0;
  if (block.has_sub_modes) {
    for (int32_t i = 0; i < 16; ++i) {
      uint8_t& left = frame.modes_left[i / 4];
      left = above[i % 4] = frame.sub_modes[i] =
          read_vp8_sub_mode(in, above[i % 4], left);
    }
  } else {
    if (in.read(156) == 0)
      frame.luma_mode = in.read(163) == 0 ? kVp8Dc : kVp8Vertical;
    else
      frame.luma_mode = in.read(128) == 0 ? kVp8Horizontal : kVp8Motion;
    for (int32_t i = 0; i < 4; ++i) above[i] = frame.modes_left[i] = frame.luma_mode;
  }
  if (in.read(142) == 0)
    frame.chroma_mode = kVp8Dc;
  else if (in.read(114) == 0)
    frame.chroma_mode = kVp8Vertical;
  else
    frame.chroma_mode = in.read(183) == 0 ? kVp8Horizontal : kVp8Motion;
}

// 13.2: a value of at least 2.
inline int32_t read_vp8_large(Vp8Bits& in, const uint8_t* p) {
  static constexpr uint8_t kExtra[4][12] = {
      {173, 148, 140},
      {176, 155, 140, 135},
      {180, 157, 141, 134, 130},
      {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}};
  if (in.read(p[3]) == 0) {
    if (in.read(p[4]) == 0) return 2;
    return static_cast<int32_t>(3 + in.read(p[5]));
  }
  if (in.read(p[6]) == 0) {
    if (in.read(p[7]) == 0) return static_cast<int32_t>(5 + in.read(159));
    const uint32_t high = in.read(165);
    return static_cast<int32_t>(7 + 2 * high + in.read(145));
  }
  const uint32_t high = in.read(p[8]);
  const uint32_t range = 2 * high + in.read(p[9 + high]);
  uint32_t offset = 0;
  for (const uint8_t* extra = kExtra[range]; *extra != 0; ++extra)
    offset = 2 * offset + in.read(*extra);
  return static_cast<int32_t>(3 + (8u << range) + offset);
}

// 13: the coefficients of 4 x 4 pixels from `first` on; the place behind the last one.
inline int32_t read_vp8_coefficients(Vp8Bits& in, const uint8_t (*probabilities)[3][11],
                                     uint32_t context, const int32_t* steps,
                                     int32_t first, int16_t* out) {
  static constexpr uint8_t kBands[16] = {0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7};
  static constexpr uint8_t kZigzag[16] = {0, 1,  4,  8,  5, 2,  3,  6,
                                          9, 12, 13, 10, 7, 11, 14, 15};
  for (int32_t i = first; i < 16; ++i) {
    const uint8_t* p = probabilities[kBands[i]][context];
    if (in.read(p[0]) == 0) return i;
    while (in.read(p[1]) == 0) {
      if (++i == 16) return 16;
      p = probabilities[kBands[i]][0];
    }
    const bool is_large = in.read(p[2]) != 0;
    const int32_t size = is_large ? read_vp8_large(in, p) : 1;
    context = is_large ? 2 : 1;
    const int32_t value = in.take(1) != 0 ? -size : size;
    out[kZigzag[i]] = static_cast<int16_t>(value * steps[i > 0]);
  }
  return 16;
}

} // namespace svod::image
