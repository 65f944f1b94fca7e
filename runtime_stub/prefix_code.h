// Bits of a byte from the lowest up, and prefix codes over them: what Deflate (RFC 1951,
// 3.1.1 and 3.2.2) and lossless WebP (RFC 9649, 3.7.2) have in common. Codes of up to 8
// bits are found in a table, longer ones by their length: codes of one length are
// consecutive numbers.
//
// This, inflate.h and crc32.h are shared: programs read archives with them, and the
// decoders of pictures (importer/images) are put together with their text.
#ifndef SVOD_PREFIX_CODE_H
#define SVOD_PREFIX_CODE_H

#include <stddef.h>
#include <stdint.h>

namespace svod {

// A Source has int32_t next(): a byte, or -1 at the end.
template <class Source> struct LowBits {
  Source* source = nullptr;
  uint32_t held = 0;
  int32_t count = 0;  // of bits held
  int32_t padded = 0; // of them, zeros from beyond the end
  bool ended = false; // bits beyond the end were used

  // At least n bits are held; n <= 24.
  void fill(int32_t n) {
    while (count < n) {
      const int32_t byte = source->next();
      if (byte >= 0)
        held |= static_cast<uint32_t>(byte) << count;
      else
        padded += 8;
      count += 8;
    }
  }
  void drop(int32_t n) {
    held >>= n;
    count -= n;
    if (padded > count) padded = count, ended = true;
  }
  uint32_t take(int32_t n) {
    fill(n);
    const uint32_t value = held & ((1u << n) - 1);
    drop(n);
    return value;
  }
};

struct PrefixCode {
  static constexpr int32_t kFastBits = 8, kMostBits = 15;
  uint16_t fast[1 << kFastBits]; // length << 12 | symbol; 0: a longer code
  uint16_t count[kMostBits + 1]; // of codes, by length
  uint16_t* symbols;             // in the order of their codes
  int32_t used;                  // symbols that have a code
  int32_t only;                  // the symbol of a code without bits, or -1
};

// The count of each length; false where there are more codes than bits can tell apart.
// `missing`: codes that no symbol has, in units of the longest.
inline bool count_lengths(PrefixCode& code, const uint8_t* lengths, int32_t size,
                          int32_t& missing) {
  for (uint16_t& count : code.count) count = 0;
  code.used = 0;
  for (int32_t i = 0; i < size; ++i)
    if (lengths[i] != 0) ++code.count[lengths[i]], ++code.used;
  missing = 1;
  for (int32_t length = 1; length <= PrefixCode::kMostBits; ++length) {
    missing = 2 * missing - code.count[length];
    if (missing < 0) return false;
  }
  return true;
}

inline void fill_fast(PrefixCode& code) {
  for (uint16_t& entry : code.fast) entry = 0;
  int32_t next = 0, index = 0;
  for (int32_t length = 1; length <= PrefixCode::kFastBits; ++length) {
    next <<= 1;
    for (int32_t i = 0; i < code.count[length]; ++i, ++next, ++index) {
      int32_t reversed = 0;
      for (int32_t bit = 0; bit < length; ++bit)
        reversed |= (next >> bit & 1) << (length - 1 - bit);
      for (; reversed < 1 << PrefixCode::kFastBits; reversed += 1 << length)
        code.fast[reversed] = static_cast<uint16_t>(length << 12 | code.symbols[index]);
    }
  }
}

// From counted lengths; `symbols` has room for `used`.
inline void order_symbols(PrefixCode& code, const uint8_t* lengths, int32_t size) {
  uint16_t start[PrefixCode::kMostBits + 2] = {};
  for (int32_t length = 1; length <= PrefixCode::kMostBits; ++length)
    start[length + 1] = static_cast<uint16_t>(start[length] + code.count[length]);
  for (int32_t i = 0; i < size; ++i)
    if (lengths[i] != 0) code.symbols[start[lengths[i]]++] = static_cast<uint16_t>(i);
  code.only = -1;
  fill_fast(code);
}

// -1: no symbol has this code.
template <class Source>
int32_t read_symbol(const PrefixCode& code, LowBits<Source>& bits) {
  if (code.only >= 0) return code.only;
  bits.fill(PrefixCode::kMostBits);
  const uint32_t entry = code.fast[bits.held & ((1 << PrefixCode::kFastBits) - 1)];
  if (entry != 0) {
    bits.drop(static_cast<int32_t>(entry >> 12));
    return static_cast<int32_t>(entry & 4095);
  }
  int32_t value = 0, first = 0, index = 0;
  for (int32_t length = 1; length <= PrefixCode::kMostBits; ++length) {
    value = value << 1 | static_cast<int32_t>(bits.held >> (length - 1) & 1);
    const int32_t count = code.count[length];
    first <<= 1;
    if (value - first < count) {
      bits.drop(length);
      return code.symbols[index + value - first];
    }
    first += count, index += count;
  }
  return -1;
}

} // namespace svod

#endif
