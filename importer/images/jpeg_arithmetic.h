// The coefficients of a JPEG block as decisions of an arithmetic code: the decoder of
// ITU-T T.81, annex D.2, its decisions for sequential (annex F.1.4) and progressive scans
// (annex G.1.3).
//
// Each decision has a bin: an estimate of how improbable one of its two values is, which
// learns with each use. There are bins for "is it the last", "is it 0", the sign, the
// logarithm of the magnitude in steps and the bits below it.
#pragma once

#include "importer/images/jpeg_frame.h"

namespace svod::image {

// Table D.3: what the less probable symbol weighs, the state after it and after the
// other, and whether the two change places. The last is for bits that are even: it never
// learns.
struct JpegEstimate {
  uint16_t weight;
  uint8_t after_less, after_more;
  bool exchanges;
};
inline constexpr JpegEstimate kJpegEstimates[] = {
    {0x5a1d, 1, 1, true},      {0x2586, 14, 2, false},    {0x1114, 16, 3, false},
    {0x080b, 18, 4, false},    {0x03d8, 20, 5, false},    {0x01da, 23, 6, false},
    {0x00e5, 25, 7, false},    {0x006f, 28, 8, false},    {0x0036, 30, 9, false},
    {0x001a, 33, 10, false},   {0x000d, 35, 11, false},   {0x0006, 9, 12, false},
    {0x0003, 10, 13, false},   {0x0001, 12, 13, false},   {0x5a7f, 15, 15, true},
    {0x3f25, 36, 16, false},   {0x2cf2, 38, 17, false},   {0x207c, 39, 18, false},
    {0x17b9, 40, 19, false},   {0x1182, 42, 20, false},   {0x0cef, 43, 21, false},
    {0x09a1, 45, 22, false},   {0x072f, 46, 23, false},   {0x055c, 48, 24, false},
    {0x0406, 49, 25, false},   {0x0303, 51, 26, false},   {0x0240, 52, 27, false},
    {0x01b1, 54, 28, false},   {0x0144, 56, 29, false},   {0x00f5, 57, 30, false},
    {0x00b7, 59, 31, false},   {0x008a, 60, 32, false},   {0x0068, 62, 33, false},
    {0x004e, 63, 34, false},   {0x003b, 32, 35, false},   {0x002c, 33, 9, false},
    {0x5ae1, 37, 37, true},    {0x484c, 64, 38, false},   {0x3a0d, 65, 39, false},
    {0x2ef1, 67, 40, false},   {0x261f, 68, 41, false},   {0x1f33, 69, 42, false},
    {0x19a8, 70, 43, false},   {0x1518, 72, 44, false},   {0x1177, 73, 45, false},
    {0x0e74, 74, 46, false},   {0x0bfb, 75, 47, false},   {0x09f8, 77, 48, false},
    {0x0861, 78, 49, false},   {0x0706, 79, 50, false},   {0x05cd, 48, 51, false},
    {0x04de, 50, 52, false},   {0x040f, 50, 53, false},   {0x0363, 51, 54, false},
    {0x02d4, 52, 55, false},   {0x025c, 53, 56, false},   {0x01f8, 54, 57, false},
    {0x01a4, 55, 58, false},   {0x0160, 56, 59, false},   {0x0125, 57, 60, false},
    {0x00f6, 58, 61, false},   {0x00cb, 59, 62, false},   {0x00ab, 61, 63, false},
    {0x008f, 61, 32, false},   {0x5b12, 65, 65, true},    {0x4d04, 80, 66, false},
    {0x412c, 81, 67, false},   {0x37d8, 82, 68, false},   {0x2fe8, 83, 69, false},
    {0x293c, 84, 70, false},   {0x2379, 86, 71, false},   {0x1edf, 87, 72, false},
    {0x1aa9, 87, 73, false},   {0x174e, 72, 74, false},   {0x1424, 72, 75, false},
    {0x119c, 74, 76, false},   {0x0f6b, 74, 77, false},   {0x0d51, 75, 78, false},
    {0x0bb6, 77, 79, false},   {0x0a40, 77, 48, false},   {0x5832, 80, 81, true},
    {0x4d1c, 88, 82, false},   {0x438e, 89, 83, false},   {0x3bdd, 90, 84, false},
    {0x34ee, 91, 85, false},   {0x2eae, 92, 86, false},   {0x299a, 93, 87, false},
    {0x2516, 86, 71, false},   {0x5570, 88, 89, true},    {0x4ca9, 95, 90, false},
    {0x44d9, 96, 91, false},   {0x3e22, 97, 92, false},   {0x3824, 99, 93, false},
    {0x32b4, 99, 94, false},   {0x2e17, 93, 86, false},   {0x56a8, 95, 96, true},
    {0x4f46, 101, 97, false},  {0x47e5, 102, 98, false},  {0x41cf, 103, 99, false},
    {0x3c3d, 104, 100, false}, {0x375e, 99, 93, false},   {0x5231, 105, 102, false},
    {0x4c0f, 106, 103, false}, {0x4639, 107, 104, false}, {0x415e, 103, 99, false},
    {0x5627, 105, 106, true},  {0x50e7, 108, 107, false}, {0x4b85, 109, 103, false},
    {0x5597, 110, 109, false}, {0x504f, 111, 107, false}, {0x5a10, 110, 111, true},
    {0x5522, 112, 109, false}, {0x59eb, 112, 111, true},  {0x5a1d, 113, 113, false}};
inline constexpr uint8_t kJpegEven = 113;

// One scan's; see JpegScanReader.
class JpegArithmetic {
public:
  JpegArithmetic(Jpeg& jpeg, const JpegScan& scan)
      : jpeg_(jpeg), scan_(scan), bins_(jpeg.bins) {}

