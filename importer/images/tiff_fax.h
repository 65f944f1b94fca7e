// The packings that TIFF took from fax machines: rows as runs of white and black, in
// one dimension (ITU-T T.4; revision 6.0, sections 10 and 11) or told by how the row
// above changes (T.4 in two dimensions, T.6).
//
// A code is looked up with a 1 in front of its bits, which makes codes of all lengths
// different numbers. A row is the list of its changes of colour, made from what the codes
// say, and read as a stream of bytes, black as 1.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

enum class TiffFaxKind : uint32_t { Rows = 2, Lines = 3, Pages = 4 }; // tag Compression

struct TiffFaxForm {
  TiffFaxKind kind;
  bool is_two_dimensional; // of Lines: a bit behind each end of line tells
  bool is_low_bit_first;
  uint32_t width;
};

// Runs of 0 to 63, then 64 to 1728 in steps of 64 (T.4, tables 2 and 3a).
inline constexpr uint16_t kTiffWhiteRuns[] = {
    0x135, 0x47,  0x17,  0x18,  0x1b,  0x1c,  0x1e,  0x1f,  0x33,  0x34,  0x27,  0x28,
    0x48,  0x43,  0x74,  0x75,  0x6a,  0x6b,  0xa7,  0x8c,  0x88,  0x97,  0x83,  0x84,
    0xa8,  0xab,  0x93,  0xa4,  0x98,  0x102, 0x103, 0x11a, 0x11b, 0x112, 0x113, 0x114,
    0x115, 0x116, 0x117, 0x128, 0x129, 0x12a, 0x12b, 0x12c, 0x12d, 0x104, 0x105, 0x10a,
    0x10b, 0x152, 0x153, 0x154, 0x155, 0x124, 0x125, 0x158, 0x159, 0x15a, 0x15b, 0x14a,
    0x14b, 0x132, 0x133, 0x134, 0x3b,  0x32,  0x57,  0xb7,  0x136, 0x137, 0x164, 0x165,
    0x168, 0x167, 0x2cc, 0x2cd, 0x2d2, 0x2d3, 0x2d4, 0x2d5, 0x2d6, 0x2d7, 0x2d8, 0x2d9,
    0x2da, 0x2db, 0x298, 0x299, 0x29a, 0x58,  0x29b};
inline constexpr uint16_t kTiffBlackRuns[] = {
    0x437,  0xa,    0x7,    0x6,    0xb,    0x13,   0x12,   0x23,   0x45,   0x44,
    0x84,   0x85,   0x87,   0x104,  0x107,  0x218,  0x417,  0x418,  0x408,  0x867,
    0x868,  0x86c,  0x837,  0x828,  0x817,  0x818,  0x10ca, 0x10cb, 0x10cc, 0x10cd,
    0x1068, 0x1069, 0x106a, 0x106b, 0x10d2, 0x10d3, 0x10d4, 0x10d5, 0x10d6, 0x10d7,
    0x106c, 0x106d, 0x10da, 0x10db, 0x1054, 0x1055, 0x1056, 0x1057, 0x1064, 0x1065,
    0x1052, 0x1053, 0x1024, 0x1037, 0x1038, 0x1027, 0x1028, 0x1058, 0x1059, 0x102b,
    0x102c, 0x105a, 0x1066, 0x1067, 0x40f,  0x10c8, 0x10c9, 0x105b, 0x1033, 0x1034,
    0x1035, 0x206c, 0x206d, 0x204a, 0x204b, 0x204c, 0x204d, 0x2072, 0x2073, 0x2074,
    0x2075, 0x2076, 0x2077, 0x2052, 0x2053, 0x2054, 0x2055, 0x205a, 0x205b, 0x2064,
    0x2065};
// Of either colour: 1792 to 2560 (table 3b).
inline constexpr uint16_t kTiffLongRuns[] = {0x808,  0x80c,  0x80d,  0x1012, 0x1013,
                                             0x1014, 0x1015, 0x1016, 0x1017, 0x101c,
                                             0x101d, 0x101e, 0x101f};
// Pass, horizontal, then the next change 3 to the left of the one above to 3 to the
// right (T.4, table 4).
inline constexpr uint16_t kTiffModes[] = {0x11, 0x9, 0x82, 0x42, 0xa,
                                          0x3,  0xb, 0x43, 0x83};

class TiffFax {
public:
  bool prepare(Job& job, const TiffFaxForm& form) {
    form_ = form;
    above_ = job.take<uint32_t>(form.width + kBehind);
    changes_ = job.take<uint32_t>(form.width + kBehind);
    bytes_ = job.take<uint8_t>(row_bytes());
    if (above_ == nullptr || changes_ == nullptr || bytes_ == nullptr) return false;
    const auto enter = [](uint8_t* to, const uint16_t* codes, uint32_t count,
                          uint32_t first) {
      for (uint32_t i = 0; i < count; ++i) to[codes[i]] = static_cast<uint8_t>(first + i);
    };
    constexpr uint32_t kRuns = sizeof(kTiffWhiteRuns) / sizeof(uint16_t);
    constexpr uint32_t kLong = sizeof(kTiffLongRuns) / sizeof(uint16_t);
    enter(white_, kTiffWhiteRuns, kRuns, 1);
    enter(white_, kTiffLongRuns, kLong, 1 + kRuns);
    enter(black_, kTiffBlackRuns, kRuns, 1);
    enter(black_, kTiffLongRuns, kLong, 1 + kRuns);
    enter(modes_, kTiffModes, sizeof(kTiffModes) / sizeof(uint16_t), 1);
    return true;
  }

