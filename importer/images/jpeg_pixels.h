// From coefficients to pixels: the inverse cosine transform in integers with the rounding
// that the Independent JPEG Group's accurate method has (after Loeffler, Ligtenberg,
// Moschytz, ICASSP 1989: 12 multiplications in one dimension), chroma between its
// neighbours as ONNX describes it for ImageDecoder, and the colours of JFIF 1.02.
#pragma once

#include "importer/images/jpeg_frame.h"

namespace svod::image {

// cos and sqrt(2) factors, in steps of 2^-13.
inline constexpr uint32_t kJpeg0298 = 2446, kJpeg0390 = 3196, kJpeg0541 = 4433,
                          kJpeg0765 = 6270, kJpeg0899 = 7373, kJpeg1175 = 9633,
                          kJpeg1501 = 12299, kJpeg1847 = 15137, kJpeg1961 = 16069,
                          kJpeg2053 = 16819, kJpeg2562 = 20995, kJpeg3072 = 25172;

// Eight values `step` apart, in place; the results lose `shift` bits, rounded. What no
// encoder makes may be out of range, and wraps around.
inline void transform_jpeg_line(int32_t* line, int32_t step, int32_t shift) {
  const auto in = [&](int32_t i) { return static_cast<uint32_t>(line[i * step]); };
  // Even places.
  uint32_t z = (in(2) + in(6)) * kJpeg0541;
  const uint32_t even2 = z - in(6) * kJpeg1847, even3 = z + in(2) * kJpeg0765;
  const uint32_t even0 = (in(0) + in(4)) * 8192, even1 = (in(0) - in(4)) * 8192;
  const uint32_t even[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};
  // Odd places.
  const uint32_t a = in(7), b = in(5), c = in(3), d = in(1);
  z = (a + c + b + d) * kJpeg1175;
  const uint32_t ad = -(a + d) * kJpeg0899, bc = -(b + c) * kJpeg2562;
  const uint32_t ac = z - (a + c) * kJpeg1961, bd = z - (b + d) * kJpeg0390;
  const uint32_t odd[4] = {d * kJpeg1501 + ad + bd, c * kJpeg3072 + bc + ac,
                           b * kJpeg2053 + bc + bd, a * kJpeg0298 + ad + ac};
  const uint32_t half = 1u << (shift - 1);
  for (int32_t i = 0; i < 4; ++i) {
    line[i * step] = static_cast<int32_t>(even[i] + odd[i] + half) >> shift;
    line[(7 - i) * step] = static_cast<int32_t>(even[i] - odd[i] + half) >> shift;
  }
}

inline void transform_jpeg_block(const int16_t* coefficients, const uint16_t* table,
                                 uint8_t* out, size_t stride) {
  int32_t block[64];
  for (int32_t i = 0; i < 64; ++i) block[i] = coefficients[i] * table[i];
  constexpr int32_t kFactorBits = 13, kKeptBits = 2;
  for (int32_t x = 0; x < 8; ++x) {
    int32_t rest = 0;
    for (int32_t y = 1; y < 8; ++y) rest |= block[8 * y + x];
    if (rest != 0) {
      transform_jpeg_line(block + x, 8, kFactorBits - kKeptBits);
      continue;
    }
    // What that makes of a first value alone, as most columns of most blocks have it.
    for (int32_t y = 7; y >= 0; --y) block[8 * y + x] = block[x] << kKeptBits;
  }
  for (int32_t y = 0; y < 8; ++y) {
    transform_jpeg_line(block + 8 * y, 1, kFactorBits + kKeptBits + 3);
    for (int32_t x = 0; x < 8; ++x)
      out[static_cast<size_t>(y) * stride + static_cast<size_t>(x)] =
          byte_of(block[8 * y + x] + 128);
  }
}

inline void transform_jpeg_component(const Jpeg& jpeg, const JpegComponent& component) {
  const auto stride = static_cast<size_t>(component.stride) * 8;
  for (int32_t y = 0; y < component.blocks_down; ++y)
    for (int32_t x = 0; x < component.blocks_across; ++x) {
      const auto block = static_cast<size_t>(y) * static_cast<size_t>(component.stride) +
                         static_cast<size_t>(x);
      transform_jpeg_block(component.coefficients + 64 * block,
                           jpeg.quantization[component.table],
                           component.samples + static_cast<size_t>(y) * 8 * stride +
                               static_cast<size_t>(x) * 8,
                           stride);
    }
}

// A component at every pixel: its own samples, or rows that are made between them.
class JpegRows {
public:
  // `row`: memory for two rows of the picture and what doubling adds.
  JpegRows(const Jpeg& jpeg, const JpegComponent& component, uint8_t* row)
      : component_(component), width_(static_cast<int32_t>(jpeg.width)), row_(row),
        across_(jpeg.most_across / component.across),
        down_(jpeg.most_down / component.down) {}

  const uint8_t* row(int32_t y) {
    const bool doubles_across = across_ == 2 && component_.width > 2;
    if (across_ == 1 && down_ == 1) return line(y);
    if (doubles_across && down_ == 1) return double_across(y);
    if (doubles_across && down_ == 2) return double_both(y);
    if (across_ == 1 && down_ == 2) return double_down(y);
    for (int32_t x = 0; x < width_; ++x) row_[x] = line(y / down_)[x / across_];
    return row_;
  }

private:
  const uint8_t* line(int32_t y) const {
    return component_.samples +
           static_cast<size_t>(clamped(y, 0, component_.height - 1)) *
               static_cast<size_t>(component_.stride) * 8;
  }
  // The line beyond the nearer one, for a row between two.
  const uint8_t* other_line(int32_t y) const {
    return line(y % 2 == 0 ? y / 2 - 1 : y / 2 + 1);
  }

