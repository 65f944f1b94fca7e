// The coefficients of a code block (ITU-T T.800): bits by the arithmetic decoder of annex
// C, plane by plane in the three passes of annex D. Each bit has a context: what is known
// of the neighbours.
#pragma once

#include "importer/images/jp2_tile.h"

namespace svod::image {

// Table C.2
struct Jp2State {
  uint16_t probability;
  uint8_t next_likely, next_other;
  bool is_switched;
};
inline constexpr Jp2State kJp2States[47] = {
    {0x5601, 1, 1, true},    {0x3401, 2, 6, false},   {0x1801, 3, 9, false},
    {0x0ac1, 4, 12, false},  {0x0521, 5, 29, false},  {0x0221, 38, 33, false},
    {0x5601, 7, 6, true},    {0x5401, 8, 14, false},  {0x4801, 9, 14, false},
    {0x3801, 10, 14, false}, {0x3001, 11, 17, false}, {0x2401, 12, 18, false},
    {0x1c01, 13, 20, false}, {0x1601, 29, 21, false}, {0x5601, 15, 14, true},
    {0x5401, 16, 14, false}, {0x5101, 17, 15, false}, {0x4801, 18, 16, false},
    {0x3801, 19, 17, false}, {0x3401, 20, 18, false}, {0x3001, 21, 19, false},
    {0x2801, 22, 19, false}, {0x2401, 23, 20, false}, {0x2201, 24, 21, false},
    {0x1c01, 25, 22, false}, {0x1801, 26, 23, false}, {0x1601, 27, 24, false},
    {0x1401, 28, 25, false}, {0x1201, 29, 26, false}, {0x1101, 30, 27, false},
    {0x0ac1, 31, 28, false}, {0x09c1, 32, 29, false}, {0x08a1, 33, 30, false},
    {0x0521, 34, 31, false}, {0x0441, 35, 32, false}, {0x02a1, 36, 33, false},
    {0x0221, 37, 34, false}, {0x0141, 38, 35, false}, {0x0111, 39, 36, false},
    {0x0085, 40, 37, false}, {0x0049, 41, 38, false}, {0x0025, 42, 39, false},
    {0x0015, 43, 40, false}, {0x0009, 44, 41, false}, {0x0005, 45, 42, false},
    {0x0001, 45, 43, false}, {0x5601, 46, 46, false}};

// C.3. Beyond the end are ones.
class Jp2Arithmetic {
public:
  void open(const uint8_t* at, const uint8_t* end) {
    at_ = at, end_ = end;
    c_ = byte(0) << 16;
    fill();
    c_ <<= 7, count_ -= 7, a_ = 0x8000;
  }

  struct Context {
    uint8_t state, likely;
  };

  uint32_t read(Context& context) {
    const Jp2State& state = kJp2States[context.state];
    const uint32_t part = state.probability;
    uint32_t bit = context.likely;
    a_ -= part;
    const bool is_lower = c_ >> 16 < part;
    if (!is_lower) {
      c_ -= part << 16;
      if ((a_ & 0x8000) != 0) return bit;
    }
    // The larger part is the likely one, which may be either.
    const bool is_likely = is_lower == (a_ < part);
    if (is_lower) a_ = part;
    if (is_likely) {
      context.state = state.next_likely;
    } else {
      bit ^= 1;
      if (state.is_switched) context.likely ^= 1;
      context.state = state.next_other;
    }
    do {
      if (count_ == 0) fill();
      a_ <<= 1, c_ <<= 1, --count_;
    } while ((a_ & 0x8000) == 0);
    return bit;
  }

private:
  uint32_t byte(size_t i) const {
    return i < static_cast<size_t>(end_ - at_) ? at_[i] : 0xff;
  }
  void fill() {
    const bool is_stuffed = byte(0) == 0xff;
    const uint32_t next = byte(1);
    if (is_stuffed && next > 0x8f) {
      c_ += 0xff00;
      count_ = 8;
      return;
    }
    if (at_ < end_) ++at_;
    c_ += is_stuffed ? next << 9 : next << 8;
    count_ = is_stuffed ? 7 : 8;
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint32_t a_ = 0, c_ = 0;
  int32_t count_ = 0;
};

// Memory for one code block at a time.
struct Jp2BlockWork {
  static constexpr int32_t kMostArea = 4096, kMostSide = 1024;
  // Signs and what happened so far, with a border of one.
  uint8_t flags[kMostArea + 4 * kMostSide + 64];
  int32_t values[kMostArea]; // magnitudes, in halves
};

class Jp2BlockDecoder {
public:
  Jp2BlockDecoder(Jp2BlockWork& work, const Jp2Block& block, int32_t kind, uint32_t style)
      : work_(work), width_(block.width), height_(block.height), kind_(kind),
        style_(style), stride_(block.width + 2) {
    for (int32_t i = 0; i < stride_ * (height_ + 2); ++i) work_.flags[i] = 0;
    for (int32_t i = 0; i < width_ * height_; ++i) work_.values[i] = 0;
    reset();
  }

