// The checksum of image and weights: XXH64 with seed 0, as its authors publish it. Finds
// accidents (a torn download, a worn flash cell), not attackers. Shared by packager and
// stub; reads bytes one word at a time through shifts, so it needs neither alignment nor
// a byte order.
#ifndef SVOD_CHECKSUM_H
#define SVOD_CHECKSUM_H

#include "runtime_stub/types.h"

namespace svod_checksum_detail {

inline constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
inline constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
inline constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
inline constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
inline constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

inline uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

inline uint64_t read32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 |
         static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24;
}

inline uint64_t read64(const uint8_t* p) { return read32(p) | read32(p + 4) << 32; }

inline uint64_t round(uint64_t lane, uint64_t word) {
  return rotate(lane + word * kPrime2, 31) * kPrime1;
}

inline uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

} // namespace svod_checksum_detail

// A checksum taken piece by piece: weights are written as a stream, and the field that
// holds the image's own checksum is read as zero.
struct SvodChecksum {
  uint64_t lanes[4] = {svod_checksum_detail::kPrime1 + svod_checksum_detail::kPrime2,
                       svod_checksum_detail::kPrime2, 0,
                       0 - svod_checksum_detail::kPrime1};
  uint64_t total = 0;
  uint8_t pending[32] = {}; // the first total % 32 bytes are in use

  void add(const void* data, uint64_t bytes) {
    const uint8_t* p = static_cast<const uint8_t*>(data);
    uint64_t held = total % 32;
    total += bytes;
    if (held != 0) {
      while (held < 32 && bytes != 0) {
        pending[held++] = *p++;
        bytes--;
      }
      if (held < 32) return;
      block(pending);
    }
    for (; bytes >= 32; bytes -= 32, p += 32) block(p);
    for (uint64_t i = 0; i < bytes; i++) pending[i] = p[i];
  }

  uint64_t finish() const {
    using namespace svod_checksum_detail;
    uint64_t hash = kPrime5;
    if (total >= 32) {
      hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) +
             rotate(lanes[3], 18);
      for (uint64_t lane : lanes) hash = merge(hash, lane);
    }
    hash += total;
    const uint8_t* p = pending;
    uint64_t left = total % 32;
    for (; left >= 8; left -= 8, p += 8) {
      hash = rotate(hash ^ round(0, read64(p)), 27) * kPrime1 + kPrime4;
    }
    if (left >= 4) {
      hash = rotate(hash ^ read32(p) * kPrime1, 23) * kPrime2 + kPrime3;
      left -= 4;
      p += 4;
    }
    for (; left != 0; left--, p++) hash = rotate(hash ^ *p * kPrime5, 11) * kPrime1;
    hash = (hash ^ hash >> 33) * kPrime2;
    hash = (hash ^ hash >> 29) * kPrime3;
    return hash ^ hash >> 32;
  }

private:
  void block(const uint8_t* p) {
    for (int i = 0; i < 4; i++) {
      lanes[i] =
          svod_checksum_detail::round(lanes[i], svod_checksum_detail::read64(p + 8 * i));
    }
  }
};

inline uint64_t svod_checksum(const void* data, uint64_t bytes) {
  SvodChecksum sum;
  sum.add(data, bytes);
  return sum.finish();
}

#endif
