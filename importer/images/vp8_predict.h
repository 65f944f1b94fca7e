// The pixels of a VP8 block: guessed from those above and to the left (RFC 6386, 12),
// plus what the coefficients transform to (14).
#pragma once

#include "importer/images/vp8_parse.h"

namespace svod::image {

// Pixels with a border above and to the left: `at` is the first of a block.
struct Vp8Plane {
  uint8_t* pixels; // of the picture's first pixel
  ptrdiff_t stride;
  uint8_t* at(int32_t y, int32_t x) const { return pixels + y * stride + x; }
};

// 14.3: the first coefficients of all luma blocks have a transform of their own.
inline void transform_vp8_second(const int16_t* in, int16_t (*blocks)[16]) {
  int32_t columns[16];
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t a = in[i] + in[12 + i], b = in[4 + i] + in[8 + i];
    const int32_t c = in[4 + i] - in[8 + i], d = in[i] - in[12 + i];
    columns[i] = a + b, columns[4 + i] = c + d;
    columns[8 + i] = a - b, columns[12 + i] = d - c;
  }
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t* row = columns + 4 * i;
    const int32_t a = row[0] + row[3], b = row[1] + row[2];
    const int32_t c = row[1] - row[2], d = row[0] - row[3];
    const int32_t out[4] = {a + b, c + d, a - b, d - c};
    for (int32_t j = 0; j < 4; ++j)
      blocks[4 * i + j][0] = static_cast<int16_t>((out[j] + 3) >> 3);
  }
}

// 14.4: sqrt(2) times cosine and sine of 22.5 degrees, in steps of 2^-16. What no encoder
// makes may be out of range, and wraps around.
inline void transform_vp8_line(const int32_t* in, int32_t step, int32_t* out) {
  const auto share = [](int32_t x, uint32_t factor) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) * factor) >> 16;
  };
  const auto cosine = [&](int32_t x) { return x + share(x, 20091); };
  const auto sine = [&](int32_t x) { return share(x, 35468); };
  const int32_t a = in[0] + in[2 * step], b = in[0] - in[2 * step];
  const int32_t c = sine(in[step]) - cosine(in[3 * step]);
  const int32_t d = cosine(in[step]) + sine(in[3 * step]);
  out[0] = a + d, out[step] = b + c, out[2 * step] = b - c, out[3 * step] = a - d;
}

inline void add_vp8_residue(const int16_t* coefficients, uint8_t* to, ptrdiff_t stride) {
  int32_t in[16], columns[16], out[16];
  for (int32_t i = 0; i < 16; ++i) in[i] = coefficients[i];
  for (int32_t i = 0; i < 4; ++i) transform_vp8_line(in + i, 4, columns + i);
  for (int32_t i = 0; i < 4; ++i) transform_vp8_line(columns + 4 * i, 1, out + 4 * i);
  for (int32_t y = 0; y < 4; ++y)
    for (int32_t x = 0; x < 4; ++x) {
      uint8_t& pixel = to[y * stride + x];
      pixel = byte_of(pixel + ((out[4 * y + x] + 4) >> 3));
    }
}

// 12.2: a whole block of `size` pixels. Only the mean knows where the picture begins.
inline void predict_vp8_block(uint8_t* to, ptrdiff_t stride, int32_t size, uint8_t mode,
                              bool has_above, bool has_left) {
  const uint8_t* const above = to - stride;
  int32_t mean = 128;
  if (mode == kVp8Dc && (has_above || has_left)) {
    int32_t sum = 0, count = 0;
    for (int32_t i = 0; i < size && has_above; ++i, ++count) sum += above[i];
    for (int32_t i = 0; i < size && has_left; ++i, ++count) sum += to[i * stride - 1];
    mean = (sum + count / 2) / count;
  }
  const int32_t corner = above[-1];
  for (int32_t y = 0; y < size; ++y) {
    uint8_t* const row = to + y * stride;
    const int32_t left = row[-1];
    for (int32_t x = 0; x < size; ++x) {
      if (mode == kVp8Dc)
        row[x] = static_cast<uint8_t>(mean);
      else if (mode == kVp8Vertical)
        row[x] = above[x];
      else if (mode == kVp8Horizontal)
        row[x] = static_cast<uint8_t>(left);
      else
        row[x] = byte_of(left + above[x] - corner);
    }
  }
}

// 12.3: 4 x 4 pixels. `edge` are the pixels around: 4 from the lowest on the left up, the
// corner, 8 above from the left.
class Vp8SubBlock {
public:
  Vp8SubBlock(const uint8_t* edge, uint8_t* to, ptrdiff_t stride)
      : edge_(edge), to_(to), stride_(stride) {}