  // `plane`: the highest one that is coded.
  void decode(const uint8_t* at, const uint8_t* end, int32_t plane, int32_t passes) {
    bits_.open(at, end);
    constexpr uint32_t kResets = 2, kMarksEnds = 0x20;
    for (int32_t pass = 2; passes > 0 && plane >= 0; --passes) {
      plane_ = plane;
      if (pass == 0)
        each_stripe([&](int32_t y, int32_t x) { spread(y, x); });
      else if (pass == 1)
        each_stripe([&](int32_t y, int32_t x) { refine(y, x); });
      else
        clean_up();
      if (pass == 2 && (style_ & kMarksEnds) != 0)
        for (int32_t i = 0; i < 4; ++i) bits_.read(contexts_[kUniform]);
      if (pass == 2) --plane;
      pass = (pass + 1) % 3;
      if ((style_ & kResets) != 0) reset();
    }
  }

  int32_t value(int32_t y, int32_t x) const {
    const int32_t size = work_.values[y * width_ + x];
    return (flag(y, x) & kNegative) != 0 ? -size : size;
  }

private:
  enum Flag : uint8_t { kSignificant = 1, kVisited = 2, kRefined = 4, kNegative = 8 };
  static constexpr int32_t kSign = 9, kRefine = 14, kRun = 17, kUniform = 18;

  // Table D.7
  void reset() {
    for (auto& context : contexts_) context = {0, 0};
    contexts_[0].state = 4, contexts_[kRun].state = 3, contexts_[kUniform].state = 46;
  }
  uint8_t& flag(int32_t y, int32_t x) const {
    return work_.flags[(y + 1) * stride_ + x + 1];
  }
  int32_t is_significant(int32_t y, int32_t x) const { return flag(y, x) & kSignificant; }
  int32_t across(int32_t y, int32_t x) const {
    return is_significant(y, x - 1) + is_significant(y, x + 1);
  }
  int32_t down(int32_t y, int32_t x) const {
    return is_significant(y - 1, x) + is_significant(y + 1, x);
  }
  int32_t diagonal(int32_t y, int32_t x) const {
    return across(y - 1, x) + across(y + 1, x);
  }

  // Table D.1
  int32_t context(int32_t y, int32_t x) const {
    int32_t h = across(y, x), v = down(y, x);
    const int32_t d = diagonal(y, x);
    if (kind_ == 3) {
      const int32_t both = h + v;
      if (d >= 3) return 8;
      if (d == 2) return both >= 1 ? 7 : 6;
      if (d == 1) return 3 + least(both, 2);
      return least(both, 2);
    }
    if (kind_ == 1) {
      const int32_t other = h;
      h = v, v = other;
    }
    if (h == 2) return 8;
    if (h == 1) return v >= 1 ? 7 : d >= 1 ? 6 : 5;
    if (v > 0) return 2 + v;
    return least(d, 2);
  }

