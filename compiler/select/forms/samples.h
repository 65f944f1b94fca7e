// Inputs on which the rounding of a fast algorithm is measured at pack time.
#pragma once

#include "compiler/support/splitmix.h"

namespace svod::select {

// Drawn, so that the choice is the same on every machine.
class Samples {
public:
  float next() {
    const uint64_t z = next_splitmix(state_);
    // Like activations after a rectifier: half are zero.
    float value = static_cast<float>(static_cast<int64_t>(z) >> 11) * 0x1p-52f;
    return value < 0 ? 0 : value;
  }

private:
  uint64_t state_ = 1;
};

} // namespace svod::select
