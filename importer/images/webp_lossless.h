// Lossless WebP (RFC 9649, section 3): pixels of 32 bits, alpha, red, green and blue from
// the highest down, as literals, copies of earlier ones and entries of a small cache;
// then up to four transforms are undone.
#pragma once

#include "importer/images/picture.h"
#include "runtime_stub/prefix_code.h"

namespace svod::image {

using WebpBits = LowBits<Bytes>;

// The five codes of a group: green and lengths, red, blue, alpha, distances.
struct WebpGroup {
  PrefixCode codes[5];
};

// An image as it is coded: the picture itself, or what a transform needs.
struct WebpCoded {
  uint32_t width, height;
  uint32_t* pixels;
  uint32_t cache_bits; // 0: there is none
  uint32_t* cache;
  uint32_t group_bits;      // pixels of a block that shares a group, log2
  const uint32_t* group_of; // null: one group for all
  WebpGroup* groups;
};

// 3.7.2.1
inline bool read_webp_simple_code(WebpBits& bits, uint8_t* lengths, int32_t size) {
  const uint32_t count = bits.take(1) + 1;
  const uint32_t first = bits.take(bits.take(1) != 0 ? 8 : 1);
  const uint32_t second = count == 2 ? bits.take(8) : first;
  if (first >= static_cast<uint32_t>(size) || second >= static_cast<uint32_t>(size))
    return false;
  lengths[first] = lengths[second] = 1;
  return true;
}

// A code without any bit has one symbol.
inline bool make_webp_code(Job& job, PrefixCode& code, const uint8_t* lengths,
                           int32_t size) {
  int32_t missing = 0;
  if (!count_lengths(code, lengths, size, missing) || code.used == 0) return false;
  if (code.used > 1 && missing != 0) return false;
  code.symbols = job.take<uint16_t>(static_cast<size_t>(code.used));
  if (code.symbols == nullptr) return false;
  order_symbols(code, lengths, size);
  if (code.used == 1) code.only = code.symbols[0];
  return true;
}

constexpr int32_t kWebpMostSymbols = 256 + 24 + (1 << 11);

// 3.7.2.2: lengths are themselves coded.
inline bool read_webp_lengths(Job& job, WebpBits& bits, uint8_t* lengths, int32_t size) {
  static constexpr uint8_t kOrder[19] = {17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                         7,  8,  9, 10, 11, 12, 13, 14, 15};
  uint8_t of_lengths[19] = {};
  const uint32_t count = 4 + bits.take(4);
  for (uint32_t i = 0; i < count; ++i)
    of_lengths[kOrder[i]] = static_cast<uint8_t>(bits.take(3));
  auto* const code = job.take<PrefixCode>(1);
  if (code == nullptr || !make_webp_code(job, *code, of_lengths, 19)) return false;
  int32_t left = size; // lengths that the stream holds
  if (bits.take(1) != 0) {
    const auto wide = static_cast<int32_t>(2 + 2 * bits.take(3));
    left = static_cast<int32_t>(2 + bits.take(wide));
    if (left > size) return false;
  }
  uint8_t last = 8;
  for (int32_t i = 0; i < size && left > 0; --left) {
    const int32_t symbol = read_symbol(*code, bits);
    if (symbol < 0 || bits.ended) return false;
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      if (symbol != 0) last = static_cast<uint8_t>(symbol);
      continue;
    }
    int32_t repeat = symbol == 16   ? 3 + static_cast<int32_t>(bits.take(2))
                     : symbol == 17 ? 3 + static_cast<int32_t>(bits.take(3))
                                    : 11 + static_cast<int32_t>(bits.take(7));
    if (repeat > size - i) return false;
    for (; repeat > 0; --repeat) lengths[i++] = symbol == 16 ? last : 0;
  }
  return true;
}

