// Deflate (RFC 1951), bare or in its zlib wrapping (RFC 1950), a byte at a time: whoever
// needs the next byte asks for it, so rows of pixels need no buffer for the whole stream.
// The check sum at the end is not read: a picture may end before it.
#ifndef SVOD_INFLATE_H
#define SVOD_INFLATE_H

#include "runtime_stub/prefix_code.h"

namespace svod {

template <class Source> class Inflate {
public:
  // An object may begin again.
  void begin(Source* source) {
    bits_ = {source};
    at_ = written_ = copy_left_ = distance_back_ = stored_left_ = 0;
    in_codes_ = last_block_ = finished_ = false;
    literal_.symbols = literal_symbols_, distance_.symbols = distance_symbols_;
  }

  // Begins, with what wraps the stream; false: that is no zlib stream.
  bool open(Source* source) {
    begin(source);
    const uint32_t method = bits_.take(8), flags = bits_.take(8);
    return (method * 256 + flags) % 31 == 0 && (method & 15) == 8 && (flags & 32) == 0;
  }

  // -1: the end, or what is no stream.
  int32_t next() {
    while (!finished_) {
      if (copy_left_ > 0) {
        --copy_left_;
        return give(window_[(at_ - distance_back_) & kWindowMask]);
      }
      if (stored_left_ > 0) {
        --stored_left_;
        const uint32_t byte = bits_.take(8);
        if (bits_.ended) break;
        return give(byte);
      }
      if (!in_codes_) {
        if (last_block_ || !open_block()) break;
        continue;
      }
      const int32_t symbol = read_symbol(literal_, bits_);
      if (symbol < 0 || bits_.ended) break;
      if (symbol < 256) return give(static_cast<uint32_t>(symbol));
      if (symbol == 256)
        in_codes_ = false;
      else if (!start_copy(symbol - 257))
        break;
    }
    finished_ = true;
    return -1;
  }

private:
  static constexpr uint32_t kWindowMask = 32767;

  int32_t give(uint32_t byte) {
    window_[at_++ & kWindowMask] = static_cast<uint8_t>(byte);
    if (written_ <= kWindowMask) ++written_;
    return static_cast<int32_t>(byte);
  }

  // 3.2.5: lengths and distances are a base and extra bits.
  bool start_copy(int32_t code) {
    static constexpr uint16_t kLengths[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                              15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                              67, 83, 99, 115, 131, 163, 195, 227, 258};
    static constexpr uint8_t kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1,
                                                1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                                4, 4, 4, 4, 5, 5, 5, 5, 0};
    if (code >= 29) return false;
    copy_left_ = kLengths[code] + bits_.take(kLengthBits[code]);
    const int32_t far = read_symbol(distance_, bits_);
    if (far < 0 || far >= 30) return false;
    const int32_t extra = far < 4 ? 0 : far / 2 - 1;
    const uint32_t base = far < 4
                              ? static_cast<uint32_t>(far) + 1
                              : (2u + static_cast<uint32_t>(far & 1)) * (1u << extra) + 1;
    distance_back_ = base + bits_.take(extra);
    return !bits_.ended && distance_back_ <= written_;
  }

  bool open_block() {
    last_block_ = bits_.take(1) != 0;
    switch (bits_.take(2)) {
    case 0: {
      bits_.drop(bits_.count % 8);
      stored_left_ = bits_.take(16);
      return (stored_left_ ^ bits_.take(16)) == 0xffff && !bits_.ended;
    }
    case 1:
      fixed_codes();
      return true;
    case 2:
      return read_codes();
    default:
      return false;
    }
  }

  bool make(PrefixCode& code, const uint8_t* lengths, int32_t size) {
    int32_t missing = 0;
    if (!count_lengths(code, lengths, size, missing)) return false;
    // One code of one bit may stand alone, and a block without copies has no distances.
    const bool alone = code.used == code.count[1] && code.used <= 1;
    if (missing > 0 && !alone) return false;
    order_symbols(code, lengths, size);
    return true;
  }

  void fixed_codes() {
    for (int32_t i = 0; i < 288; ++i)
      lengths_[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make(literal_, lengths_, 288);
    for (int32_t i = 0; i < 32; ++i) lengths_[i] = 5;
    make(distance_, lengths_, 32);
    in_codes_ = true;
  }

  // 3.2.7: the lengths of both codes, themselves coded.
  bool read_codes() {
    static constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                           11, 4,  12, 3, 13, 2, 14, 1, 15};
    const auto literals = static_cast<int32_t>(bits_.take(5)) + 257;
    const auto distances = static_cast<int32_t>(bits_.take(5)) + 1;
    const uint32_t count = bits_.take(4) + 4;
    if (literals > 286 || distances > 30) return false;
    for (uint32_t i = 0; i < 19; ++i) lengths_[kOrder[i]] = 0;
    for (uint32_t i = 0; i < count; ++i)
      lengths_[kOrder[i]] = static_cast<uint8_t>(bits_.take(3));
    if (!make(literal_, lengths_, 19)) return false;
    for (int32_t i = 0; i < literals + distances;) {
      const int32_t symbol = read_symbol(literal_, bits_);
      if (symbol < 0 || bits_.ended) return false;
      int32_t repeat = 1;
      uint8_t length = static_cast<uint8_t>(symbol);
      if (symbol == 16 && i == 0) return false;
      if (symbol == 16) length = lengths_[i - 1];
      if (symbol > 16) length = 0;
      if (symbol == 16) repeat = 3 + static_cast<int32_t>(bits_.take(2));
      if (symbol == 17) repeat = 3 + static_cast<int32_t>(bits_.take(3));
      if (symbol == 18) repeat = 11 + static_cast<int32_t>(bits_.take(7));
      if (repeat > literals + distances - i) return false;
      for (; repeat > 0; --repeat) lengths_[i++] = length;
    }
    in_codes_ = lengths_[256] != 0 && make(literal_, lengths_, literals) &&
                make(distance_, lengths_ + literals, distances);
    return in_codes_ && !bits_.ended;
  }

  LowBits<Source> bits_;
  PrefixCode literal_, distance_;
  uint16_t literal_symbols_[288], distance_symbols_[32];
  uint8_t lengths_[288 + 32];
  uint8_t window_[kWindowMask + 1];
  uint32_t at_, written_, copy_left_, distance_back_, stored_left_;
  bool in_codes_, last_block_, finished_;
};

} // namespace svod

#endif
