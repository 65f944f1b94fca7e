// Memory for tensors, aligned as the stub aligns it.
#pragma once

#include "runtime_stub/format.h"

#include <cstddef>
#include <vector>

namespace svod::packager {

struct alignas(SVOD_ALIGN) MemoryLine {
  std::byte bytes[SVOD_ALIGN];
};
using AlignedMemory = std::vector<MemoryLine>;

// At least so many bytes, zeros.
inline AlignedMemory aligned_memory(size_t bytes) {
  return AlignedMemory(bytes / SVOD_ALIGN + 1);
}

} // namespace svod::packager
