// Where the weights of what is packed lie.
#pragma once

#include <cstdint>

namespace svod::packager {

enum class WeightPlace : uint8_t {
  Embed, // in the output, as kernels read them
  File,  // beside it
  // In the output in another form, of which memory is filled at the start:
  Zstd,   // compressed
  Expand, // as few bytes as what fast forms add can be made of
};

inline bool is_made_at_start(WeightPlace place) { return place >= WeightPlace::Zstd; }

} // namespace svod::packager
