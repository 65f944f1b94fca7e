// The coefficients of a JPEG block as Huffman codes: baseline (ITU-T T.81, annex F) and
// progressive (annex G).
#pragma once

#include "importer/images/jpeg_frame.h"

namespace svod::image {

// Bits from the highest down. A marker ends them: behind it are zeros.
struct JpegBits {
  Bytes in;
  uint32_t held = 0;
  int32_t count = 0;  // of bits held
  int32_t padded = 0; // of them, zeros from beyond the end
  bool ended = false; // bits beyond the end were used

  // At least n bits are held; n <= 24.
  void fill(int32_t n) {
    while (count < n) {
      uint32_t byte = 0;
      if (in.at == in.end) {
        padded += 8;
      } else if (*in.at != 0xff) {
        byte = *in.at++;
      } else if (in.left() >= 2 && in.at[1] == 0) { // a byte 0xff has a 0 behind it
        byte = 0xff;
        in.at += 2;
      } else {
        padded += 8;
      }
      held = held << 8 | byte;
      count += 8;
    }
  }
  void drop(int32_t n) {
    count -= n;
    if (padded > count) padded = count, ended = true;
  }
  uint32_t peek(int32_t n) {
    fill(n);
    return held >> (count - n) & ((1u << n) - 1);
  }
  uint32_t take(int32_t n) {
    const uint32_t value = peek(n);
    drop(n);
    return value;
  }
  // F.2.2.1: n bits as a number with a sign; a leading 0 is a negative one.
  int32_t take_signed(int32_t n) {
    if (n == 0) return 0;
    const auto value = static_cast<int32_t>(take(n));
    return value < 1 << (n - 1) ? value - (1 << n) + 1 : value;
  }
  // -1: no symbol has this code.
  int32_t symbol(const JpegCode& code) {
    const uint32_t next = peek(16);
    const uint32_t entry = code.fast[next >> (16 - JpegCode::kFastBits)];
    if (entry != 0) {
      drop(static_cast<int32_t>(entry >> 8));
      return static_cast<int32_t>(entry & 255);
    }
    for (int32_t length = JpegCode::kFastBits + 1; length <= 16; ++length) {
      const int32_t at = static_cast<int32_t>(next >> (16 - length)) - code.first[length];
      if (at < 0 || at >= code.start[length + 1] - code.start[length]) continue;
      drop(length);
      return code.symbols[code.start[length] + at];
    }
    return -1;
  }
};

// One scan's; see JpegScanReader.
class JpegHuffman {
public:
  JpegHuffman(const Jpeg& jpeg, const JpegScan& scan) : jpeg_(jpeg), scan_(scan) {}

  void open(Bytes in) {
    bits_ = {in};
    skipped_blocks_ = 0;
  }
  Bytes rest() const { return bits_.in; }
  bool ended() const { return bits_.ended && bits_.in.at == bits_.in.end; }

  bool read(JpegComponent& component, int16_t* block) {
    if (!jpeg_.is_progressive) return read_whole(component, block);
    if (scan_.first == 0)
      return scan_.high == 0 ? read_dc(component, block) : refine_dc(block);
    return scan_.high == 0 ? read_ac(component, block) : refine_ac(component, block);
  }

private:
  bool read_dc(JpegComponent& component, int16_t* block) {
    const int32_t size = bits_.symbol(jpeg_.dc[component.dc]);
    if (size < 0 || size > 15) return false;
    // A hostile file's sum is cut to what coefficients hold.
    component.predictor =
        static_cast<int16_t>(component.predictor + bits_.take_signed(size));
    block[0] = static_cast<int16_t>(component.predictor * (1 << scan_.low));
    return true;
  }

  bool refine_dc(int16_t* block) {
    if (bits_.take(1) != 0) block[0] = static_cast<int16_t>(block[0] | 1 << scan_.low);
    return true;
  }

  // F.2.2.2: a symbol is a run of zeros and the size of what follows it.
  bool read_whole(JpegComponent& component, int16_t* block) {
    if (!read_dc(component, block)) return false;
    for (int32_t k = 1; k < 64; ++k) {
      const int32_t symbol = bits_.symbol(jpeg_.ac[component.ac]);
      if (symbol < 0) return false;
      const int32_t run = symbol >> 4, size = symbol & 15;
      if (size == 0 && run != 15) return true;
      k += run;
      if (k > 63) return false;
      block[kJpegZigzag[k]] = static_cast<int16_t>(bits_.take_signed(size));
    }
    return true;
  }

  // G.1.2.2: the first bits of coefficients; runs of blocks may have none.
  bool read_ac(JpegComponent& component, int16_t* block) {
    if (skipped_blocks_ > 0) {
      --skipped_blocks_;
      return true;
    }
    for (int32_t k = scan_.first; k <= scan_.last; ++k) {
      const int32_t symbol = bits_.symbol(jpeg_.ac[component.ac]);
      if (symbol < 0) return false;
      const int32_t run = symbol >> 4, size = symbol & 15;
      if (size == 0 && run != 15) {
        skipped_blocks_ = (1u << run) - 1 + bits_.take(run);
        return true;
      }
      k += run;
      if (k > 63) return false;
      block[kJpegZigzag[k]] =
          static_cast<int16_t>(bits_.take_signed(size) * (1 << scan_.low));
    }
    return true;
  }

  // One more bit of a coefficient that has some already.
  void refine(int16_t& coefficient) {
    if (bits_.take(1) == 0) return;
    const int32_t step = 1 << scan_.low;
    if ((coefficient & step) != 0) return;
    coefficient = static_cast<int16_t>(coefficient + (coefficient > 0 ? step : -step));
  }

  // G.1.2.3: new coefficients are +1 or -1; runs count only what is zero so far, and what
  // is not gets its bit on the way.
  bool refine_ac(JpegComponent& component, int16_t* block) {
    int32_t k = scan_.first;
    while (skipped_blocks_ == 0 && k <= scan_.last) {
      const int32_t symbol = bits_.symbol(jpeg_.ac[component.ac]);
      if (symbol < 0) return false;
      int32_t run = symbol >> 4;
      const int32_t size = symbol & 15;
      if (size == 0 && run != 15) {
        skipped_blocks_ = (1u << run) + bits_.take(run);
        break;
      }
      if (size > 1) return false;
      int32_t value = 0;
      if (size == 1) value = bits_.take(1) != 0 ? 1 << scan_.low : -(1 << scan_.low);
      for (; k <= scan_.last; ++k) {
        int16_t& coefficient = block[kJpegZigzag[k]];
        if (coefficient != 0) {
          refine(coefficient);
        } else if (run-- == 0) {
          coefficient = static_cast<int16_t>(value);
          break;
        }
      }
      ++k;
    }
    if (skipped_blocks_ == 0) return true;
    --skipped_blocks_;
    for (; k <= scan_.last; ++k)
      if (block[kJpegZigzag[k]] != 0) refine(block[kJpegZigzag[k]]);
    return true;
  }

  const Jpeg& jpeg_;
  const JpegScan& scan_;
  JpegBits bits_;
  uint32_t skipped_blocks_ = 0;
};

} // namespace svod::image
