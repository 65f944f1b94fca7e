// What lossless WebP does to pixels before they are coded, undone (RFC 9649, section 4),
// and the picture made of it.
#pragma once

#include "importer/images/webp_lossless.h"

namespace svod::image {

struct WebpTransform {
  enum Kind : uint32_t { Predictor, Color, SubtractGreen, Palette };
  uint32_t kind;
  uint32_t bits;  // of a block; of pixels in one, log2, for a palette
  uint32_t width; // of the picture that the transform was applied to
  WebpCoded data;
};

// Each channel by itself, modulo 256.
inline uint32_t add_webp_pixels(uint32_t a, uint32_t b) {
  const uint32_t even = (a & 0x00ff00ff) + (b & 0x00ff00ff);
  const uint32_t odd = (a & 0xff00ff00) + (b & 0xff00ff00);
  return (even & 0x00ff00ff) | (odd & 0xff00ff00);
}

inline uint32_t average_webp(uint32_t a, uint32_t b) {
  return (((a ^ b) & 0xfefefefe) >> 1) + (a & b);
}

template <class F> uint32_t by_channel(uint32_t a, uint32_t b, uint32_t c, F f) {
  uint32_t out = 0;
  for (int32_t shift = 0; shift < 32; shift += 8) {
    const auto channel = [shift](uint32_t pixel) {
      return static_cast<int32_t>(pixel >> shift & 255);
    };
    out |= static_cast<uint32_t>(byte_of(f(channel(a), channel(b), channel(c)))) << shift;
  }
  return out;
}

inline int32_t webp_difference(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (int32_t shift = 0; shift < 32; shift += 8) {
    const int32_t difference =
        static_cast<int32_t>(a >> shift & 255) - static_cast<int32_t>(b >> shift & 255);
    sum += difference < 0 ? -difference : difference;
  }
  return sum;
}

// 4.1, table 2
inline uint32_t predict_webp(uint32_t mode, uint32_t left, uint32_t above,
                             uint32_t above_right, uint32_t above_left) {
  switch (mode) {
  case 1:
    return left;
  case 2:
    return above;
  case 3:
    return above_right;
  case 4:
    return above_left;
  case 5:
    return average_webp(average_webp(left, above_right), above);
  case 6:
    return average_webp(left, above_left);
  case 7:
    return average_webp(left, above);
  case 8:
    return average_webp(above_left, above);
  case 9:
    return average_webp(above, above_right);
  case 10:
    return average_webp(average_webp(left, above_left), average_webp(above, above_right));
  case 11: // the one nearer to left + above - above_left
    return webp_difference(above, above_left) < webp_difference(left, above_left) ? left
                                                                                  : above;
  case 12:
    return by_channel(left, above, above_left,
                      [](int32_t a, int32_t b, int32_t c) { return a + b - c; });
  case 13: {
    const uint32_t mean = average_webp(left, above);
    return by_channel(mean, above_left, 0,
                      [](int32_t a, int32_t b, int32_t) { return a + (a - b) / 2; });
  }
  default:
    return 0xff000000;
  }
}

inline void undo_webp_predictor(const WebpTransform& transform, uint32_t* pixels,
                                uint32_t height) {
  const uint32_t width = transform.width;
  for (uint32_t y = 0; y < height; ++y) {
    const uint32_t* modes =
        transform.data.pixels + (y >> transform.bits) * transform.data.width;
    for (uint32_t x = 0; x < width; ++x) {
      uint32_t* const at = pixels + size_t{y} * width + x;
      uint32_t guess = 0xff000000;
      if (y == 0 && x > 0) guess = at[-1];
      if (y > 0 && x == 0) guess = *(at - width);
      // Right of the last pixel above is the first of this row.
      if (y > 0 && x > 0)
        guess = predict_webp(modes[x >> transform.bits] >> 8 & 15, at[-1], *(at - width),
                             *(at - width + 1), *(at - width - 1));
      *at = add_webp_pixels(*at, guess);
    }
  }
}

// 4.2
inline void undo_webp_color(const WebpTransform& transform, uint32_t* pixels,
                            uint32_t height) {
  const auto part = [](uint32_t factor, uint32_t channel) {
    return (static_cast<int8_t>(factor) * static_cast<int8_t>(channel)) >> 5;
  };
  for (uint32_t y = 0; y < height; ++y) {
    const uint32_t* factors =
        transform.data.pixels + (y >> transform.bits) * transform.data.width;
    for (uint32_t x = 0; x < transform.width; ++x) {
      uint32_t& pixel = pixels[size_t{y} * transform.width + x];
      const uint32_t by = factors[x >> transform.bits];
      const uint32_t green = pixel >> 8;
      const uint32_t red = (pixel >> 16) + static_cast<uint32_t>(part(by, green));
      const uint32_t blue = pixel + static_cast<uint32_t>(part(by >> 8, green)) +
                            static_cast<uint32_t>(part(by >> 16, red));
      pixel = (pixel & 0xff00ff00) | (red & 255) << 16 | (blue & 255);
    }
  }
}

// 4.4: indices into the palette, several in one pixel's green.
inline void undo_webp_palette(const WebpTransform& transform, const uint32_t* packed,
                              uint32_t* pixels, uint32_t height) {
  const uint32_t per_pixel = 1u << transform.bits, wide = 8u >> transform.bits;
  const uint32_t stride = divided_up(transform.width, per_pixel);
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < transform.width; ++x) {
      const uint32_t green = packed[size_t{y} * stride + x / per_pixel] >> 8 & 255;
      const uint32_t index = green >> (x % per_pixel * wide) & ((1u << wide) - 1);
      pixels[size_t{y} * transform.width + x] =
          index < transform.data.width ? transform.data.pixels[index] : 0;
    }
}