inline bool read_webp_group(Job& job, WebpBits& bits, WebpGroup& group,
                            uint32_t cache_bits, uint8_t* lengths) {
  const int32_t cached = cache_bits == 0 ? 0 : 1 << cache_bits;
  const int32_t sizes[5] = {256 + 24 + cached, 256, 256, 256, 40};
  for (int32_t i = 0; i < 5; ++i) {
    for (int32_t j = 0; j < kWebpMostSymbols; ++j) lengths[j] = 0;
    const bool is_simple = bits.take(1) != 0;
    const bool good = is_simple ? read_webp_simple_code(bits, lengths, sizes[i])
                                : read_webp_lengths(job, bits, lengths, sizes[i]);
    if (!good || bits.ended) return false;
    if (!make_webp_code(job, group.codes[i], lengths, sizes[i])) return false;
  }
  return true;
}

// 3.6.2: lengths and distances are a base and extra bits.
inline uint32_t read_webp_amount(WebpBits& bits, int32_t prefix) {
  if (prefix < 4) return static_cast<uint32_t>(prefix) + 1;
  const int32_t extra = (prefix - 2) >> 1;
  return ((2u + (static_cast<uint32_t>(prefix) & 1)) << extra) + bits.take(extra) + 1;
}

// Small distances are places in the rows above, x steps to the left and y up.
inline uint32_t webp_distance(uint32_t code, uint32_t width) {
  static constexpr int8_t kPlaces[120][2] = {
      {0, 1},  {1, 0},  {1, 1},  {-1, 1}, {0, 2},  {2, 0},  {1, 2},  {-1, 2}, {2, 1},
      {-2, 1}, {2, 2},  {-2, 2}, {0, 3},  {3, 0},  {1, 3},  {-1, 3}, {3, 1},  {-3, 1},
      {2, 3},  {-2, 3}, {3, 2},  {-3, 2}, {0, 4},  {4, 0},  {1, 4},  {-1, 4}, {4, 1},
      {-4, 1}, {3, 3},  {-3, 3}, {2, 4},  {-2, 4}, {4, 2},  {-4, 2}, {0, 5},  {3, 4},
      {-3, 4}, {4, 3},  {-4, 3}, {5, 0},  {1, 5},  {-1, 5}, {5, 1},  {-5, 1}, {2, 5},
      {-2, 5}, {5, 2},  {-5, 2}, {4, 4},  {-4, 4}, {3, 5},  {-3, 5}, {5, 3},  {-5, 3},
      {0, 6},  {6, 0},  {1, 6},  {-1, 6}, {6, 1},  {-6, 1}, {2, 6},  {-2, 6}, {6, 2},
      {-6, 2}, {4, 5},  {-4, 5}, {5, 4},  {-5, 4}, {3, 6},  {-3, 6}, {6, 3},  {-6, 3},
      {0, 7},  {7, 0},  {1, 7},  {-1, 7}, {5, 5},  {-5, 5}, {7, 1},  {-7, 1}, {4, 6},
      {-4, 6}, {6, 4},  {-6, 4}, {2, 7},  {-2, 7}, {7, 2},  {-7, 2}, {3, 7},  {-3, 7},
      {7, 3},  {-7, 3}, {5, 6},  {-5, 6}, {6, 5},  {-6, 5}, {8, 0},  {4, 7},  {-4, 7},
      {7, 4},  {-7, 4}, {8, 1},  {8, 2},  {6, 6},  {-6, 6}, {8, 3},  {5, 7},  {-5, 7},
      {7, 5},  {-7, 5}, {8, 4},  {6, 7},  {-6, 7}, {7, 6},  {-7, 6}, {8, 5},  {7, 7},
      {-7, 7}, {8, 6},  {8, 7}};
  if (code > 120) return code - 120;
  const int8_t* place = kPlaces[code - 1];
  const int32_t distance = place[0] + place[1] * static_cast<int32_t>(width);
  return distance < 1 ? 1 : static_cast<uint32_t>(distance);
}

inline const WebpGroup& webp_group_at(const WebpCoded& image, uint32_t at) {
  if (image.group_of == nullptr) return image.groups[0];
  const uint32_t across = divided_up(image.width, 1u << image.group_bits);
  const uint32_t y = at / image.width, x = at % image.width;
  const uint32_t block = (y >> image.group_bits) * across + (x >> image.group_bits);
  return image.groups[image.group_of[block] >> 8 & 0xffff];
}