  const uint8_t* double_across(int32_t y) {
    const uint8_t* const in = line(y);
    const int32_t last = component_.width - 1;
    for (int32_t x = 0; x <= last; ++x) {
      const int32_t near = 3 * in[x];
      row_[2 * x] = static_cast<uint8_t>(x == 0 ? in[0] : (near + in[x - 1] + 1) >> 2);
      row_[2 * x + 1] =
          static_cast<uint8_t>(x == last ? in[x] : (near + in[x + 1] + 2) >> 2);
    }
    return row_;
  }

  const uint8_t* double_down(int32_t y) {
    const uint8_t *const near = line(y / 2), *const far = other_line(y);
    const int32_t half = y % 2 == 0 ? 1 : 2;
    for (int32_t x = 0; x < width_; ++x)
      row_[x] = static_cast<uint8_t>((3 * near[x] + far[x] + half) >> 2);
    return row_;
  }

  const uint8_t* double_both(int32_t y) {
    const uint8_t *const near = line(y / 2), *const far = other_line(y);
    const int32_t last = component_.width - 1;
    const auto sum = [&](int32_t x) { return 3 * near[x] + far[x]; };
    int32_t before = sum(0), here = before;
    for (int32_t x = 0; x <= last; ++x) {
      const int32_t behind = x == last ? here : sum(x + 1);
      row_[2 * x] = static_cast<uint8_t>((3 * here + before + 8) >> 4);
      row_[2 * x + 1] = static_cast<uint8_t>((3 * here + behind + 7) >> 4);
      before = here, here = behind;
    }
    return row_;
  }

  const JpegComponent& component_;
  int32_t width_;
  uint8_t* row_;
  int32_t across_, down_;
};

struct Rgb {
  uint8_t red, green, blue;
};

// JFIF 1.02, in steps of 2^-16.
inline Rgb color_of(int32_t luma, int32_t blue, int32_t red) {
  blue -= 128, red -= 128;
  constexpr int32_t kHalf = 32768;
  return {byte_of(luma + ((91881 * red + kHalf) >> 16)),
          byte_of(luma + ((-22554 * blue - 46802 * red + kHalf) >> 16)),
          byte_of(luma + ((116130 * blue + kHalf) >> 16))};
}

enum class JpegColors { Gray, Rgb, Luma, Inks, LumaInks };

// Which colours the components are: told by Adobe's segment, else by JFIF's, else by
// their names.
inline JpegColors jpeg_colors(const Jpeg& jpeg) {
  if (jpeg.component_count == 1) return JpegColors::Gray;
  if (jpeg.component_count == 4)
    return jpeg.has_adobe && jpeg.transform == 2 ? JpegColors::LumaInks
                                                 : JpegColors::Inks;
  if (jpeg.has_jfif) return JpegColors::Luma;
  if (jpeg.has_adobe) return jpeg.transform == 0 ? JpegColors::Rgb : JpegColors::Luma;
  const JpegComponent* parts = jpeg.components;
  const bool named = parts[0].id == 'R' && parts[1].id == 'G' && parts[2].id == 'B';
  return named ? JpegColors::Rgb : JpegColors::Luma;
}

// Of luma and two differences, which nearly all photographs are.
inline void put_luma_row(const Job& job, const uint8_t* const* rows, uint8_t* to) {
  for (int32_t x = 0; x < job.width; ++x, to += job.channels()) {
    const Rgb rgb = color_of(rows[0][x], rows[1][x], rows[2][x]);
    job.put_pixel(to, rgb.red, rgb.green, rgb.blue);
  }
}

inline void put_jpeg_row(Job& job, JpegColors colors, const uint8_t* const* rows,
                         int32_t y) {
  if (colors == JpegColors::Luma) return put_luma_row(job, rows, job.row(y));
  for (int32_t x = 0; x < job.width; ++x) {
    const uint8_t first = rows[0][x];
    if (colors == JpegColors::Gray) {
      job.put_gray(y, x, first);
    } else if (colors == JpegColors::Rgb) {
      job.put(y, x, first, rows[1][x], rows[2][x]);
    } else { // inks are stored as what they leave
      const auto invert = [](uint8_t value) { return static_cast<uint8_t>(255 - value); };
      uint8_t inks[4] = {invert(first), invert(rows[1][x]), invert(rows[2][x]),
                         invert(rows[3][x])};
      if (colors == JpegColors::LumaInks) {
        const Rgb rgb = color_of(first, rows[1][x], rows[2][x]);
        inks[0] = rgb.red, inks[1] = rgb.green, inks[2] = rgb.blue;
      }
      job.put_ink(y, x, inks);
    }
  }
}

inline bool put_jpeg(Job& job, const Jpeg& jpeg) {
  const uint8_t* rows[4] = {};
  uint8_t* memory[4] = {};
  for (int32_t i = 0; i < jpeg.component_count; ++i) {
    const JpegComponent& component = jpeg.components[i];
    transform_jpeg_component(jpeg, component);
    // A row that is doubled may be one longer than the picture.
    memory[i] = job.take<uint8_t>(jpeg.width + 2);
    if (memory[i] == nullptr) return false;
  }
  for (int32_t y = 0; y < job.height; ++y) {
    for (int32_t i = 0; i < jpeg.component_count; ++i)
      rows[i] = JpegRows(jpeg, jpeg.components[i], memory[i]).row(y);
    put_jpeg_row(job, jpeg_colors(jpeg), rows, y);
  }
  return true;
}

} // namespace svod::image
