// JPEG (ITU-T T.81): 8 bits, Huffman codes, sequential or progressive. All
// coefficients are kept until the last scan is read; then they become pixels
// (jpeg_pixels.h).
#pragma once

#include "importer/images/jpeg_pixels.h"
#include "importer/images/jpeg_scan.h"

namespace svod::image {

// B.2.4.1
inline bool read_jpeg_quantization(Jpeg& jpeg, Bytes in) {
  while (in.left() > 0) {
    const uint32_t head = in.u8();
    if ((head & 15) > 3 || head >> 4 > 1) return false;
    for (uint8_t place : kJpegZigzag)
      jpeg.quantization[head & 3][place] =
          static_cast<uint16_t>(head >> 4 != 0 ? in.u16_big() : in.u8());
  }
  return !in.ended;
}

// B.2.4.2 and annex C
inline bool read_jpeg_code(JpegCode& code, Bytes& in) {
  int32_t counts[17] = {};
  int32_t total = 0, next = 0;
  for (int32_t length = 1; length <= 16; ++length)
    counts[length] = static_cast<int32_t>(in.u8());
  for (uint16_t& entry : code.fast) entry = 0;
  for (int32_t length = 1; length <= 16; ++length) {
    code.first[length] = next, code.start[length] = total;
    next += counts[length], total += counts[length];
    if (next > 1 << length || total > 256) return false;
    next *= 2;
  }
  code.start[17] = total;
  for (int32_t i = 0; i < total; ++i) code.symbols[i] = static_cast<uint8_t>(in.u8());
  for (int32_t length = 1; length <= JpegCode::kFastBits; ++length)
    for (int32_t i = 0; i < counts[length]; ++i) {
      const int32_t spare = JpegCode::kFastBits - length;
      uint16_t* const to = code.fast + ((code.first[length] + i) << spare);
      for (int32_t j = 0; j < 1 << spare; ++j)
        to[j] = static_cast<uint16_t>(length << 8 | code.symbols[code.start[length] + i]);
    }
  code.is_defined = true;
  return !in.ended;
}

inline bool read_jpeg_codes(Jpeg& jpeg, Bytes in) {
  while (in.left() > 0) {
    const uint32_t head = in.u8();
    if ((head & 15) > 3 || head >> 4 > 1) return false;
    JpegCode* const codes = head >> 4 != 0 ? jpeg.ac : jpeg.dc;
    if (!read_jpeg_code(codes[head & 3], in)) return false;
  }
  return true;
}

inline void read_jpeg_application(Jpeg& jpeg, uint32_t marker, Bytes in) {
  if (marker == 0xffe0 && in.starts_with("JFIF\0", 5)) jpeg.has_jfif = true;
  if (marker != 0xffee || !in.starts_with("Adobe", 5) || in.left() < 12) return;
  jpeg.has_adobe = true;
  jpeg.transform = in.at[11];
}

// B.2.2
inline bool read_jpeg_components(Jpeg& jpeg, Bytes in) {
  if (in.u8() != 8) return false;
  jpeg.height = in.u16_big(), jpeg.width = in.u16_big();
  const uint32_t count = in.u8();
  if (count != 1 && count != 3 && count != 4) return false;
  jpeg.component_count = static_cast<int32_t>(count);
  jpeg.most_across = jpeg.most_down = 1;
  for (uint32_t i = 0; i < count; ++i) {
    JpegComponent& component = jpeg.components[i];
    component.id = in.u8();
    const uint32_t factors = in.u8();
    component.across = static_cast<int32_t>(factors >> 4);
    component.down = static_cast<int32_t>(factors & 15);
    component.table = in.u8();
    const int32_t low = least(component.across, component.down);
    if (low < 1 || most(component.across, component.down) > 4 || component.table > 3)
      return false;
    jpeg.most_across = most(jpeg.most_across, component.across);
    jpeg.most_down = most(jpeg.most_down, component.down);
  }
  return !in.ended;
}

inline bool start_jpeg_frame(Job& job, Jpeg& jpeg, Bytes in) {
  if (jpeg.component_count != 0 || !read_jpeg_components(jpeg, in)) return false;
  if (!job.begin(jpeg.height, jpeg.width)) return false;
  const auto rounded_up = [](int32_t a, int32_t b) { return (a + b - 1) / b; };
  jpeg.units_across = rounded_up(job.width, 8 * jpeg.most_across);
  jpeg.units_down = rounded_up(job.height, 8 * jpeg.most_down);
  for (int32_t i = 0; i < jpeg.component_count; ++i) {
    JpegComponent& component = jpeg.components[i];
    if (jpeg.most_across % component.across != 0 || jpeg.most_down % component.down != 0)
      return false;
    component.width = rounded_up(job.width * component.across, jpeg.most_across);
    component.height = rounded_up(job.height * component.down, jpeg.most_down);
    component.blocks_across = rounded_up(component.width, 8);
    component.blocks_down = rounded_up(component.height, 8);
    component.stride = jpeg.units_across * component.across;
    const auto blocks = static_cast<size_t>(component.stride) *
                        static_cast<size_t>(jpeg.units_down * component.down);
    component.coefficients = job.take<int16_t>(64 * blocks);
    component.samples = job.take<uint8_t>(64 * blocks);
    if (component.coefficients == nullptr || component.samples == nullptr) return false;
  }
  return true;
}

// B.2.3 and, for what scans may hold, G.1.1.1.
inline bool read_jpeg_scan_header(Jpeg& jpeg, JpegScan& scan, Bytes in) {
  scan.count = static_cast<int32_t>(in.u8());
  if (scan.count < 1 || scan.count > jpeg.component_count) return false;
  for (int32_t i = 0; i < scan.count; ++i) {
    const uint32_t id = in.u8(), tables = in.u8();
    scan.components[i] = nullptr;
    for (int32_t j = jpeg.component_count; j-- > 0;)
      if (jpeg.components[j].id == id) scan.components[i] = &jpeg.components[j];
    JpegComponent* const component = scan.components[i];
    if (component == nullptr || (tables & 15) > 3 || tables >> 4 > 3) return false;
    for (int32_t j = 0; j < i; ++j)
      if (scan.components[j] == component) return false;
    component->dc = tables >> 4, component->ac = tables & 15;
    component->predictor = 0;
  }
  scan.first = static_cast<int32_t>(in.u8()), scan.last = static_cast<int32_t>(in.u8());
  const uint32_t bits = in.u8();
  scan.high = static_cast<int32_t>(bits >> 4), scan.low = static_cast<int32_t>(bits & 15);
  if (!jpeg.is_progressive) scan.first = 0, scan.last = 63, scan.high = scan.low = 0;
  const bool has_dc = scan.first == 0, has_ac = scan.last > 0;
  for (int32_t i = 0; i < scan.count; ++i) {
    const JpegComponent& component = *scan.components[i];
    if (has_dc && scan.high == 0 && !jpeg.dc[component.dc].is_defined) return false;
    if (has_ac && !jpeg.ac[component.ac].is_defined) return false;
  }
  if (in.ended || scan.last > 63 || scan.first > scan.last || scan.low > 13) return false;
  if (!jpeg.is_progressive) return true;
  return has_dc ? !has_ac : scan.count == 1;
}

inline bool read_jpeg_scan(Jpeg& jpeg, Bytes header, Bytes& in) {
  constexpr uint32_t kMostScans = 256; // each goes over the whole picture
  JpegScan scan;
  if (jpeg.component_count == 0 || ++jpeg.scans > kMostScans) return false;
  if (!read_jpeg_scan_header(jpeg, scan, header)) return false;
  return JpegScanReader(jpeg, scan, in).read(in);
}

// A frame of another kind (lossless, hierarchical, arithmetic codes): what is refused has
// a size.
inline bool refuse_jpeg_frame(Job& job, Bytes in) {
  in.skip(1);
  job.asked_height = in.u16_big(), job.asked_width = in.u16_big();
  return false;
}

inline bool read_jpeg_segment(Job& job, Jpeg& jpeg, uint32_t marker, Bytes& in) {
  const uint32_t length = in.u16_big();
  if (length < 2) return false;
  const Bytes segment = in.part(length - 2);
  if (in.ended) return false;
  switch (marker) {
  case 0xffc0: // baseline
  case 0xffc1: // extended, still Huffman codes
  case 0xffc2: // progressive
    jpeg.is_progressive = marker == 0xffc2;
    return start_jpeg_frame(job, jpeg, segment);
  case 0xffc4:
    return read_jpeg_codes(jpeg, segment);
  case 0xffda:
    return read_jpeg_scan(jpeg, segment, in);
  case 0xffdb:
    return read_jpeg_quantization(jpeg, segment);
  case 0xffdd:
    jpeg.restart_interval = Bytes(segment).u16_big();
    return true;
  case 0xffe0:
  case 0xffee:
    read_jpeg_application(jpeg, marker, segment);
    return true;
  case 0xffc8: // reserved
  case 0xffcc: // of arithmetic codes, which a frame tells of
    return true;
  default: // comments and the like, and frames
    return marker < 0xffc3 || marker > 0xffcf || refuse_jpeg_frame(job, segment);
  }
}

inline bool read_jpeg(Job& job, Jpeg& jpeg, Bytes in) {
  in.skip(2);
  while (const uint32_t marker = next_jpeg_marker(in)) {
    if (marker == 0xffd9) {
      jpeg.is_whole = true;
      break;
    }
    const bool is_bare = marker == 0xff01 || (marker >= 0xffd0 && marker <= 0xffd8);
    if (!is_bare && !read_jpeg_segment(job, jpeg, marker, in)) return false;
  }
  return true;
}

inline bool decode_jpeg(Job& job) {
  Jpeg* const jpeg = job.take<Jpeg>(1);
  // Of a progressive picture that is cut a coarser one could be made.
  return jpeg != nullptr && read_jpeg(job, *jpeg, job.bytes) && jpeg->scans > 0 &&
         (jpeg->is_whole || !jpeg->is_progressive) && put_jpeg(job, *jpeg);
}

// A part of another file, whose tables may stand before it and which says what its three
// components are.
inline bool decode_jpeg_part(Job& job, Bytes tables, bool is_rgb) {
  Jpeg* const jpeg = job.take<Jpeg>(1);
  if (jpeg == nullptr || !read_jpeg(job, *jpeg, tables) || jpeg->component_count != 0 ||
      !read_jpeg(job, *jpeg, job.bytes) || jpeg->scans == 0)
    return false;
  jpeg->has_jfif = false, jpeg->has_adobe = true, jpeg->transform = is_rgb ? 0 : 1;
  return put_jpeg(job, *jpeg);
}

} // namespace svod::image