  void predict(uint8_t mode) {
    switch (mode) {
    case kVp8Dc: {
      int32_t sum = 4;
      for (int32_t i = 0; i < 4; ++i) sum += edge_[i] + edge_[5 + i];
      return fill([&](int32_t, int32_t) { return sum >> 3; });
    }
    case kVp8Motion:
      return fill([&](int32_t y, int32_t x) {
        return int32_t{byte_of(edge_[3 - y] + edge_[5 + x] - edge_[4])};
      });
    case kVp8Vertical:
      return fill([&](int32_t, int32_t x) { return smooth(5 + x); });
    case kVp8Horizontal:
      return fill([&](int32_t y, int32_t) {
        return y == 3 ? weigh(edge_[1], edge_[0], edge_[0]) : smooth(3 - y);
      });
    case kVp8LeftDown:
      return fill([&](int32_t y, int32_t x) {
        return x + y == 6 ? weigh(edge_[11], edge_[12], edge_[12]) : smooth(6 + x + y);
      });
    case kVp8RightDown:
      return fill([&](int32_t y, int32_t x) { return smooth(4 + x - y); });
    default:
      return predict_steep(mode);
    }
  }

private:
  // Lines that go two pixels one way and one the other: pixels lie on the edge or between
  // two of its pixels.
  void predict_steep(uint8_t mode) {
    switch (mode) {
    case kVp8VerticalRight:
      return fill([&](int32_t y, int32_t x) {
        const int32_t at = 2 * x - y;
        if (at < 0) return at == -1 ? smooth(4) : smooth(5 + at);
        return at % 2 == 0 ? between(4 + at / 2) : smooth(4 + (at + 1) / 2);
      });
    case kVp8VerticalLeft:
      return fill([&](int32_t y, int32_t x) {
        if (x == 3 && y >= 2) return smooth(y == 2 ? 10 : 11);
        const int32_t at = 5 + x + y / 2;
        return y % 2 == 0 ? between(at) : smooth(at + 1);
      });
    case kVp8HorizontalDown:
      return fill([&](int32_t y, int32_t x) {
        const int32_t at = 2 * y - x;
        if (at < 0) return at == -1 ? smooth(4) : smooth(3 - at);
        return at % 2 == 0 ? between(3 - at / 2) : smooth(4 - (at + 1) / 2);
      });
    default: // kVp8HorizontalUp
      return fill([&](int32_t y, int32_t x) {
        const int32_t at = x + 2 * y;
        if (at > 5) return int32_t{edge_[0]};
        if (at == 5) return weigh(edge_[1], edge_[0], edge_[0]);
        return at % 2 == 0 ? between(2 - at / 2) : smooth(2 - at / 2);
      });
    }
  }

  template <class F> void fill(F value) {
    uint8_t pixels[16]; // `edge` may be what is written
    for (int32_t i = 0; i < 16; ++i)
      pixels[i] = static_cast<uint8_t>(value(i / 4, i % 4));
    for (int32_t i = 0; i < 16; ++i) to_[i / 4 * stride_ + i % 4] = pixels[i];
  }
  static int32_t weigh(int32_t a, int32_t b, int32_t c) {
    return (a + 2 * b + c + 2) >> 2;
  }
  int32_t smooth(int32_t i) const { return weigh(edge_[i - 1], edge_[i], edge_[i + 1]); }
  int32_t between(int32_t i) const { return (edge_[i] + edge_[i + 1] + 1) >> 1; }

  const uint8_t* edge_;
  uint8_t* to_;
  ptrdiff_t stride_;
};

// Each of the 16 blocks needs those before it. Right of the fourth column is what is
// above and to the right of the whole block, for all rows.
inline void predict_vp8_sub_blocks(const Vp8Frame& frame, const Vp8Plane& luma,
                                   int32_t block_y, int32_t block_x) {
  uint8_t right[4];
  const uint8_t* const above_right = luma.at(16 * block_y - 1, 16 * block_x + 16);
  const bool is_last = block_x == frame.blocks_across - 1 && block_y > 0;
  for (int32_t i = 0; i < 4; ++i) right[i] = is_last ? above_right[-1] : above_right[i];
  for (int32_t i = 0; i < 16; ++i) {
    const int32_t y = i / 4 * 4, x = i % 4 * 4;
    uint8_t* const to = luma.at(16 * block_y + y, 16 * block_x + x);
    uint8_t edge[13];
    for (int32_t j = 0; j < 4; ++j) edge[j] = to[(3 - j) * luma.stride - 1];
    for (int32_t j = 0; j < 9; ++j) edge[4 + j] = *(to - luma.stride - 1 + j);
    for (int32_t j = 0; j < 4 && x == 12; ++j) edge[9 + j] = right[j];
    Vp8SubBlock(edge, to, luma.stride).predict(frame.sub_modes[i]);
    add_vp8_residue(frame.coefficients[i], to, luma.stride);
  }
}

inline void rebuild_vp8_block(const Vp8Frame& frame, const Vp8Block& block,
                              const Vp8Plane* planes, int32_t y, int32_t x) {
  if (block.has_sub_modes) {
    predict_vp8_sub_blocks(frame, planes[0], y, x);
  } else {
    predict_vp8_block(planes[0].at(16 * y, 16 * x), planes[0].stride, 16, frame.luma_mode,
                      y > 0, x > 0);
    for (int32_t i = 0; i < 16; ++i)
      add_vp8_residue(frame.coefficients[i],
                      planes[0].at(16 * y + i / 4 * 4, 16 * x + i % 4 * 4),
                      planes[0].stride);
  }
  for (int32_t plane = 1; plane < 3; ++plane) {
    const Vp8Plane& chroma = planes[plane];
    predict_vp8_block(chroma.at(8 * y, 8 * x), chroma.stride, 8, frame.chroma_mode, y > 0,
                      x > 0);
    for (int32_t i = 0; i < 4; ++i)
      add_vp8_residue(frame.coefficients[12 + 4 * plane + i],
                      chroma.at(8 * y + i / 2 * 4, 8 * x + i % 2 * 4), chroma.stride);
  }
}

} // namespace svod::image
