// What a form adds is counted before layouts are chosen, which pad some weights to whole
// vectors. So the plan is asked, and what is too much is taken from the next try.
#include "compiler/weight_bound.h"

#include <algorithm>

namespace svod {

uint64_t WeightBound::of(uint64_t direct) const {
  return factor > 0 ? static_cast<uint64_t>(factor * static_cast<double>(direct)) : bytes;
}

uint64_t growth_within(const WeightBound& bound,
                       const std::function<uint64_t(uint64_t growth)>& weights) {
  constexpr int kMostTries = 8;
  const uint64_t direct = weights(0), most = bound.of(direct);
  uint64_t growth = most - std::min(most, direct);
  for (int i = 0; i < kMostTries && growth > 0; ++i) {
    const uint64_t found = weights(growth);
    if (found <= most) return growth;
    growth -= std::min(growth, found - most);
  }
  return 0;
}

} // namespace svod
