// How the blocks of one JPEG scan follow each other (ITU-T T.81, annex A.2), with restart
// markers. What a block's bits mean is JpegHuffman's.
#pragma once

#include "importer/images/jpeg_huffman.h"

namespace svod::image {

class JpegScanReader {
public:
  JpegScanReader(const Jpeg& jpeg, const JpegScan& scan, Bytes in)
      : jpeg_(jpeg), scan_(scan), coder_(jpeg, scan) {
    coder_.open(in);
  }

  // Where the scan ends is in `rest`.
  bool read(Bytes& rest) {
    const bool done = scan_.count == 1 ? read_component() : read_units();
    rest = coder_.rest();
    return done;
  }

private:
  // A.2.2: a component of its own is its blocks row by row.
  bool read_component() {
    JpegComponent& component = *scan_.components[0];
    for (int32_t y = 0; y < component.blocks_down; ++y)
      for (int32_t x = 0; x < component.blocks_across; ++x)
        if (!restart_if_due() || !read_block(component, y, x)) return false;
    return true;
  }

  // A.2.3: several components are units, each some blocks of every one.
  bool read_units() {
    for (int32_t y = 0; y < jpeg_.units_down; ++y)
      for (int32_t x = 0; x < jpeg_.units_across; ++x)
        if (!restart_if_due() || !read_unit(y, x)) return false;
    return true;
  }

  bool read_unit(int32_t unit_y, int32_t unit_x) {
    for (int32_t i = 0; i < scan_.count; ++i) {
      JpegComponent& component = *scan_.components[i];
      for (int32_t y = 0; y < component.down; ++y)
        for (int32_t x = 0; x < component.across; ++x)
          if (!read_block(component, unit_y * component.down + y,
                          unit_x * component.across + x))
            return false;
    }
    return true;
  }

  bool restart_if_due() {
    if (jpeg_.restart_interval == 0) return true;
    if (until_restart_ == 0) {
      until_restart_ = jpeg_.restart_interval;
      if (!is_first_ && !restart()) return false;
      is_first_ = false;
    }
    --until_restart_;
    return true;
  }

  bool restart() {
    Bytes in = coder_.rest();
    const uint32_t marker = next_jpeg_marker(in);
    if (marker < 0xffd0 || marker > 0xffd7) return false;
    coder_.open(in);
    for (int32_t i = 0; i < scan_.count; ++i) scan_.components[i]->predictor = 0;
    return true;
  }

  bool read_block(JpegComponent& component, int32_t y, int32_t x) {
    int16_t* const block =
        component.coefficients +
        64 * (static_cast<size_t>(y) * static_cast<size_t>(component.stride) +
              static_cast<size_t>(x));
    // A marker too early gives zeros, the end of the file does not.
    return coder_.read(component, block) && !coder_.ended();
  }

  const Jpeg& jpeg_;
  const JpegScan& scan_;
  JpegHuffman coder_;
  uint32_t until_restart_ = 0;
  bool is_first_ = true;
};

} // namespace svod::image
