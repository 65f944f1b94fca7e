// How a picture of any size becomes one of the size that a model takes: to which size it
// is resampled, and which part of that is kept. The roundings are those of torchvision's
// Resize and CenterCrop, which networks are trained with, and for bars beside the picture
// those of YOLO's letterbox.
#pragma once

#include "importer/images/picture.h"

namespace svod::image {

enum class Fit : int32_t {
  Stretch, // to the box, whatever its proportions
  Cover,   // the smallest size that covers the box
  Contain, // the largest size that lies within the box, in its middle
  Shorter, // the shorter side becomes the box's height
  Keep,    // its own size
};
enum class Filter : int32_t { Nearest, Bilinear, Bicubic };

struct Recipe {
  int32_t height, width; // of what is made: the middle of what is resampled
  Fit fit;
  int32_t box_height, box_width;
  Filter filter;
  int32_t fill; // of the bars beside a picture within a box; what is cropped has black
};

// One axis of a picture: its size, the size that it is resampled to, and where in that
// the first position of the result lies; below 0 where there is a bar before the picture.
struct Axis {
  int64_t size, resampled, offset, wanted;

  // Positions of the result that have a pixel: [begin, end).
  int64_t begin() const { return offset < 0 ? -offset : 0; }
  int64_t end() const {
    return resampled - offset < wanted ? resampled - offset : wanted;
  }
};

// The picture lies in the middle: half of an odd rest goes to the even side where
// something is cut off, before the picture where there is a bar.
inline int64_t middle_of(int64_t resampled, int64_t wanted) {
  const int64_t rest = resampled - wanted, half = rest / 2;
  return half + (rest > 0 && rest % 2 != 0 && half % 2 != 0 ? 1 : 0);
}

// a * b / c, to the nearest, of two the even one; at least 1.
inline int64_t scaled_near(int64_t a, int64_t b, int64_t c) {
  const int64_t whole = a * b / c, twice = a * b % c * 2;
  const int64_t out = whole + (twice > c || (twice == c && whole % 2 != 0) ? 1 : 0);
  return out < 1 ? 1 : out;
}

struct Placed {
  Axis down, across;
};

inline Placed place_picture(const Recipe& recipe, int64_t height, int64_t width) {
  const int64_t box_height = recipe.box_height, box_width = recipe.box_width;
  int64_t down = box_height, across = box_width;
  // Of the two scales the one down the picture is the smaller.
  bool less_down = box_height * width <= box_width * height;
  switch (recipe.fit) {
  case Fit::Stretch:
    break;
  case Fit::Contain:
    if (less_down)
      across = scaled_near(width, box_height, height);
    else
      down = scaled_near(height, box_width, width);
    break;
  case Fit::Shorter:
    across = box_height;
    less_down = width < height;
    [[fallthrough]];
  case Fit::Cover:
    if (less_down)
      down = height * across / width;
    else
      across = width * down / height;
    break;
  case Fit::Keep:
    down = height, across = width;
    break;
  }
  return {{height, down, middle_of(down, recipe.height), recipe.height},
          {width, across, middle_of(across, recipe.width), recipe.width}};
}

} // namespace svod::image
