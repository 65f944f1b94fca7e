// WebP (RFC 9649, section 2): chunks in a RIFF file; the picture is lossy ("VP8 ") or
// lossless ("VP8L"). Transparency is left out; a film is not decoded.
#pragma once

#include "importer/image/vp8.h"
#include "importer/image/webp_transforms.h"

namespace svod::image {

inline bool is_webp(const Bytes& in) {
  return in.starts_with("RIFF", 4) && in.from(8).starts_with("WEBP", 4);
}

inline bool decode_webp(Job& job) {
  Bytes in = job.bytes;
  in.skip(12);
  while (in.left() >= 8) {
    const Bytes name = in.part(4);
    const uint32_t length = in.u32_little();
    if (length > in.left()) return false;
    const Bytes content = in.part(length);
    if (name.starts_with("VP8 ", 4)) return decode_vp8(job, content);
    if (name.starts_with("VP8L", 4)) return decode_webp_lossless(job, content);
    in.skip(length % 2);
  }
  return false;
}

} // namespace svod::image
