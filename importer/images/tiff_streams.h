// The two packings that only TIFF has here, a byte at a time (revision 6.0, sections 9
// and 13).
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

// A count n and what follows: n + 1 bytes as they are, or one byte 257 - n times.
struct TiffPackBits {
  Bytes in;
  uint32_t left = 0;
  int32_t repeated = -1; // the byte, or as they are

  int32_t next() {
    while (left == 0) {
      const int32_t count = in.next();
      if (count < 0) return -1;
      if (count == 128) continue;
      left = static_cast<uint32_t>(count < 128 ? count + 1 : 257 - count);
      repeated = count > 128 ? in.next() : -1;
      if (count > 128 && repeated < 0) return -1;
    }
    --left;
    return repeated >= 0 ? repeated : in.next();
  }
};

// LZW: codes of 9 to 12 bits, the highest bit first. A code is a byte, or a code before
// it and one more byte; so a code is read from its end, into `pending`.
class TiffLzw {
public:
  void open(Bytes in) {
    in_ = in;
    held_ = 0, held_bits_ = 0, pending_count_ = 0;
    finished_ = false;
    clear();
  }

  int32_t next() {
    while (pending_count_ == 0) {
      if (finished_ || !expand()) {
        finished_ = true;
        return -1;
      }
    }
    return pending_[--pending_count_];
  }

private:
  static constexpr uint32_t kClear = 256, kEnd = 257, kFirst = 258, kMost = 4096;

  void clear() { next_code_ = kFirst, code_bits_ = 9, last_ = kMost; }

  bool read_code(uint32_t& code) {
    while (held_bits_ < code_bits_) {
      const int32_t byte = in_.next();
      if (byte < 0) return false;
      held_ = held_ << 8 | static_cast<uint32_t>(byte);
      held_bits_ += 8;
    }
    held_bits_ -= code_bits_;
    code = held_ >> held_bits_ & ((1u << code_bits_) - 1);
    return true;
  }

  // The bytes of one code.
  bool expand() {
    uint32_t code = 0;
    if (!read_code(code) || code == kEnd) return false;
    if (code == kClear) {
      clear();
      return true;
    }
    const bool has_last = last_ != kMost;
    if (code > next_code_ || (code == next_code_ && !has_last)) return false;
    uint32_t at = code;
    if (code == next_code_) { // the one that is about to be made
      pending_[pending_count_++] = first_byte_;
      at = last_;
    }
    while (at >= kFirst && pending_count_ + 1 < kMost) {
      pending_[pending_count_++] = suffix_[at];
      at = prefix_[at];
    }
    first_byte_ = static_cast<uint8_t>(at);
    pending_[pending_count_++] = first_byte_;
    if (has_last && next_code_ < kMost) {
      prefix_[next_code_] = static_cast<uint16_t>(last_);
      suffix_[next_code_] = first_byte_;
      ++next_code_;
      // One code earlier than needed.
      if (next_code_ + 1 >= 1u << code_bits_ && code_bits_ < 12) ++code_bits_;
    }
    last_ = code;
    return true;
  }

  Bytes in_;
  uint32_t held_, held_bits_, code_bits_, next_code_, last_, pending_count_;
  uint16_t prefix_[kMost];
  uint8_t suffix_[kMost], pending_[kMost + 1];
  uint8_t first_byte_;
  bool finished_;
};

} // namespace svod::image
