// The filter that smooths the edges of VP8's blocks (RFC 6386, 15), over a whole frame:
// all blocks are predicted from pixels that are not filtered yet.
#pragma once

#include "importer/images/vp8_predict.h"

namespace svod::image {

struct Vp8Limits {
  int32_t edge, interior, variance;
};

// Eight pixels across an edge, `step` apart: `p` is the first behind it.
class Vp8Edge {
public:
  Vp8Edge(uint8_t* p, ptrdiff_t step) : p_(p), step_(step) {}

  // 15.2
  void filter_simple(int32_t edge_limit) {
    if (is_flat(edge_limit)) adjust(true);
  }

  // 15.3: between blocks of 16 x 16, and inside of them.
  void filter_outer(const Vp8Limits& limits) {
    if (!is_filtered(limits)) return;
    if (varies(limits.variance)) {
      adjust(true);
      return;
    }
    const int32_t w = small(small(at(-2) - at(1)) + 3 * (at(0) - at(-1)));
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t by = small(((27 - 9 * i) * w + 63) >> 7);
      set(i, at(i) - by);
      set(-1 - i, at(-1 - i) + by);
    }
  }
  void filter_inner(const Vp8Limits& limits) {
    if (!is_filtered(limits)) return;
    const bool varied = varies(limits.variance);
    const int32_t by = (adjust(varied) + 1) >> 1;
    if (varied) return;
    set(1, at(1) - by);
    set(-2, at(-2) + by);
  }

private:
  int32_t at(int32_t i) const { return p_[i * step_] - 128; }
  void set(int32_t i, int32_t value) {
    p_[i * step_] = static_cast<uint8_t>(small(value) + 128);
  }
  static int32_t small(int32_t value) { return clamped(value, -128, 127); }
  int32_t step_at(int32_t i) const { // how much two neighbours differ
    const int32_t difference = at(i) - at(i + 1);
    return difference < 0 ? -difference : difference;
  }
  bool is_flat(int32_t edge_limit) const {
    const int32_t far = at(-2) - at(1);
    return 2 * step_at(-1) + (far < 0 ? -far : far) / 2 <= edge_limit;
  }
  bool is_filtered(const Vp8Limits& limits) const {
    if (!is_flat(limits.edge)) return false;
    for (int32_t i = -4; i < 3; ++i)
      if (i != -1 && step_at(i) > limits.interior) return false;
    return true;
  }
  bool varies(int32_t limit) const { return step_at(-2) > limit || step_at(0) > limit; }
  int32_t adjust(bool uses_outer) {
    const int32_t outer = uses_outer ? small(at(-2) - at(1)) : 0;
    const int32_t a = small(outer + 3 * (at(0) - at(-1)));
    const int32_t by = small(a + 4) >> 3, before = small(a + 3) >> 3;
    const int32_t behind = at(0) - by;
    set(-1, at(-1) + before);
    set(0, behind);
    return by;
  }

  uint8_t* p_;
  ptrdiff_t step_;
};

// 9.3, 9.6 and 15.4
inline int32_t vp8_filter_level(const Vp8Frame& frame, const Vp8Block& block) {
  int32_t level = frame.filter_level;
  if (frame.has_segments)
    level = frame.segments[block.segment].filter + (frame.is_absolute ? 0 : level);
  if (frame.has_filter_deltas) {
    level += frame.reference_delta;
    if (block.has_sub_modes) level += frame.mode_delta;
  }
  return clamped(level, 0, 63);
}

// All edges of one direction in a block of `size` pixels.
inline void filter_vp8_edges(const Vp8Frame& frame, const Vp8Plane& plane, int32_t y,
                             int32_t x, int32_t size, bool is_across, Vp8Limits limits,
                             bool has_outer, bool has_inner) {
  const ptrdiff_t step = is_across ? 1 : plane.stride;
  const ptrdiff_t along = is_across ? plane.stride : 1;
  for (int32_t edge = has_outer ? 0 : 4; edge < (has_inner ? size : 1); edge += 4) {
    Vp8Limits used = limits;
    if (edge == 0) used.edge += 4;
    uint8_t* const from = plane.at(y, x) + edge * step;
    for (int32_t i = 0; i < size; ++i) {
      Vp8Edge line(from + i * along, step);
      if (frame.is_simple_filter)
        line.filter_simple(used.edge);
      else if (edge == 0)
        line.filter_outer(used);
      else
        line.filter_inner(used);
    }
  }
}

inline void filter_vp8_block(const Vp8Frame& frame, const Vp8Plane* planes, int32_t y,
                             int32_t x) {
  const Vp8Block& block = frame.blocks[y * frame.blocks_across + x];
  const int32_t level = vp8_filter_level(frame, block);
  if (level == 0) return;
  int32_t interior = level;
  if (frame.sharpness > 0) {
    interior >>= frame.sharpness > 4 ? 2 : 1;
    interior = least(interior, 9 - frame.sharpness);
  }
  interior = most(interior, 1);
  const Vp8Limits limits{2 * level + interior, interior,
                         level >= 40   ? 2
                         : level >= 15 ? 1
                                       : 0};
  const bool has_inner = block.has_sub_modes || block.has_coefficients;
  for (int32_t direction = 0; direction < 2; ++direction)
    for (int32_t plane = 0; plane < (frame.is_simple_filter ? 1 : 3); ++plane) {
      const int32_t size = plane == 0 ? 16 : 8;
      const bool is_across = direction == 0;
      filter_vp8_edges(frame, planes[plane], size * y, size * x, size, is_across, limits,
                       (is_across ? x : y) > 0, has_inner);
    }
}

inline void filter_vp8_frame(const Vp8Frame& frame, const Vp8Plane* planes) {
  if (frame.filter_level == 0) return;
  for (int32_t y = 0; y < frame.blocks_down; ++y)
    for (int32_t x = 0; x < frame.blocks_across; ++x)
      filter_vp8_block(frame, planes, y, x);
}

} // namespace svod::image
