// A share of the kernels of a model, where several machines tune it.
#pragma once

#include <cstddef>

namespace svod::packager {

struct Shard {
  size_t number = 0, count = 1; // the number is below the count
  bool has(size_t kernel) const { return kernel % count == number; }
};

} // namespace svod::packager
