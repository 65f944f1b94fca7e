// JPEG 2000 (ITU-T T.800), a codestream by itself or in the boxes of a JP2 file (annex
// I): tile by tile, packets are read, code blocks decoded, wavelets and mixed components
// undone (annex G).
#pragma once

#include "importer/images/jp2_blocks.h"
#include "importer/images/jp2_packets.h"
#include "importer/images/jp2_wavelet.h"

namespace svod::image {

inline bool is_jp2(const Bytes& in) {
  return in.starts_with("\0\0\0\x0cjP  \r\n\x87\n", 12) ||
         in.starts_with("\xff\x4f\xff\x51", 4);
}

// I.4: the codestream; false where colours are not what samples say directly.
inline bool find_jp2_codestream(Bytes in, Bytes& stream) {
  if (in.starts_with("\xff\x4f", 2)) {
    stream = in;
    return true;
  }
  while (in.left() >= 8) {
    const uint32_t length = in.u32_big();
    const Bytes name = in.part(4);
    if (name.starts_with("jp2h", 4)) continue; // its boxes follow
    if (length == 1 || (length != 0 && length < 8)) return false;
    Bytes content = length == 0 ? in : in.part(length - 8);
    if (in.ended) return false;
    if (name.starts_with("pclr", 4)) return false;
    if (name.starts_with("colr", 4) && content.u8() == 1) {
      content.skip(2);
      const uint32_t space = content.u32_big();
      if (space != 16 && space != 17) return false; // RGB and grey
    }
    if (name.starts_with("jp2c", 4)) {
      stream = content;
      return true;
    }
    if (length == 0) return false;
  }
  return false;
}

// A.4.2: the parts of all tiles; first they are counted. Only the first may have a header
// of its own, of segments that change nothing.
inline bool read_jp2_parts(const Jp2& jp2, Bytes in, Jp2Tile* tiles, bool is_counting) {
  while (!in.ended) {
    const Bytes start = in;
    in.skip(2); // length
    const uint32_t number = in.u16_big(), length = in.u32_big();
    in.skip(2);
    if (in.ended || number >= jp2.tiles_across * jp2.tiles_down) return false;
    // The length counts the marker, which is read.
    if (length != 0 && (length < 14 || length - 2 > start.left())) return false;
    Bytes part = in;
    if (length != 0) part.end = start.at + (length - 2);
    for (uint32_t marker = part.u16_big(); marker != 0xff93; marker = part.u16_big()) {
      const uint32_t size = part.u16_big();
      const bool is_plain = marker == 0xff58 || marker == 0xff64; // PLT, COM
      if (part.ended || !is_plain || size < 2) return false;
      part.skip(size - 2);
    }
    if (part.ended) return false;
    in.at = part.end;
    if (length == 0 && in.end - part.at >= 2) part.end -= 2; // the last marker
    Jp2Tile& tile = tiles[number];
    if (!is_counting) tile.parts[tile.part_count] = part;
    ++tile.part_count;
    if (length == 0 || in.left() < 2 || in.u16_big() != 0xff90) return true;
  }
  return false;
}

inline Jp2Tile* take_jp2_tiles(Job& job, const Jp2& jp2, Bytes in) {
  const uint32_t count = jp2.tiles_across * jp2.tiles_down;
  auto* const tiles = job.take<Jp2Tile>(count);
  if (tiles == nullptr || !read_jp2_parts(jp2, in, tiles, true)) return nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    tiles[i].parts = job.take<Bytes>(tiles[i].part_count);
    if (tiles[i].parts == nullptr) return nullptr;
    tiles[i].part_count = 0;
  }
  return read_jp2_parts(jp2, in, tiles, false) ? tiles : nullptr;
}

