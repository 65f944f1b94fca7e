// The weight section as --weights=expand stores it: runtime_stub/expansion_format.h.
#pragma once

#include "packager/artefact/weights.h"

namespace svod::packager {

class ExpandedWeights {
public:
  // Hands the section to `sink`, as it is once it is expanded. What is stored is the same
  // for the same plans.
  ExpandedWeights(const Plans& plans, const SharedWeights& shared, const ByteSink& sink);
  uint64_t bytes() const;                                   // stored
  uint64_t scratch_bytes() const { return scratch_bytes_; } // that making one needs
  // Hands them to `sink`, in order.
  void write(const ByteSink& sink) const;

private:
  std::vector<std::vector<std::byte>> parts_; // tables, then tensors
  uint64_t scratch_bytes_ = 0;
};

} // namespace svod::packager
