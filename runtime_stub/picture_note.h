// At the front of the memory that preparing a picture works in: what a program says of a
// picture that it cannot take (--image).
#ifndef SVOD_PICTURE_NOTE_H
#define SVOD_PICTURE_NOTE_H

#include <stdint.h>

namespace svod {

struct PictureNote {
  int64_t height, width; // 0: it is no picture
  int64_t most_pixels;   // that were packed
  int64_t most_side;     // height and width of any picture
  int64_t reserved[4];
};

} // namespace svod

#endif
