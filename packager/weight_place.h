// Where the weights of what is packed lie.
#pragma once

#include <cstdint>

namespace svod::packager {

enum class WeightPlace : uint8_t {
  Embed, // in the output, as kernels read them
  File,  // beside it
  Zstd,  // in the output, compressed; expanded when the program starts
};

} // namespace svod::packager