  // A strip begins below a white row.
  void open(Bytes in) {
    in_ = in;
    held_ = held_bits_ = 0;
    count_ = 0;
    at_ = row_bytes();
    failed_ = false;
  }

  int32_t next() {
    if (at_ == row_bytes()) {
      failed_ = failed_ || !read_row();
      if (failed_) return -1;
      write_row();
      at_ = 0;
    }
    return bytes_[at_++];
  }

private:
  static constexpr uint32_t kCodeBits = 13, kBehind = 2;
  enum Mode : uint32_t { kPass = 1, kHorizontal = 2, kStraight = 6 };

  uint32_t row_bytes() const { return (form_.width + 7) / 8; }

  // A bit, or -1 at the end.
  int32_t bit() {
    if (held_bits_ == 0) {
      const int32_t byte = in_.next();
      if (byte < 0) return -1;
      held_ = static_cast<uint32_t>(byte), held_bits_ = 8;
    }
    --held_bits_;
    return static_cast<int32_t>(
        held_ >> (form_.is_low_bit_first ? 7 - held_bits_ : held_bits_) & 1);
  }

  // The entry of the next code, or 0 where there is none.
  uint32_t code(const uint8_t* table) {
    uint32_t bits = 1;
    for (uint32_t i = 0; i < kCodeBits; ++i) {
      const int32_t next = bit();
      if (next < 0) return 0;
      bits = bits << 1 | static_cast<uint32_t>(next);
      if (table[bits] != 0) return table[bits];
    }
    return 0;
  }

  // Codes of a run: such of 64 and more, then one of less.
  bool run(bool is_black, uint32_t& length) {
    length = 0;
    for (;;) {
      const uint32_t entry = code(is_black ? black_ : white_);
      if (entry == 0 || length > form_.width) return false;
      if (entry <= 64) {
        length += entry - 1;
        return true;
      }
      length += (entry - 64) * 64;
    }
  }

  // Two changes in one place are none.
  void change(uint32_t at) {
    if (at >= form_.width) return;
    if (count_ > 0 && changes_[count_ - 1] == at)
      --count_;
    else
      changes_[count_++] = at;
  }

  bool read_row() {
    uint32_t* const last = above_;
    above_ = changes_, changes_ = last;
    above_[count_] = above_[count_ + 1] = form_.width;
    count_ = 0;
    if (form_.kind == TiffFaxKind::Pages) return read_row_by_above();
    if (form_.kind == TiffFaxKind::Rows) {
      held_bits_ = 0; // rows begin at bytes
      return read_row_alone();
    }
    if (!skip_end_of_line()) return false;
    if (!form_.is_two_dimensional) return read_row_alone();
    const int32_t is_alone = bit();
    return is_alone > 0 ? read_row_alone() : is_alone == 0 && read_row_by_above();
  }

  // At least eleven times 0 and a 1; a line may be filled up in front of it.
  bool skip_end_of_line() {
    for (uint32_t zeros = 0;;) {
      const int32_t next = bit();
      if (next < 0) return false;
      if (next == 0)
        ++zeros;
      else if (zeros >= 11)
        return true;
      else
        zeros = 0;
    }
  }

  bool read_row_alone() {
    bool is_black = false;
    for (uint32_t at = 0, length = 0; at < form_.width; is_black = !is_black) {
      if (!run(is_black, length) || length > form_.width - at) return false;
      at += length;
      change(at);
    }
    return true;
  }

  // T.4, 4.2.1.3: `at` is a0, `next` the first change above that is to its right and of
  // the other colour.
  bool read_row_by_above() {
    bool is_black = false;
    uint32_t at = 0, next = 0;
    while (at < form_.width) {
      // A code to the left may have gone back beyond a change above.
      while (next > 0 && above_[next - 1] > at) --next;
      while (above_[next] < form_.width &&
             ((above_[next] <= at && at > 0) || (next % 2 == 1) != is_black))
        ++next;
      const uint32_t mode = code(modes_);
      if (mode == 0) return false;
      if (mode == kPass) {
        at = above_[next] == form_.width ? form_.width : above_[next + 1];
      } else if (mode == kHorizontal) {
        for (uint32_t i = 0; i < 2; ++i, is_black = !is_black) {
          uint32_t length = 0;
          if (!run(is_black, length) || length > form_.width - at) return false;
          at += length;
          change(at);
        }
      } else {
        const uint32_t moved = above_[next] + mode;
        if (moved < at + kStraight || moved > form_.width + kStraight) return false;
        at = moved - kStraight;
        change(at);
        is_black = !is_black;
      }
    }
    return true;
  }

  void write_row() {
    changes_[count_] = form_.width;
    for (uint32_t i = 0; i < row_bytes(); ++i) bytes_[i] = 0;
    for (uint32_t i = 0; i < count_; i += 2)
      for (uint32_t x = changes_[i]; x < changes_[i + 1]; ++x)
        bytes_[x / 8] = static_cast<uint8_t>(bytes_[x / 8] | 0x80u >> x % 8);
  }

  TiffFaxForm form_;
  Bytes in_;
  uint32_t held_, held_bits_, count_, at_;
  bool failed_;
  uint32_t *above_, *changes_; // where rows change colour, from white
  uint8_t* bytes_;
  uint8_t white_[1 << (kCodeBits + 1)], black_[1 << (kCodeBits + 1)];
  uint8_t modes_[1 << (kCodeBits + 1)];
};

} // namespace svod::image
