// The packets of a JPEG 2000 tile (ITU-T T.800, B.9 to B.12): which bytes belong to which
// code block, in the order of the progression.
#pragma once

#include "importer/images/jp2_tile.h"

namespace svod::image {

// B.10.1: bits from the highest down; behind a byte 0xff comes one of 7 bits.
struct Jp2Bits {
  Bytes in;
  uint32_t byte = 0;
  int32_t left = 0;

  uint32_t take() {
    if (left == 0) {
      left = byte == 0xff ? 7 : 8;
      byte = in.u8();
    }
    return byte >> --left & 1;
  }
  uint32_t take(int32_t n) {
    uint32_t out = 0;
    for (; n > 0; --n) out = out << 1 | take();
    return out;
  }
  void align() {
    if (byte == 0xff) in.skip(1);
    left = 0, byte = 0;
  }
};

// Whether the number at (x, y) is below `limit`.
inline bool is_jp2_below(Jp2Bits& bits, Jp2Node* nodes, int32_t across, int32_t down,
                         int32_t y, int32_t x, uint32_t limit) {
  Jp2Node* path[32];
  int32_t depth = 0;
  for (;; across = (across + 1) / 2, down = (down + 1) / 2, y /= 2, x /= 2) {
    path[depth++] = nodes + y * across + x;
    if (across * down <= 1) break;
    nodes += static_cast<ptrdiff_t>(across) * down;
  }
  uint32_t low = 0;
  while (depth-- > 0) {
    Jp2Node& node = *path[depth];
    if (low < node.low) low = node.low;
    while (low < limit && low < node.value && !bits.in.ended) {
      if (bits.take() != 0)
        node.value = static_cast<uint16_t>(low);
      else
        ++low;
    }
    node.low = static_cast<uint16_t>(low);
  }
  return path[0]->value < limit;
}

// Table B.4
inline uint32_t read_jp2_passes(Jp2Bits& bits) {
  if (bits.take() == 0) return 1;
  if (bits.take() == 0) return 2;
  uint32_t more = bits.take(2);
  if (more < 3) return 3 + more;
  more = bits.take(5);
  if (more < 31) return 6 + more;
  return 37 + bits.take(7);
}

class Jp2PacketReader {
public:
  Jp2PacketReader(Job& job, const Jp2& jp2, Jp2TileState& state, const Jp2Tile& tile)
      : job_(job), jp2_(jp2), state_(state), tile_(tile) {}

  // B.12.1
  bool read() {
    switch (jp2_.progression) {
    case 0:
      return by_layer_and_resolution();
    case 1:
      return by_resolution_and_layer();
    case 2:
      for (int32_t r = 0; r <= most_levels(); ++r)
        if (!by_position(0, jp2_.component_count, r, r)) return false;
      return true;
    case 3:
      return by_position(0, jp2_.component_count, 0, most_levels());
    default:
      for (uint32_t c = 0; c < jp2_.component_count; ++c)
        if (!by_position(c, c + 1, 0, most_levels())) return false;
      return true;
    }
  }

private:
  static constexpr uint32_t kFar = 1u << 30; // beyond all coordinates

  int32_t most_levels() const {
    int32_t levels = 0;
    for (uint32_t c = 0; c < jp2_.component_count; ++c)
      levels = most(levels, jp2_.components[c].coding.levels);
    return levels;
  }
  Jp2Resolution* resolution(uint32_t component, int32_t number) {
    const Jp2TileComponent& of = state_.components[component];
    return number <= of.coding->levels ? of.resolutions + number : nullptr;
  }

  // All precincts of a resolution in one layer.
  bool read_layer(int32_t number, uint32_t layer) {
    for (uint32_t c = 0; c < jp2_.component_count; ++c) {
      Jp2Resolution* const r = resolution(c, number);
      for (int32_t p = 0; r != nullptr && p < r->across * r->down; ++p)
        if (!read_packet(*r, p, layer)) return false;
    }
    return true;
  }
  bool by_layer_and_resolution() {
    for (uint32_t layer = 0; layer < jp2_.layers; ++layer)
      for (int32_t r = 0; r <= most_levels(); ++r)
        if (finished_ || !read_layer(r, layer)) return finished_;
    return true;
  }
  bool by_resolution_and_layer() {
    for (int32_t r = 0; r <= most_levels(); ++r)
      for (uint32_t layer = 0; layer < jp2_.layers; ++layer)
        if (finished_ || !read_layer(r, layer)) return finished_;
    return true;
  }

  // Precincts in the order of their corners, and all layers of each.
  bool by_position(uint32_t first, uint32_t last, int32_t low, int32_t high) {
    const uint32_t step_y = least_step(first, last, low, high, false);
    const uint32_t step_x = least_step(first, last, low, high, true);
    const Jp2Area& area = state_.area;
    const auto x0 = static_cast<uint32_t>(area.x0), y0 = static_cast<uint32_t>(area.y0);
    const auto x1 = static_cast<uint32_t>(area.x1), y1 = static_cast<uint32_t>(area.y1);
    for (uint32_t y = y0; y < y1; y = y - y % step_y + step_y)
      for (uint32_t x = x0; x < x1; x = x - x % step_x + step_x)
        for (uint32_t c = first; c < last; ++c)
          for (int32_t r = low; r <= high; ++r)
            if (finished_ || !read_corner(c, r, y, x)) return finished_;
    return true;
  }
  // How far precincts are apart, at least, in the grid of reference.
  uint32_t least_step(uint32_t first, uint32_t last, int32_t low, int32_t high,
                      bool is_x) const {
    uint32_t step = kFar;
    for (uint32_t c = first; c < last; ++c) {
      const Jp2TileComponent& of = state_.components[c];
      for (int32_t r = low; r <= least(high, of.coding->levels); ++r) {
        const uint32_t own = span(c, r, is_x);
        if (own < step) step = own;
      }
    }
    return step;
  }
  uint32_t span(uint32_t component, int32_t number, bool is_x) const {
    const Jp2TileComponent& of = state_.components[component];
    const Jp2Component& named = jp2_.components[component];
    const Jp2Resolution& r = of.resolutions[number];
    const int32_t bits =
        (is_x ? r.precinct_x : r.precinct_y) + of.coding->levels - number;
    const uint64_t all = static_cast<uint64_t>(is_x ? named.step_x : named.step_y)
                         << bits;
    return all < kFar ? static_cast<uint32_t>(all) : kFar;
  }