  void open(Bytes in) {
    in_ = in;
    for (uint32_t table = 0; table < 4; ++table) {
      for (uint8_t& bin : bins_.dc[table]) bin = 0;
      for (uint8_t& bin : bins_.ac[table]) bin = 0;
    }
    held_ = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      take_byte();
      held_ <<= 8;
    }
    interval_ = 0x10000, bits_left_ = 0;
  }
  Bytes rest() const { return in_; }
  bool ended() const { return in_.ended; }

  bool read(JpegComponent& component, int16_t* block) {
    if (!jpeg_.is_progressive)
      return read_dc(component, block) && read_ac(component, block, 1, 63);
    if (scan_.first == 0)
      return scan_.high == 0 ? read_dc(component, block) : refine_dc(block);
    return scan_.high == 0 ? read_ac(component, block, scan_.first, scan_.last)
                           : refine_ac(component, block);
  }

private:
  static constexpr uint32_t kMagnitudeBits = 14; // from a bin of steps to that of bits
  static constexpr uint32_t kMost = 0x8000;

  // A marker ends the bytes: behind it are zeros.
  void take_byte() {
    if (in_.at == in_.end) {
      in_.ended = true;
    } else if (*in_.at != 0xff) {
      held_ += static_cast<uint32_t>(*in_.at++) << 8;
    } else if (in_.left() >= 2 && in_.at[1] == 0) { // a byte 0xff has a 0 behind it
      held_ += 0xff00;
      in_.at += 2;
    }
  }

  // Figures D.14 to D.18.
  bool decide(uint8_t& bin) {
    constexpr uint32_t kHalf = 0x8000;
    const JpegEstimate& estimate = kJpegEstimates[bin & 127];
    const bool more = bin >> 7 != 0;
    interval_ -= estimate.weight;
    bool is_less = interval_ < estimate.weight; // where the two intervals change places
    if (held_ >> 16 < interval_) {
      if (interval_ >= kHalf) return more;
    } else {
      held_ -= interval_ << 16;
      interval_ = estimate.weight;
      is_less = !is_less;
    }
    const bool next_more = more != (is_less && estimate.exchanges);
    bin = static_cast<uint8_t>((is_less ? estimate.after_less : estimate.after_more) |
                               (next_more ? 128 : 0));
    do {
      if (bits_left_ == 0) {
        take_byte();
        bits_left_ = 8;
      }
      interval_ <<= 1, held_ <<= 1, --bits_left_;
    } while (interval_ < kHalf);
    return more != is_less;
  }
  bool decide_even() {
    uint8_t bin = kJpegEven;
    return decide(bin);
  }

