// A lossy WebP picture: a key frame of VP8 (RFC 6386). Chroma has half the size; it is
// brought to the pixels by weights of 9, 3, 3 and 1 sixteenths, and colours are computed
// in the steps that libwebp, which everybody uses, takes.
#pragma once

#include "importer/images/vp8_filter.h"

namespace svod::image {

// One kind of 4 x 4 blocks: `across` of them side by side, contexts from `context` on.
struct Vp8Part {
  int32_t kind, first_block, blocks, across, context, first_coefficient;
  const int32_t* steps;
};

inline bool read_vp8_part(Vp8Frame& frame, Vp8Bits& in, uint8_t* above,
                          const Vp8Part& part) {
  bool any = false;
  for (int32_t i = 0; i < part.blocks; ++i) {
    uint8_t& up = above[part.context + i % part.across];
    uint8_t& left = frame.coded_left[part.context + i / part.across];
    int16_t* const block = frame.coefficients[part.first_block + i];
    const int32_t end = read_vp8_coefficients(in, frame.probabilities[part.kind],
                                              static_cast<uint32_t>(up + left),
                                              part.steps, part.first_coefficient, block);
    up = left = end > part.first_coefficient;
    any = any || end > 1 || block[0] != 0;
  }
  return any;
}

// Whether there is any coefficient.
inline bool read_vp8_residue(Vp8Frame& frame, const Vp8Block& block, Vp8Bits& in,
                             uint8_t* above) {
  constexpr int32_t kSecond = 24;
  for (auto& coefficients : frame.coefficients)
    for (int16_t& value : coefficients) value = 0;
  if (frame.is_skipped) {
    for (int32_t i = 0; i < (block.has_sub_modes ? 8 : 9); ++i)
      above[i] = frame.coded_left[i] = 0;
    return false;
  }
  const Vp8Steps& steps = frame.segments[block.segment].steps;
  bool any = false;
  if (block.has_sub_modes) {
    any = read_vp8_part(frame, in, above, {3, 0, 16, 4, 0, 0, steps.luma});
  } else {
    read_vp8_part(frame, in, above, {1, kSecond, 1, 1, 8, 0, steps.second});
    transform_vp8_second(frame.coefficients[kSecond], frame.coefficients);
    any = read_vp8_part(frame, in, above, {0, 0, 16, 4, 0, 1, steps.luma});
  }
  any |= read_vp8_part(frame, in, above, {2, 16, 4, 2, 4, 0, steps.chroma});
  any |= read_vp8_part(frame, in, above, {2, 20, 4, 2, 6, 0, steps.chroma});
  return any;
}

inline bool decode_vp8_blocks(Vp8Frame& frame, const Vp8Plane* planes) {
  for (int32_t y = 0; y < frame.blocks_down; ++y) {
    Vp8Bits& in = frame.parts[static_cast<uint32_t>(y) & (frame.part_count - 1)];
    for (uint8_t& mode : frame.modes_left) mode = kVp8Dc;
    for (uint8_t& coded : frame.coded_left) coded = 0;
    for (int32_t x = 0; x < frame.blocks_across; ++x) {
      Vp8Block& block = frame.blocks[y * frame.blocks_across + x];
      read_vp8_modes(frame, block, frame.modes_above + 4 * x);
      block.has_coefficients = read_vp8_residue(frame, block, in, frame.coded_above[x]);
      if (frame.head.is_cut_off() || in.is_cut_off()) return false;
      rebuild_vp8_block(frame, block, planes, y, x);
    }
  }
  return true;
}

// 12.2: above the picture is 127, to its left 129.
inline bool make_vp8_plane(Job& job, Vp8Plane& plane, int32_t height, int32_t width) {
  constexpr int32_t kBefore = 8, kBehind = 8;
  plane.stride = width + kBefore + kBehind;
  uint8_t* const memory = job.take<uint8_t>(static_cast<size_t>(plane.stride) *
                                            static_cast<size_t>(height + 1));
  if (memory == nullptr) return false;
  plane.pixels = memory + plane.stride + kBefore;
  for (int32_t x = 0; x < plane.stride; ++x) memory[x] = 127;
  for (int32_t y = 0; y < height; ++y) *plane.at(y, -1) = 129;
  return true;
}

// The chroma at a pixel. Beyond the left and right border nothing is mixed in, beyond the
// upper and lower one the nearest.
inline int32_t vp8_chroma_at(const Vp8Plane& plane, int32_t height, int32_t width,
                             int32_t y, int32_t x) {
  const int32_t near_y = y / 2, near_x = x / 2;
  int32_t other_y = y % 2 == 0 ? near_y - 1 : near_y + 1;
  const int32_t other_x = x % 2 == 0 ? near_x - 1 : near_x + 1;
  if (other_y < 0 || other_y >= height) other_y = near_y;
  const int32_t near = *plane.at(near_y, near_x), down = *plane.at(other_y, near_x);
  if (other_x < 0 || other_x >= width) return (3 * near + down + 2) >> 2;
  const int32_t across = *plane.at(near_y, other_x);
  const int32_t corner = *plane.at(other_y, other_x);
  return (((near + 3 * across + 3 * down + corner + 8) >> 3) + near) >> 1;
}

// 16 to 235 become 0 to 255 (ITU-R BT.601), in steps of 1/64.
inline void put_vp8_pixel(Job& job, int32_t y, int32_t x, int32_t luma, int32_t u,
                          int32_t v) {
  const int32_t light = luma * 19077 >> 8;
  const auto byte = [](int32_t value) { return byte_of(value >> 6); };
  job.put(y, x, byte(light + (v * 26149 >> 8) - 14234),
          byte(light - (u * 6419 >> 8) - (v * 13320 >> 8) + 8708),
          byte(light + (u * 33050 >> 8) - 17685));
}

inline bool decode_vp8(Job& job, Bytes in) {
  auto* const frame = job.take<Vp8Frame>(1);
  uint32_t head_size = 0;
  if (frame == nullptr || !read_vp8_start(*frame, in, head_size)) return false;
  if (!job.begin(frame->height, frame->width)) return false;
  if (!read_vp8_header(*frame, in, head_size)) return false;
  frame->blocks_across = (job.width + 15) / 16,
  frame->blocks_down = (job.height + 15) / 16;
  const auto across = static_cast<size_t>(frame->blocks_across);
  frame->blocks = job.take<Vp8Block>(across * static_cast<size_t>(frame->blocks_down));
  frame->modes_above = job.take<uint8_t>(4 * across);
  frame->coded_above = reinterpret_cast<uint8_t(*)[9]>(job.take<uint8_t>(9 * across));
  if (frame->blocks == nullptr || frame->modes_above == nullptr ||
      frame->coded_above == nullptr)
    return false;
  Vp8Plane planes[3];
  for (int32_t i = 0; i < 3; ++i) {
    const int32_t size = i == 0 ? 16 : 8;
    if (!make_vp8_plane(job, planes[i], size * frame->blocks_down,
                        size * frame->blocks_across))
      return false;
  }
  if (!decode_vp8_blocks(*frame, planes)) return false;
  filter_vp8_frame(*frame, planes);
  const int32_t height = (job.height + 1) / 2, width = (job.width + 1) / 2;
  for (int32_t y = 0; y < job.height; ++y)
    for (int32_t x = 0; x < job.width; ++x)
      put_vp8_pixel(job, y, x, *planes[0].at(y, x),
                    vp8_chroma_at(planes[1], height, width, y, x),
                    vp8_chroma_at(planes[2], height, width, y, x));
  return true;
}

} // namespace svod::image
