// An input that is given as a picture file (--image).
#pragma once

#include "importer/images/image_spec.h"

namespace svod::importer {

// The most pixels of a picture, as a height and a width.
struct PictureBound {
  int64_t height = 0, width = 0;
  int64_t pixels() const { return height * width; }
  // Of a file: what is not compressed has up to four bytes for a pixel, and a header.
  int64_t file_bytes() const { return 4 * pixels() + 65536; }
};

// The tensor of this type and shape that the model takes, from the input of a file's
// bytes (u8[file_bytes()]) and the one that says how many there are (i64[1]).
NodeId prepared_picture(Graph& g, const Picture& picture, DType dtype, const Shape& shape,
                        NodeId bytes, NodeId count, const PictureBound& bound);

} // namespace svod::importer
