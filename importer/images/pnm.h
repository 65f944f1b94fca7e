// The portable maps of netpbm (pbm(5), pgm(5), ppm(5)): P1 to P3 as decimal numbers, P4
// to P6 as bytes. A sample is v * 255 / most, rounded to the nearest.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

struct Pnm {
  uint32_t kind = 0; // 1 to 6
  uint32_t width = 0, height = 0, most = 1;
  bool is_text() const { return kind <= 3; }
  bool is_bits() const { return kind == 1 || kind == 4; }
  int32_t samples() const { return kind == 3 || kind == 6 ? 3 : 1; }
};

inline bool is_pnm_space(int32_t c) { return c == ' ' || (c >= 9 && c <= 13); }

// Spaces, and comments from # to the end of the line.
inline void skip_pnm_space(Bytes& in) {
  while (in.at < in.end) {
    if (*in.at == '#')
      while (in.at < in.end && *in.at != '\n' && *in.at != '\r') ++in.at;
    else if (is_pnm_space(*in.at))
      ++in.at;
    else
      return;
  }
}

inline bool read_pnm_number(Bytes& in, uint32_t& number) {
  skip_pnm_space(in);
  constexpr uint32_t kMost = 1u << 24;
  number = 0;
  const uint8_t* const start = in.at;
  while (in.at < in.end && *in.at >= '0' && *in.at <= '9' && number < kMost)
    number = number * 10 + (*in.at++ - '0');
  return in.at != start && number < kMost;
}

inline bool read_pnm_sample(Bytes& in, const Pnm& pnm, uint32_t& value) {
  if (pnm.kind == 1) { // one digit, with or without space
    skip_pnm_space(in);
    const uint32_t digit = in.u8();
    value = digit - '0';
    return value <= 1;
  }
  if (pnm.is_text()) return read_pnm_number(in, value);
  value = pnm.most > 255 ? in.u16_big() : in.u8();
  return !in.ended;
}

inline uint8_t pnm_byte(const Pnm& pnm, uint32_t value) {
  if (pnm.most == 255) return byte_of(static_cast<int32_t>(value));
  if (value > pnm.most) value = pnm.most;
  const uint32_t whole = value * 255 / pnm.most, twice = value * 255 % pnm.most * 2;
  const bool up = twice > pnm.most || (twice == pnm.most && whole % 2 == 1);
  return static_cast<uint8_t>(whole + up);
}

inline bool decode_pnm_row(Job& job, const Pnm& pnm, Bytes& in, int32_t y) {
  uint32_t packed = 0;
  for (int32_t x = 0; x < job.width; ++x) {
    if (pnm.kind == 4) {
      if (x % 8 == 0) packed = in.u8();
      job.put_gray(y, x, packed >> (7 - x % 8) & 1 ? 0 : 255);
      continue;
    }
    uint8_t rgb[3];
    for (int32_t i = 0; i < pnm.samples(); ++i) {
      uint32_t value = 0;
      if (!read_pnm_sample(in, pnm, value)) return false;
      rgb[i] = pnm.kind == 1 ? (value ? 0 : 255) : pnm_byte(pnm, value);
    }
    if (pnm.samples() == 1) rgb[1] = rgb[2] = rgb[0];
    job.put(y, x, rgb[0], rgb[1], rgb[2]);
  }
  return !in.ended;
}

inline bool decode_pnm(Job& job) {
  Bytes in = job.bytes;
  in.skip(1);
  Pnm pnm;
  pnm.kind = in.u8() - '0';
  if (!read_pnm_number(in, pnm.width) || !read_pnm_number(in, pnm.height)) return false;
  if (!pnm.is_bits() && !read_pnm_number(in, pnm.most)) return false;
  if (pnm.most == 0 || pnm.most > 65535) return false;
  if (!pnm.is_text() && !is_pnm_space(in.next())) return false;
  if (!job.begin(pnm.height, pnm.width)) return false;
  for (int32_t y = 0; y < job.height; ++y)
    if (!decode_pnm_row(job, pnm, in, y)) return false;
  return true;
}

} // namespace svod::image