inline bool decode_jp2_block(Job& job, Jp2BlockWork& work, const Jp2TileComponent& to,
                             const Jp2Band& band, const Jp2Block& block) {
  if (block.passes == 0) return true;
  const int32_t planes = band.bit_planes - block.zero_planes;
  constexpr int32_t kMostPlanes = 29; // halves have one more
  if (planes > kMostPlanes) return false;
  const Job before = job;
  auto* const bytes = job.take<uint8_t>(size_t{block.bytes} + 1);
  if (bytes == nullptr) return false;
  uint8_t* end = bytes;
  for (const Jp2Chunk* chunk = block.first; chunk != nullptr; chunk = chunk->next)
    for (Bytes in = chunk->bytes; in.at < in.end;) *end++ = *in.at++;
  Jp2BlockDecoder decoder(work, block, band.kind, to.coding->style);
  decoder.decode(bytes, end, planes - 1, block.passes);
  job = before;
  const int32_t stride = to.area.width();
  for (int32_t y = 0; y < block.height; ++y)
    for (int32_t x = 0; x < block.width; ++x) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(block.y + y) * stride + block.x + x;
      if (to.coding->is_reversible)
        to.whole[at] = decoder.value(y, x) / 2;
      else
        to.real[at] = static_cast<float>(decoder.value(y, x)) * (0.5f * band.step);
    }
  return true;
}

inline bool decode_jp2_component(Job& job, Jp2BlockWork& work, Jp2TileComponent& to) {
  for (int32_t r = 0; r <= to.coding->levels; ++r) {
    const Jp2Resolution& resolution = to.resolutions[r];
    for (int32_t p = 0; p < resolution.across * resolution.down; ++p)
      for (int32_t b = 0; b < resolution.band_count; ++b) {
        const Jp2PrecinctBand& in = resolution.precincts[p].bands[b];
        for (int32_t i = 0; i < in.across * in.down; ++i)
          if (!decode_jp2_block(job, work, to, resolution.bands[b], in.blocks[i]))
            return false;
      }
  }
  const auto longest = static_cast<size_t>(most(to.area.width(), to.area.height()));
  if (to.coding->is_reversible) {
    auto* const line = job.take<int32_t>(longest);
    if (line != nullptr) undo_jp2_wavelet(to, to.whole, line);
    return line != nullptr;
  }
  auto* const line = job.take<float>(longest);
  if (line != nullptr) undo_jp2_wavelet(to, to.real, line);
  return line != nullptr;
}

// G.2 and G.3
inline bool unmix_jp2_components(Jp2TileState& tile) {
  const Jp2TileComponent &a = tile.components[0], &b = tile.components[1],
                         &c = tile.components[2];
  const auto is_like_first = [&](const Jp2TileComponent& x) {
    return x.area.width() == a.area.width() && x.area.height() == a.area.height() &&
           x.coding->is_reversible == a.coding->is_reversible;
  };
  if (!is_like_first(b) || !is_like_first(c)) return false;
  const auto count =
      static_cast<ptrdiff_t>(a.area.width()) * static_cast<ptrdiff_t>(a.area.height());
  for (ptrdiff_t i = 0; i < count && a.coding->is_reversible; ++i) {
    const int32_t green = a.whole[i] - ((b.whole[i] + c.whole[i]) >> 2);
    const int32_t red = c.whole[i] + green, blue = b.whole[i] + green;
    a.whole[i] = red, b.whole[i] = green, c.whole[i] = blue;
  }
  for (ptrdiff_t i = 0; i < count && !a.coding->is_reversible; ++i) {
    const float y = a.real[i], u = b.real[i], v = c.real[i];
    a.real[i] = y + v * 1.402f;
    b.real[i] = y - u * 0.34413f - v * 0.71414f;
    c.real[i] = y + u * 1.772f;
  }
  return true;
}