  // F.1.4.3.2: a magnitude less 1 that has its highest bit at `magnitude` or above; steps
  // are at `at` and behind it.
  bool read_magnitude(uint8_t* bins, uint32_t at, uint32_t& magnitude) {
    for (; decide(bins[at]); ++at) {
      magnitude <<= 1;
      if (magnitude == kMost) return false;
    }
    for (uint32_t bit = magnitude >> 1; bit != 0; bit >>= 1)
      if (decide(bins[at + kMagnitudeBits])) magnitude |= bit;
    return true;
  }

  // F.1.4.1: how the last difference was decides which bins are used.
  bool read_dc(JpegComponent& component, int16_t* block) {
    constexpr uint32_t kSteps = 20;
    uint8_t* const bins = bins_.dc[component.dc];
    const auto first = static_cast<uint32_t>(component.context);
    component.context = 0;
    if (decide(bins[first])) {
      const bool is_negative = decide(bins[first + 1]);
      uint32_t magnitude = decide(bins[first + (is_negative ? 3 : 2)]) ? 1 : 0;
      if (magnitude != 0 && !read_magnitude(bins, kSteps, magnitude)) return false;
      const auto size = static_cast<int32_t>(magnitude + 1);
      const int32_t none_bits = jpeg_.none_bits[component.dc];
      if (size > 1 << jpeg_.small_bits[component.dc])
        component.context = is_negative ? 16 : 12;
      else if (none_bits == 0 || size > 1 << (none_bits - 1))
        component.context = is_negative ? 8 : 4;
      component.predictor =
          static_cast<int16_t>(component.predictor + (is_negative ? -size : size));
    }
    block[0] = static_cast<int16_t>(component.predictor * (1 << scan_.low));
    return true;
  }

  bool refine_dc(int16_t* block) {
    if (decide_even()) block[0] = static_cast<int16_t>(block[0] | 1 << scan_.low);
    return true;
  }

  // The three bins of each zigzag place: is it the end, is it not 0, how large.
  static uint32_t place_bins(int32_t k) { return 3 * static_cast<uint32_t>(k - 1); }

  // F.1.4.2
  bool read_ac(JpegComponent& component, int16_t* block, int32_t first, int32_t last) {
    uint8_t* const bins = bins_.ac[component.ac];
    for (int32_t k = first; k <= last; ++k) {
      if (decide(bins[place_bins(k)])) return true;
      while (!decide(bins[place_bins(k) + 1]))
        if (++k > last) return false;
      const bool is_negative = decide_even();
      uint8_t& size_bin = bins[place_bins(k) + 2];
      uint32_t magnitude = decide(size_bin) ? 1 : 0;
      if (magnitude != 0 && decide(size_bin)) {
        magnitude = 2;
        const bool is_low = k <= jpeg_.low_places[component.ac];
        if (!read_magnitude(bins, is_low ? 189 : 217, magnitude)) return false;
      }
      const auto size = static_cast<int32_t>(magnitude + 1);
      block[kJpegZigzag[k]] =
          static_cast<int16_t>((is_negative ? -size : size) * (1 << scan_.low));
    }
    return true;
  }

  // G.1.3.3: no end is told before the last place that is not 0 so far.
  bool refine_ac(JpegComponent& component, int16_t* block) {
    uint8_t* const bins = bins_.ac[component.ac];
    const int32_t step = 1 << scan_.low;
    int32_t filled = scan_.last;
    while (filled > 0 && block[kJpegZigzag[filled]] == 0) --filled;
    for (int32_t k = scan_.first; k <= scan_.last; ++k) {
      if (k > filled && decide(bins[place_bins(k)])) return true;
      for (;; ++k) {
        if (k > scan_.last) return false;
        int16_t& value = block[kJpegZigzag[k]];
        if (value != 0) {
          if (decide(bins[place_bins(k) + 2]))
            value = static_cast<int16_t>(value + (value < 0 ? -step : step));
          break;
        }
        if (decide(bins[place_bins(k) + 1])) {
          value = static_cast<int16_t>(decide_even() ? -step : step);
          break;
        }
      }
    }
    return true;
  }

  const Jpeg& jpeg_;
  const JpegScan& scan_;
  JpegBins& bins_;
  Bytes in_;
  uint32_t held_, interval_, bits_left_;
};

} // namespace svod::image