// `width` becomes that of what is coded behind the transform.
inline bool read_webp_transform(Job& job, WebpBits& bits, WebpTransform& transform,
                                uint32_t& width, uint32_t height) {
  transform = {};
  transform.kind = bits.take(2);
  transform.width = width;
  WebpCoded& data = transform.data;
  if (transform.kind == WebpTransform::SubtractGreen) return true;
  if (transform.kind == WebpTransform::Palette) {
    data.width = bits.take(8) + 1, data.height = 1;
    if (!read_webp_coded(job, bits, data, nullptr)) return false;
    for (uint32_t i = 1; i < data.width; ++i)
      data.pixels[i] = add_webp_pixels(data.pixels[i], data.pixels[i - 1]);
    transform.bits = data.width <= 2 ? 3 : data.width <= 4 ? 2 : data.width <= 16 ? 1 : 0;
    width = divided_up(width, 1u << transform.bits);
    return true;
  }
  transform.bits = bits.take(3) + 2;
  data.width = divided_up(width, 1u << transform.bits);
  data.height = divided_up(height, 1u << transform.bits);
  return read_webp_coded(job, bits, data, nullptr);
}

// The pixels with the transform undone: the same memory, or, for a palette, another.
inline uint32_t* undo_webp_transform(Job& job, const WebpTransform& transform,
                                     uint32_t* pixels, uint32_t height) {
  const size_t count = size_t{transform.width} * height;
  switch (transform.kind) {
  case WebpTransform::Predictor:
    undo_webp_predictor(transform, pixels, height);
    return pixels;
  case WebpTransform::Color:
    undo_webp_color(transform, pixels, height);
    return pixels;
  case WebpTransform::SubtractGreen:
    for (size_t i = 0; i < count; ++i) {
      const uint32_t green = pixels[i] >> 8 & 255;
      pixels[i] = add_webp_pixels(pixels[i], green << 16 | green);
    }
    return pixels;
  default: {
    auto* const unpacked = job.take<uint32_t>(count);
    if (unpacked != nullptr) undo_webp_palette(transform, pixels, unpacked, height);
    return unpacked;
  }
  }
}

inline bool decode_webp_lossless(Job& job, Bytes in) {
  if (in.u8() != 0x2f) return false;
  WebpBits bits{&in};
  const uint32_t width = bits.take(14) + 1, height = bits.take(14) + 1;
  bits.take(1); // whether there is alpha
  if (bits.take(3) != 0 || bits.ended || !job.begin(height, width)) return false;
  auto* const transforms = job.take<WebpTransform>(4);
  auto* const images = job.take<WebpCoded>(2); // the picture and its groups
  if (transforms == nullptr || images == nullptr) return false;
  uint32_t count = 0, seen = 0, coded_width = width;
  while (bits.take(1) != 0) {
    if (count == 4) return false;
    WebpTransform& transform = transforms[count++];
    if (!read_webp_transform(job, bits, transform, coded_width, height)) return false;
    if ((seen >> transform.kind & 1) != 0) return false; // each at most once
    seen |= 1u << transform.kind;
  }
  images[0].width = coded_width, images[0].height = height;
  if (!read_webp_coded(job, bits, images[0], images + 1)) return false;
  uint32_t* pixels = images[0].pixels;
  while (count > 0 && pixels != nullptr)
    pixels = undo_webp_transform(job, transforms[--count], pixels, height);
  if (pixels == nullptr) return false;
  for (int32_t y = 0; y < job.height; ++y)
    for (int32_t x = 0; x < job.width; ++x, ++pixels)
      job.put(y, x, static_cast<uint8_t>(*pixels >> 16),
              static_cast<uint8_t>(*pixels >> 8), static_cast<uint8_t>(*pixels));
  return true;
}

} // namespace svod::image