// The nearest whole number, of two the even one.
inline int32_t rounded_jp2(float value) {
  constexpr float kMost = 1e6f;
  if (!(value > -kMost)) return -1000000;
  if (value > kMost) return 1000000;
  auto whole = static_cast<int32_t>(value); // towards 0
  const float rest = value - static_cast<float>(whole);
  if (rest > 0.5f || (rest == 0.5f && whole % 2 != 0)) ++whole;
  if (rest < -0.5f || (rest == -0.5f && whole % 2 != 0)) --whole;
  return whole;
}

inline uint8_t jp2_sample(const Jp2Component& component, const Jp2TileComponent& in,
                          int32_t y, int32_t x) {
  const ptrdiff_t at = static_cast<ptrdiff_t>(y) * in.area.width() + x;
  int32_t value = in.whole != nullptr ? in.whole[at] : rounded_jp2(in.real[at]);
  const int32_t half = 1 << (component.depth - 1);
  value = clamped(value, -half, half - 1) + half;
  const int32_t shift = component.depth - 8;
  return static_cast<uint8_t>(shift > 0 ? value >> shift : value << -shift);
}

inline void put_jp2_tile(Job& job, const Jp2& jp2, const Jp2TileState& tile) {
  for (int32_t y = tile.area.y0; y < tile.area.y1; ++y)
    for (int32_t x = tile.area.x0; x < tile.area.x1; ++x) {
      uint8_t samples[kJp2MostComponents] = {};
      for (uint32_t i = 0; i < jp2.component_count; ++i) {
        const Jp2Component& component = jp2.components[i];
        const Jp2TileComponent& in = tile.components[i];
        if (in.area.is_empty()) continue;
        const int32_t at_y = y / static_cast<int32_t>(component.step_y);
        const int32_t at_x = x / static_cast<int32_t>(component.step_x);
        samples[i] =
            jp2_sample(component, in, clamped(at_y - in.area.y0, 0, in.area.height() - 1),
                       clamped(at_x - in.area.x0, 0, in.area.width() - 1));
      }
      const int32_t to_y = y - static_cast<int32_t>(jp2.y0);
      const int32_t to_x = x - static_cast<int32_t>(jp2.x0);
      if (jp2.component_count < 3)
        job.put_gray(to_y, to_x, samples[0]);
      else
        job.put(to_y, to_x, samples[0], samples[1], samples[2]);
    }
}

inline bool decode_jp2_tile(Job& job, const Jp2& jp2, const Jp2Tile& tile,
                            uint32_t number, Jp2BlockWork& work) {
  auto* const state = job.take<Jp2TileState>(1);
  if (state == nullptr || !make_jp2_tile(job, jp2, number, *state)) return false;
  if (!Jp2PacketReader(job, jp2, *state, tile).read()) return false;
  for (uint32_t i = 0; i < jp2.component_count; ++i)
    if (!decode_jp2_component(job, work, state->components[i])) return false;
  if (jp2.mixes_components && (jp2.component_count < 3 || !unmix_jp2_components(*state)))
    return false;
  put_jp2_tile(job, jp2, *state);
  return true;
}

inline bool decode_jp2(Job& job) {
  Bytes in;
  auto* const jp2 = job.take<Jp2>(1);
  auto* const work = job.take<Jp2BlockWork>(1);
  if (jp2 == nullptr || work == nullptr) return false;
  if (!find_jp2_codestream(job.bytes, in) || !read_jp2_header(*jp2, in)) return false;
  if (!job.begin(jp2->y1 - jp2->y0, jp2->x1 - jp2->x0)) return false;
  const Jp2Tile* const tiles = take_jp2_tiles(job, *jp2, in);
  if (tiles == nullptr) return false;
  for (uint32_t i = 0; i < jp2->tiles_across * jp2->tiles_down; ++i) {
    // A tile's memory is the next one's.
    uint8_t* const scratch = job.scratch;
    const size_t left = job.scratch_left;
    if (!decode_jp2_tile(job, *jp2, tiles[i], i, *work)) return false;
    job.scratch = scratch, job.scratch_left = left;
  }
  return true;
}

} // namespace svod::image
