// CRC-32 as PNG (annex D) and archives (zip) have it, four bits at a time: a table of 64
// bytes, where one of a byte at a time has 1024.
#ifndef SVOD_CRC32_H
#define SVOD_CRC32_H

#include <stddef.h>
#include <stdint.h>

namespace svod {

class Crc32 {
public:
  void add(const uint8_t* bytes, size_t count) {
    static constexpr uint32_t kTable[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    for (size_t i = 0; i < count; ++i) {
      sum_ ^= bytes[i];
      sum_ = sum_ >> 4 ^ kTable[sum_ & 15];
      sum_ = sum_ >> 4 ^ kTable[sum_ & 15];
    }
  }
  uint32_t value() const { return ~sum_; }

private:
  uint32_t sum_ = 0xffffffff;
};

} // namespace svod

#endif