  // Tables D.2 and D.3
  void read_sign(int32_t y, int32_t x) {
    const auto sign = [&](int32_t at_y, int32_t at_x) {
      const uint8_t f = flag(at_y, at_x);
      if ((f & kSignificant) == 0) return 0;
      return (f & kNegative) != 0 ? -1 : 1;
    };
    const int32_t h = clamped(sign(y, x - 1) + sign(y, x + 1), -1, 1);
    const int32_t v = clamped(sign(y - 1, x) + sign(y + 1, x), -1, 1);
    const bool is_flipped = h < 0 || (h == 0 && v < 0);
    const int32_t place = h == 0 ? (v == 0 ? 0 : 1) : 3 + (is_flipped ? -v : v);
    const uint32_t bit = bits_.read(contexts_[kSign + place]);
    uint8_t& f = flag(y, x);
    f |= kSignificant;
    if ((bit != 0) != is_flipped) f |= kNegative;
    work_.values[y * width_ + x] = 3 << plane_; // the bit and half of the next
  }

  // D.3.1: what has significant neighbours.
  void spread(int32_t y, int32_t x) {
    uint8_t& f = flag(y, x);
    if ((f & kSignificant) != 0) return;
    const int32_t at = context(y, x);
    if (at == 0) return;
    f |= kVisited;
    if (bits_.read(contexts_[at]) != 0) read_sign(y, x);
  }

  // D.3.3: one more bit of what was significant before.
  void refine(int32_t y, int32_t x) {
    uint8_t& f = flag(y, x);
    if ((f & kSignificant) == 0 || (f & kVisited) != 0) return;
    int32_t at = kRefine + 2;
    if ((f & kRefined) == 0)
      at = kRefine + (across(y, x) + down(y, x) + diagonal(y, x) > 0 ? 1 : 0);
    const int32_t half = 1 << plane_;
    work_.values[y * width_ + x] += bits_.read(contexts_[at]) != 0 ? half : -half;
    f |= kRefined;
  }

  // D.3.4: the rest; four at once where nothing is near.
  void clean_up() {
    for (int32_t top = 0; top < height_; top += 4)
      for (int32_t x = 0; x < width_; ++x) {
        int32_t y = top;
        const int32_t end = least(top + 4, height_);
        if (end - top == 4 && is_quiet(top, x)) {
          if (bits_.read(contexts_[kRun]) == 0) continue;
          const uint32_t high = bits_.read(contexts_[kUniform]);
          y += static_cast<int32_t>(2 * high + bits_.read(contexts_[kUniform]));
          read_sign(y++, x);
        }
        for (; y < end; ++y)
          if ((flag(y, x) & (kSignificant | kVisited)) == 0 &&
              bits_.read(contexts_[context(y, x)]) != 0)
            read_sign(y, x);
      }
    for (int32_t y = 0; y < height_; ++y)
      for (int32_t x = 0; x < width_; ++x)
        flag(y, x) = static_cast<uint8_t>(flag(y, x) & ~kVisited);
  }
  bool is_quiet(int32_t top, int32_t x) const {
    for (int32_t y = top; y < top + 4; ++y)
      if ((flag(y, x) & (kSignificant | kVisited)) != 0 || context(y, x) != 0)
        return false;
    return true;
  }

  // Four rows at a time, column by column (D.1).
  template <class F> void each_stripe(F f) {
    for (int32_t top = 0; top < height_; top += 4)
      for (int32_t x = 0; x < width_; ++x)
        for (int32_t y = top; y < least(top + 4, height_); ++y) f(y, x);
  }

  Jp2BlockWork& work_;
  int32_t width_, height_, kind_;
  uint32_t style_;
  int32_t stride_, plane_ = 0;
  Jp2Arithmetic bits_;
  Jp2Arithmetic::Context contexts_[19];
};

} // namespace svod::image
