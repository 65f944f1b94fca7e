// Inputs on which the rounding of a fast algorithm is measured at pack time.
#pragma once

#include <cstdint>

namespace svod::select {

// A stated generator (splitmix64), so that the choice is the same on every machine.
class Samples {
public:
  float next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    // Like activations after a rectifier: half are zero.
    float value = static_cast<float>(static_cast<int64_t>(z) >> 11) * 0x1p-52f;
    return value < 0 ? 0 : value;
  }

private:
  uint64_t state_ = 1;
};

} // namespace svod::select
