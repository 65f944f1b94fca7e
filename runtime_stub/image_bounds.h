// Whether what an image names lies in it. Nothing wraps: sums are taken in 64 bits over
// 32-bit fields, or as `a <= limit && b <= limit - a`.
#ifndef SVOD_IMAGE_BOUNDS_H
#define SVOD_IMAGE_BOUNDS_H

#include "runtime_stub/format.h"

namespace svod_image {

inline bool within(uint64_t first, uint64_t count, uint64_t limit) {
  return first <= limit && count <= limit - first;
}

inline bool table_fits(const SvodHeader& header, SvodTable table,
                       uint64_t element_bytes) {
  return table.offset % 8 == 0 &&
         within(table.offset, table.count * element_bytes, header.image_bytes);
}

inline bool text_fits(const SvodHeader& header, SvodText text) {
  return within(text.offset, text.size, header.image_bytes);
}

} // namespace svod_image

#endif
