// What all image decoders share: the encoded bytes, read with a check; memory that is
// handed out from one block and never given back; and the picture that is written.
//
// The decoders are compiled twice: into the packer, which decodes what is known when
// packing, and, as text, into packed programs (importer/images/import_image.cpp). There
// is no library beneath them, no heap and no exception: what goes wrong is a bool handed
// up. Encoded bytes are hostile: every read and write is inside its bounds whatever they
// say, and every loop ends because it uses up bytes or fills pixels.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace svod::image {

#ifdef SVOD_WATCH_MEMORY
// A test sees what is handed out, and lets nothing else be touched.
void watch_memory(const uint8_t* from, size_t bytes);
#endif

enum class PixelFormat : int32_t { Rgb, Bgr, Gray };

// Of any picture; what --limit-image may be at most.
inline constexpr int64_t kMostSide = 65535;
// Of a picture whose number of pixels is bounded, by that of this height and width: what
// is very long needs memory for its border, too.
constexpr int64_t most_dense_side(int64_t height, int64_t width) {
  const int64_t side = 4 * (height < width ? width : height);
  return side < kMostSide ? side : kMostSide;
}

inline int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
inline int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }
inline int32_t clamped(int32_t value, int32_t low, int32_t high) {
  return least(most(value, low), high);
}
inline uint8_t byte_of(int32_t value) {
  return static_cast<uint8_t>(clamped(value, 0, 255));
}
// a / b, rounded up.
inline uint32_t divided_up(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }

// Bytes from front to back. Beyond the end there are zeros, and `ended` is set.
struct Bytes {
  const uint8_t* at = nullptr;
  const uint8_t* end = nullptr;
  bool ended = false;

  size_t left() const { return static_cast<size_t>(end - at); }
  int32_t next() { return at < end ? *at++ : -1; }
  uint32_t u8() {
    if (at < end) return *at++;
    ended = true;
    return 0;
  }
  uint32_t u16_big() {
    const uint32_t high = u8();
    return high << 8 | u8();
  }
  uint32_t u32_big() {
    const uint32_t high = u16_big();
    return high << 16 | u16_big();
  }
  uint32_t u16_little() {
    const uint32_t low = u8();
    return low | u8() << 8;
  }
  uint32_t u32_little() {
    const uint32_t low = u16_little();
    return low | u16_little() << 16;
  }
  void skip(size_t count) {
    ended = ended || count > left();
    at += count < left() ? count : left();
  }
  // The next `count` bytes, or fewer where the end comes first.
  Bytes part(size_t count) {
    Bytes out{at, at + (count < left() ? count : left()), false};
    skip(count);
    return out;
  }
  // What lies from `offset` on.
  Bytes from(size_t offset) const {
    return {at + (offset < left() ? offset : left()), end, offset > left()};
  }
  bool starts_with(const char* text, size_t count) const {
    if (left() < count) return false;
    for (size_t i = 0; i < count; ++i)
      if (at[i] != static_cast<uint8_t>(text[i])) return false;
    return true;
  }
};

// One image to decode: what goes in, the memory to work in, and what comes out.
struct Job {
  Bytes bytes;
  uint8_t* scratch = nullptr;
  size_t scratch_left = 0;
  uint8_t* pixels = nullptr; // [max_height, max_width, channels]
  int32_t max_height = 0, max_width = 0;
  PixelFormat format = PixelFormat::Rgb;
  int32_t height = 0, width = 0; // of what was decoded
  bool too_large = false;        // for the pixels or for the memory
  // Pixels are [height, width, channels], and only their number is bounded, so that a
  // picture fits on its side, too.
  bool is_dense = false;
  uint32_t asked_height = 0, asked_width = 0; // also of a picture that does not fit

  int32_t channels() const { return format == PixelFormat::Gray ? 1 : 3; }
  // Pixels from a row to the next one.
  size_t pitch() const { return static_cast<size_t>(is_dense ? width : max_width); }
  bool fits(uint32_t image_height, uint32_t image_width) const {
    if (!is_dense)
      return image_height <= static_cast<uint32_t>(max_height) &&
             image_width <= static_cast<uint32_t>(max_width);
    const int64_t side = most_dense_side(max_height, max_width);
    return image_height <= side && image_width <= side &&
           int64_t{image_height} * image_width <= int64_t{max_height} * max_width;
  }

  // The picture's size; false where it does not fit.
  bool begin(uint32_t image_height, uint32_t image_width) {
    if (image_height == 0 || image_width == 0) return false;
    asked_height = image_height, asked_width = image_width;
    too_large = !fits(image_height, image_width);
    if (too_large) return false;
    height = static_cast<int32_t>(image_height);
    width = static_cast<int32_t>(image_width);
    return true;
  }

  // Memory with anything in it; null where too little is left. At least a byte lies
  // between two pieces.
  uint8_t* take_any(size_t bytes) {
    constexpr size_t kAlign = 8;
    const size_t taken = bytes / kAlign * kAlign + kAlign;
    if (bytes > scratch_left || taken > scratch_left) {
      too_large = true;
      return nullptr;
    }
    uint8_t* const out = scratch;
    scratch += taken;
    scratch_left -= taken;
#ifdef SVOD_WATCH_MEMORY
    watch_memory(out, bytes);
#endif
    return out;
  }

  // Memory for `count` elements, all zero; null where too little is left.
  template <class T> T* take(size_t count) {
    too_large = too_large || count > scratch_left / sizeof(T);
    if (count > scratch_left / sizeof(T)) return nullptr;
    uint8_t* const out = take_any(count * sizeof(T));
    for (size_t i = 0; out != nullptr && i < count * sizeof(T); ++i) out[i] = 0;
    return reinterpret_cast<T*>(out);
  }

  // The first pixel of a row of the picture.
  uint8_t* row(int32_t y) const {
    return pixels + static_cast<size_t>(y) * pitch() * static_cast<size_t>(channels());
  }
  // Grey is what ITU-R BT.601 weighs, in steps of 1/65536.
  void put_pixel(uint8_t* to, uint8_t red, uint8_t green, uint8_t blue) const {
    if (format == PixelFormat::Gray) {
      to[0] = static_cast<uint8_t>(
          (19595u * red + 38470u * green + 7471u * blue + 32768u) >> 16);
      return;
    }
    const bool is_rgb = format == PixelFormat::Rgb;
    to[0] = is_rgb ? red : blue;
    to[1] = green;
    to[2] = is_rgb ? blue : red;
  }
  void put(int32_t y, int32_t x, uint8_t red, uint8_t green, uint8_t blue) const {
    if (y < 0 || x < 0 || y >= height || x >= width) return;
    put_pixel(row(y) + static_cast<size_t>(x) * static_cast<size_t>(channels()), red,
              green, blue);
  }
  void put_gray(int32_t y, int32_t x, uint8_t value) { put(y, x, value, value, value); }
  // Cyan, magenta, yellow and black as shares of ink.
  void put_ink(int32_t y, int32_t x, const uint8_t* ink) {
    const int32_t rest = 255 - ink[3];
    uint8_t rgb[3];
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t product = ink[i] * rest + 128;
      rgb[i] = byte_of(rest - ((product >> 8) + product) / 256);
    }
    put(y, x, rgb[0], rgb[1], rgb[2]);
  }
};

} // namespace svod::image
