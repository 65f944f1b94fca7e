// --max-weights: how much fast forms may add to what weights take as the model writes its
// contractions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace svod {

struct WeightBound {
  uint64_t bytes = 0;
  double factor = 0; // above 0: of what the direct forms store, in place of bytes
  uint64_t of(uint64_t direct) const;
};

// The most bytes that fast forms may add within the bound; 0 also where the direct forms
// are beyond it. `weights`: what a plan stores where forms add at most so many bytes.
uint64_t growth_within(const WeightBound& bound,
                       const std::function<uint64_t(uint64_t growth)>& weights);

} // namespace svod