  // The precinct whose corner is there, if one is.
  bool read_corner(uint32_t component, int32_t number, uint32_t y, uint32_t x) {
    Jp2Resolution* const r = resolution(component, number);
    if (r == nullptr || r->across * r->down == 0) return true;
    const int32_t shift = state_.components[component].coding->levels - number;
    // The first one may begin before the tile.
    const auto starts = [&](uint32_t at, int32_t first, uint32_t size, int32_t r0,
                            int32_t bits) {
      const bool is_cut =
          at == static_cast<uint32_t>(first) && (r0 & ((1 << bits) - 1)) != 0;
      return at % size == 0 || is_cut;
    };
    if (!starts(y, state_.area.y0, span(component, number, false), r->area.y0,
                r->precinct_y) ||
        !starts(x, state_.area.x0, span(component, number, true), r->area.x0,
                r->precinct_x))
      return true;
    const auto index = [&](uint32_t at, uint32_t step, int32_t r0, int32_t bits) {
      return (jp2_shrunk(divided_up(at, step), shift) >> bits) - (r0 >> bits);
    };
    const int32_t px =
        index(x, jp2_.components[component].step_x, r->area.x0, r->precinct_x);
    const int32_t py =
        index(y, jp2_.components[component].step_y, r->area.y0, r->precinct_y);
    if (px < 0 || py < 0 || px >= r->across || py >= r->down) return true;
    for (uint32_t layer = 0; layer < jp2_.layers; ++layer)
      if (!read_packet(*r, py * r->across + px, layer)) return false;
    return true;
  }

  // False: broken, or `finished_`, as the bytes are at their end.
  bool read_packet(Jp2Resolution& resolution, int32_t number, uint32_t layer) {
    while (in_.left() == 0) {
      finished_ = part_ == tile_.part_count;
      if (finished_) return false;
      in_ = tile_.parts[part_++];
    }
    if (in_.starts_with("\xff\x91", 2)) in_.skip(6);
    Jp2Precinct& precinct = resolution.precincts[number];
    Jp2Bits bits{in_};
    const bool has_any = bits.take() != 0;
    for (int32_t b = 0; has_any && b < resolution.band_count; ++b)
      if (!read_band(bits, resolution.bands[b], precinct.bands[b], layer)) return false;
    bits.align();
    in_ = bits.in;
    if (in_.ended) return false;
    if (in_.starts_with("\xff\x92", 2)) in_.skip(2);
    for (int32_t b = 0; has_any && b < resolution.band_count; ++b)
      if (!take_bytes(precinct.bands[b])) return false;
    return true;
  }

  bool read_band(Jp2Bits& bits, const Jp2Band& band, Jp2PrecinctBand& to,
                 uint32_t layer) {
    for (int32_t y = 0; y < to.down; ++y)
      for (int32_t x = 0; x < to.across; ++x) {
        Jp2Block& block = to.blocks[y * to.across + x];
        block.new_bytes = 0;
        const bool is_in = block.is_included ? bits.take() != 0
                                             : is_jp2_below(bits, to.inclusion, to.across,
                                                            to.down, y, x, layer + 1);
        if (!is_in) continue;
        if (!block.is_included) {
          uint32_t planes = 1;
          while (planes < 64 &&
                 !is_jp2_below(bits, to.planes, to.across, to.down, y, x, planes))
            ++planes;
          if (static_cast<int32_t>(planes) - 1 > band.bit_planes) return false;
          block.zero_planes = static_cast<uint8_t>(planes - 1);
          block.is_included = true;
        }
        if (!read_length(bits, block)) return false;
      }
    return !bits.in.ended;
  }

  // B.10.7
  static bool read_length(Jp2Bits& bits, Jp2Block& block) {
    const uint32_t passes = read_jp2_passes(bits);
    while (bits.take() != 0 && !bits.in.ended) ++block.length_bits;
    int32_t width = block.length_bits;
    for (uint32_t rest = passes; rest > 1; rest >>= 1) ++width;
    if (bits.in.ended || width > 31) return false;
    block.new_bytes = bits.take(width);
    block.passes = static_cast<uint16_t>(block.passes + passes);
    return block.passes < 256;
  }

  bool take_bytes(Jp2PrecinctBand& band) {
    for (int32_t i = 0; i < band.across * band.down; ++i) {
      Jp2Block& block = band.blocks[i];
      const uint32_t count = block.new_bytes;
      block.new_bytes = 0;
      if (count == 0) continue;
      if (count > in_.left()) return false;
      auto* const chunk = job_.take<Jp2Chunk>(1);
      if (chunk == nullptr) return false;
      chunk->bytes = in_.part(count);
      (block.first == nullptr ? block.first : block.last->next) = chunk;
      block.last = chunk;
      block.bytes += count;
    }
    return true;
  }

  Job& job_;
  const Jp2& jp2_;
  Jp2TileState& state_;
  const Jp2Tile& tile_;
  Bytes in_;
  uint32_t part_ = 0;
  bool finished_ = false;
};

} // namespace svod::image
