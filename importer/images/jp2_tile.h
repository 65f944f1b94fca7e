// One tile of a JPEG 2000 picture as its packets see it (ITU-T T.800, annex B):
// components, resolutions, bands, precincts, code blocks.
#pragma once

#include "importer/images/jp2_frame.h"

namespace svod::image {

struct Jp2Area {
  int32_t x0, y0, x1, y1;
  int32_t width() const { return x1 > x0 ? x1 - x0 : 0; }
  int32_t height() const { return y1 > y0 ? y1 - y0 : 0; }
  bool is_empty() const { return width() == 0 || height() == 0; }
};

struct Jp2Chunk {
  Bytes bytes;
  Jp2Chunk* next;
};

struct Jp2Block {
  int32_t x, y, width, height; // in the tile's coefficients
  bool is_included;
  uint8_t zero_planes, length_bits;
  uint16_t passes;
  uint32_t new_bytes; // in the current packet
  uint32_t bytes;
  Jp2Chunk *first, *last;
};

// B.10.2: numbers of a grid, coded by the least of each four; a node knows its number, or
// a lower bound.
struct Jp2Node {
  uint16_t value, low;
};

struct Jp2PrecinctBand {
  int32_t across, down; // code blocks
  Jp2Block* blocks;
  Jp2Node *inclusion, *planes;
};

struct Jp2Precinct {
  Jp2PrecinctBand bands[3];
};

struct Jp2Band {
  Jp2Area area;
  int32_t place_x, place_y; // of its first coefficient in the tile's
  int32_t kind;             // 0: LL, 1: HL, 2: LH, 3: HH
  int32_t bit_planes;
  float step;
};

struct Jp2Resolution {
  Jp2Area area;
  int32_t precinct_x, precinct_y; // sizes, log2
  int32_t across, down;           // precincts
  int32_t band_count;
  Jp2Band bands[3];
  Jp2Precinct* precincts;
};

struct Jp2TileComponent {
  Jp2Area area;
  const Jp2Coding* coding;
  int32_t* whole; // coefficients, then samples, of the reversible wavelet
  float* real;    // of the other one
  Jp2Resolution* resolutions;
};

struct Jp2TileState {
  Jp2Area area;
  Jp2TileComponent components[kJp2MostComponents];
};

inline size_t jp2_tree_size(int32_t across, int32_t down) {
  size_t size = 0;
  for (;; across = (across + 1) / 2, down = (down + 1) / 2) {
    size += static_cast<size_t>(across) * static_cast<size_t>(down);
    if (across * down <= 1) return size;
  }
}

inline Jp2Node* take_jp2_tree(Job& job, int32_t across, int32_t down) {
  const size_t size = jp2_tree_size(across, down);
  auto* const nodes = job.take<Jp2Node>(size);
  for (size_t i = 0; i < size && nodes != nullptr; ++i) nodes[i].value = 0xffff;
  return nodes;
}

// B.7: the code blocks of a band that lie in one precinct, `area`.
inline bool make_jp2_blocks(Job& job, const Jp2Coding& coding, const Jp2Band& band,
                            const Jp2Area& area, int32_t most_x, int32_t most_y,
                            Jp2PrecinctBand& out) {
  if (area.is_empty()) return true;
  const int32_t size_x = least(coding.block_x, most_x);
  const int32_t size_y = least(coding.block_y, most_y);
  const int32_t first_x = area.x0 >> size_x, first_y = area.y0 >> size_y;
  out.across = jp2_shrunk(area.x1, size_x) - first_x;
  out.down = jp2_shrunk(area.y1, size_y) - first_y;
  if (out.across > 1 << 15 || out.down > 1 << 15) return false;
  out.blocks =
      job.take<Jp2Block>(static_cast<size_t>(out.across) * static_cast<size_t>(out.down));
  if (out.blocks == nullptr) return false;
  out.inclusion = take_jp2_tree(job, out.across, out.down);
  out.planes = take_jp2_tree(job, out.across, out.down);
  if (out.inclusion == nullptr || out.planes == nullptr) return false;
  for (int32_t y = 0; y < out.down; ++y)
    for (int32_t x = 0; x < out.across; ++x) {
      Jp2Block& block = out.blocks[y * out.across + x];
      const int32_t x0 = most((first_x + x) << size_x, area.x0);
      const int32_t y0 = most((first_y + y) << size_y, area.y0);
      block.width = least((first_x + x + 1) << size_x, area.x1) - x0;
      block.height = least((first_y + y + 1) << size_y, area.y1) - y0;
      block.x = x0 - band.area.x0 + band.place_x;
      block.y = y0 - band.area.y0 + band.place_y;
      block.length_bits = 3;
    }
  return true;
}

// B.6
inline bool make_jp2_precincts(Job& job, const Jp2Coding& coding, int32_t number,
                               Jp2Resolution& resolution) {
  const int32_t x_bits = resolution.precinct_x, y_bits = resolution.precinct_y;
  const Jp2Area& all = resolution.area;
  if (all.is_empty()) return true;
  resolution.across = jp2_shrunk(all.x1, x_bits) - (all.x0 >> x_bits);
  resolution.down = jp2_shrunk(all.y1, y_bits) - (all.y0 >> y_bits);
  resolution.precincts = job.take<Jp2Precinct>(static_cast<size_t>(resolution.across) *
                                               static_cast<size_t>(resolution.down));
  if (resolution.precincts == nullptr) return false;
  const int32_t halved = number > 0 ? 1 : 0;
  const int32_t band_x = x_bits - halved, band_y = y_bits - halved;
  for (int32_t y = 0; y < resolution.down; ++y)
    for (int32_t x = 0; x < resolution.across; ++x)
      for (int32_t b = 0; b < resolution.band_count; ++b) {
        const Jp2Band& band = resolution.bands[b];
        const int64_t at_x = (all.x0 >> x_bits) + x, at_y = (all.y0 >> y_bits) + y;
        const auto bounded = [](int64_t value, int32_t low, int32_t high) {
          return static_cast<int32_t>(value < low ? low : value > high ? high : value);
        };
        const Jp2Area area{bounded(at_x << band_x, band.area.x0, band.area.x1),
                           bounded(at_y << band_y, band.area.y0, band.area.y1),
                           bounded((at_x + 1) << band_x, band.area.x0, band.area.x1),
                           bounded((at_y + 1) << band_y, band.area.y0, band.area.y1)};
        Jp2PrecinctBand& to = resolution.precincts[y * resolution.across + x].bands[b];
        if (!make_jp2_blocks(job, coding, band, area, band_x, band_y, to)) return false;
      }
  return true;
}

// Equation E-3, with the gain of the bands in the wavelet (jp2_wavelet.h).
inline void set_jp2_step(const Jp2Component& component, int32_t number, int32_t index,
                         Jp2Band& band) {
  const Jp2Coding& coding = component.coding;
  const bool is_derived = coding.quantization == 1;
  const uint32_t step = coding.steps[is_derived ? 0 : index];
  int32_t exponent = static_cast<int32_t>(step >> 11);
  if (is_derived && number > 1) exponent = most(exponent - (number - 1), 0);
  band.bit_planes = coding.guard_bits + exponent - 1;
  band.step = 1.0f + static_cast<float>(step & 2047) / 2048.0f;
  for (int32_t i = component.depth; i < exponent; ++i) band.step *= 0.5f;
  for (int32_t i = exponent; i < component.depth; ++i) band.step *= 2.0f;
}

// B.5
inline bool make_jp2_resolution(Job& job, const Jp2Component& component, int32_t number,
                                Jp2TileComponent& out) {
  const Jp2Coding& coding = component.coding;
  Jp2Resolution& resolution = out.resolutions[number];
  const int32_t below = coding.levels - number; // levels between it and the samples
  const auto shrunk = [](const Jp2Area& a, int64_t x, int64_t y, int32_t shift) {
    return Jp2Area{jp2_shrunk(a.x0 - x, shift), jp2_shrunk(a.y0 - y, shift),
                   jp2_shrunk(a.x1 - x, shift), jp2_shrunk(a.y1 - y, shift)};
  };
  resolution.area = shrunk(out.area, 0, 0, below);
  resolution.precinct_x = coding.precincts[number] & 15;
  resolution.precinct_y = coding.precincts[number] >> 4;
  resolution.band_count = number == 0 ? 1 : 3;
  for (int32_t b = 0; b < resolution.band_count; ++b) {
    Jp2Band& band = resolution.bands[b];
    band.kind = number == 0 ? 0 : b + 1;
    const int32_t shift = number == 0 ? below : below + 1;
    const int64_t half = number == 0 ? 0 : int64_t{1} << below;
    band.area = shrunk(out.area, half * (band.kind & 1), half * (band.kind >> 1), shift);
    if (number > 0) {
      const Jp2Area& lower = out.resolutions[number - 1].area;
      band.place_x = (band.kind & 1) != 0 ? lower.width() : 0;
      band.place_y = band.kind >> 1 != 0 ? lower.height() : 0;
    }
    set_jp2_step(component, number, number == 0 ? 0 : 3 * number - 2 + b, band);
  }
  return make_jp2_precincts(job, coding, number, resolution);
}

inline bool make_jp2_tile(Job& job, const Jp2& jp2, uint32_t number, Jp2TileState& tile) {
  const uint32_t x = number % jp2.tiles_across, y = number / jp2.tiles_across;
  const auto edge = [](uint64_t first, uint64_t size, uint64_t i, uint32_t low,
                       uint32_t high) {
    const uint64_t at = first + size * i;
    return static_cast<int32_t>(at < low ? low : at > high ? high : at);
  };
  tile.area = {edge(jp2.tile_x0, jp2.tile_width, x, jp2.x0, jp2.x1),
               edge(jp2.tile_y0, jp2.tile_height, y, jp2.y0, jp2.y1),
               edge(jp2.tile_x0, jp2.tile_width, x + 1, jp2.x0, jp2.x1),
               edge(jp2.tile_y0, jp2.tile_height, y + 1, jp2.y0, jp2.y1)};
  for (uint32_t i = 0; i < jp2.component_count; ++i) {
    const Jp2Component& component = jp2.components[i];
    Jp2TileComponent& out = tile.components[i];
    const auto down = [](int32_t value, uint32_t step) {
      return static_cast<int32_t>(divided_up(static_cast<uint32_t>(value), step));
    };
    out.area = {
        down(tile.area.x0, component.step_x), down(tile.area.y0, component.step_y),
        down(tile.area.x1, component.step_x), down(tile.area.y1, component.step_y)};
    out.coding = &component.coding;
    const auto count =
        static_cast<size_t>(out.area.width()) * static_cast<size_t>(out.area.height());
    if (component.coding.is_reversible)
      out.whole = job.take<int32_t>(count);
    else
      out.real = job.take<float>(count);
    const int32_t levels = component.coding.levels;
    out.resolutions = job.take<Jp2Resolution>(static_cast<size_t>(levels) + 1);
    if (out.resolutions == nullptr || (out.whole == nullptr && out.real == nullptr))
      return false;
    for (int32_t r = 0; r <= levels; ++r)
      if (!make_jp2_resolution(job, component, r, out)) return false;
  }
  return true;
}

} // namespace svod::image
