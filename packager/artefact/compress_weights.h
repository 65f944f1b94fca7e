// The weight section as --weights=zstd stores it: runtime_stub/zstd_format.h.
#pragma once

#include "packager/artefact/weights.h"

namespace svod::packager {

// Compresses the `weight_bytes` bytes that `produce` hands to its sink. The same bytes
// give the same result with the same zstd.
class CompressedWeights {
public:
  CompressedWeights(uint64_t weight_bytes,
                    const std::function<void(const ByteSink&)>& produce);
  uint64_t bytes() const;                       // stored
  static uint64_t scratch_bytes() { return 0; } // what zstd works with is not counted
  // Hands them to `sink`, in order.
  void write(const ByteSink& sink) const;

private:
  uint64_t weight_bytes_;
  std::vector<std::vector<std::byte>> frames_;
};

} // namespace svod::packager