inline void remember_webp_pixel(const WebpCoded& image, uint32_t pixel) {
  if (image.cache_bits != 0)
    image.cache[(0x1e35a7bdu * pixel) >> (32 - image.cache_bits)] = pixel;
}

inline bool copy_webp_pixels(WebpBits& bits, const WebpCoded& image,
                             const WebpGroup& group, int32_t prefix, uint32_t& at) {
  const uint32_t count = read_webp_amount(bits, prefix);
  const int32_t far = read_symbol(group.codes[4], bits);
  if (far < 0) return false;
  const uint32_t distance = webp_distance(read_webp_amount(bits, far), image.width);
  if (bits.ended || distance > at || count > image.width * image.height - at)
    return false;
  for (uint32_t i = 0; i < count; ++i, ++at) {
    image.pixels[at] = image.pixels[at - distance];
    remember_webp_pixel(image, image.pixels[at]);
  }
  return true;
}

// 3.6
inline bool read_webp_pixels(WebpBits& bits, const WebpCoded& image) {
  const uint32_t total = image.width * image.height;
  for (uint32_t at = 0; at < total;) {
    const WebpGroup& group = webp_group_at(image, at);
    const int32_t green = read_symbol(group.codes[0], bits);
    if (green < 0 || bits.ended) return false;
    if (green >= 256 && green < 256 + 24) {
      if (!copy_webp_pixels(bits, image, group, green - 256, at)) return false;
      continue;
    }
    uint32_t pixel = 0;
    if (green < 256) {
      const int32_t red = read_symbol(group.codes[1], bits);
      const int32_t blue = read_symbol(group.codes[2], bits);
      const int32_t alpha = read_symbol(group.codes[3], bits);
      if (red < 0 || blue < 0 || alpha < 0 || bits.ended) return false;
      pixel = static_cast<uint32_t>(alpha) << 24 | static_cast<uint32_t>(red) << 16 |
              static_cast<uint32_t>(green) << 8 | static_cast<uint32_t>(blue);
    } else {
      pixel = image.cache[green - 256 - 24];
    }
    image.pixels[at++] = pixel;
    remember_webp_pixel(image, pixel);
  }
  return true;
}

// `group_of`: the picture itself may have groups by block, an image of its own.
inline bool read_webp_coded(Job& job, WebpBits& bits, WebpCoded& image,
                            WebpCoded* group_of) {
  if (bits.take(1) != 0) {
    image.cache_bits = bits.take(4);
    if (image.cache_bits < 1 || image.cache_bits > 11) return false;
    image.cache = job.take<uint32_t>(size_t{1} << image.cache_bits);
    if (image.cache == nullptr) return false;
  }
  uint32_t groups = 1;
  if (group_of != nullptr && bits.take(1) != 0) {
    image.group_bits = bits.take(3) + 2;
    *group_of = {};
    group_of->width = divided_up(image.width, 1u << image.group_bits);
    group_of->height = divided_up(image.height, 1u << image.group_bits);
    if (!read_webp_coded(job, bits, *group_of, nullptr)) return false;
    image.group_of = group_of->pixels;
    for (uint32_t i = 0; i < group_of->width * group_of->height; ++i) {
      const uint32_t group = group_of->pixels[i] >> 8 & 0xffff;
      if (group >= groups) groups = group + 1;
    }
  }
  image.groups = job.take<WebpGroup>(groups);
  image.pixels = job.take<uint32_t>(size_t{image.width} * image.height);
  auto* const lengths = job.take<uint8_t>(kWebpMostSymbols);
  if (image.groups == nullptr || image.pixels == nullptr || lengths == nullptr)
    return false;
  for (uint32_t i = 0; i < groups; ++i)
    if (!read_webp_group(job, bits, image.groups[i], image.cache_bits, lengths))
      return false;
  return read_webp_pixels(bits, image);
}

} // namespace svod::image
