// Inputs on which the rounding of a fast algorithm is measured at pack time. A sum as it
// is written errs where it adds numbers, a fast one everywhere: so it counts how many are
// zero.
#pragma once

#include "compiler/support/splitmix.h"

namespace svod::select {

// Activations behind a rectifier, of which half are zero, or the pixels of drawings and
// what networks of a few layers make of them, of which nine tenths are.
enum class Inputs : uint8_t { Activations, Drawings };

// Drawn, so that the choice is the same on every machine.
class Samples {
public:
  explicit Samples(Inputs inputs = Inputs::Activations)
      : zeros_(inputs == Inputs::Drawings ? 0.8F : 0) {}
  float next() {
    const uint64_t z = next_splitmix(state_);
    const float value = static_cast<float>(static_cast<int64_t>(z) >> 11) * 0x1p-52f;
    return value < zeros_ ? 0 : (value - zeros_) / (1 - zeros_);
  }

private:
  float zeros_; // of the positive ones, those below
  uint64_t state_ = 1;
};

} // namespace svod::select
